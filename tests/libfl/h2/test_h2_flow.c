/* Backpressure, limits and order between two of our own sides. */
#include <check.h>
#include <string.h>

#include "tests/lib/callpair.h"
#include "tests/lib/suites.h"

static struct callpair pair;

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)

static void send_all(struct call_log *log, size_t size, unsigned n)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        ck_assert_int_eq(callpair_send(log, size), FL_OK);
    }
}

TEST(the_send_queue_is_bounded_and_tells_when_there_is_room)
{
    struct call_log *log;
    unsigned n = 0;

    callpair_init(&pair);
    pair.client_limits.queue_bytes = MIB;
    callpair_open(&pair);
    log = callpair_call(&pair, "Sum", 0);
    pair.pipe.blocked[MEMPIPE_UP] = true;
    while (callpair_send(log, 100 * KIB) == FL_OK) {
        n++;
    }
    ck_assert_uint_eq(n, 10);
    ck_assert_uint_eq(fl_call_queued(log->call), 10 * (100 * KIB + 5));
    ck_assert_int_eq(callpair_send(log, 100 * KIB), FL_ELIMIT);
    /* A smaller one still fits: nothing of the refused one was queued. */
    ck_assert_int_eq(callpair_send(log, 10), FL_OK);
    ck_assert_uint_eq(log->writables, 0);
    /* The bytes that left for the socket count until it has taken them. */
    while (fl_call_queued(log->call) >= MIB / 2) {
        ck_assert_uint_eq(log->writables, 0);
        ck_assert_uint_gt(mempipe_collect(&pair.pipe, MEMPIPE_UP, 10000), 0);
        fl_h2_dispatch(pair.client);
    }
    ck_assert_uint_eq(log->writables, 1);
    pair.pipe.blocked[MEMPIPE_UP] = false;
    callpair_run(&pair);
    ck_assert_uint_eq(log->writables, 1);
    ck_assert_uint_eq(fl_call_queued(log->call), 0);
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_uint_eq(log->reply, 1000 * KIB + 10);
    callpair_close(&pair);
}

TEST(a_queue_that_was_above_half_tells_when_it_is_below)
{
    struct call_log *log;

    callpair_init(&pair);
    pair.client_limits.queue_bytes = MIB;
    callpair_open(&pair);
    log = callpair_call(&pair, "Sum", 0);
    send_all(log, 100 * KIB, 4);
    callpair_run(&pair);
    ck_assert_uint_eq(log->writables, 0); /* it never was */
    send_all(log, 100 * KIB, 6);
    callpair_run(&pair);
    ck_assert_uint_eq(log->writables, 1);
    callpair_close(&pair);
}

TEST(windows_too_small_for_a_message_are_raised)
{
    struct call_log *log;

    callpair_init(&pair);
    pair.limits.message_bytes = MIB;
    pair.limits.stream_window = 65535;
    pair.limits.conn_window = 65535;
    callpair_open(&pair);
    log = callpair_call(&pair, "Sum", 0);
    send_all(log, MIB, 3);
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_uint_eq(log->reply, 3 * MIB);
    callpair_close(&pair);
}

TEST(a_message_that_can_never_be_queued_is_refused)
{
    struct call_log *log;
    struct fl_piece huge[2] = {{.data = "", .len = UINT32_MAX}, {.data = "", .len = SIZE_MAX}};

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Sum", 0);
    ck_assert_int_eq(fl_call_send(log->call, huge, 1), FL_ELIMIT);
    ck_assert_int_eq(fl_call_send(log->call, huge, 2), FL_ELIMIT);
    ck_assert_uint_eq(fl_call_queued(log->call), 0);
    fl_call_end(log->call);
    ck_assert_int_eq(callpair_send(log, 1), FL_ECLOSED);
    callpair_close(&pair);
}

TEST(a_receiver_that_holds_messages_stops_the_sender)
{
    struct call_log *log;
    struct call_log *served = &pair.served[0];
    size_t window = 256 * KIB;

    callpair_init(&pair);
    pair.limits.message_bytes = 64 * KIB;
    pair.limits.stream_window = (uint32_t)window;
    callpair_open(&pair);
    log = callpair_call(&pair, "Hold", 0);
    send_all(log, 60 * KIB, 100);
    callpair_run(&pair);
    ck_assert_uint_ge(served->bytes, window - 60 * KIB);
    ck_assert_uint_le(served->bytes, window);
    ck_assert_uint_gt(fl_call_queued(log->call), 5 * MIB);
    /* What is given back is sent again, and no more. */
    while (served->messages < 100) {
        size_t before = served->bytes;

        fl_call_consume(served->call, 180 * KIB);
        callpair_run(&pair);
        ck_assert_uint_le(served->bytes - before, window);
        ck_assert_uint_gt(served->bytes, before);
    }
    fl_call_consume(served->call, SIZE_MAX); /* more than is held does no harm */
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    ck_assert_uint_eq(served->wrong, 0);
    callpair_close(&pair);
}

TEST(held_bulk_does_not_stop_a_control_stream)
{
    struct call_log *bulk;
    struct call_log *control;
    int i;

    callpair_init(&pair);
    pair.limits.message_bytes = 64 * KIB;
    pair.limits.stream_window = 256 * KIB;
    pair.limits.conn_window = 1024 * KIB;
    callpair_open(&pair);
    for (i = 0; i < 3; i++) {
        bulk = callpair_call(&pair, "Hold", 0);
        send_all(bulk, 60 * KIB, 50);
    }
    callpair_run(&pair);
    control = callpair_call(&pair, "Echo", 0);
    for (i = 1; i <= 20; i++) {
        ck_assert_int_eq(callpair_send(control, 10 * KIB), FL_OK);
        callpair_run(&pair);
        ck_assert_uint_eq(control->messages, i);
    }
    callpair_close(&pair);
}

TEST(what_one_connection_makes_us_hold_is_bounded)
{
    size_t held = 0;
    unsigned i;

    callpair_init(&pair);
    pair.limits.message_bytes = 64 * KIB;
    pair.limits.stream_window = 256 * KIB;
    pair.limits.conn_window = 512 * KIB;
    callpair_open(&pair);
    for (i = 0; i < 20; i++) {
        send_all(callpair_call(&pair, "Hold", 0), 60 * KIB, 10);
    }
    callpair_run(&pair);
    for (i = 0; i < pair.n_served; i++) {
        held += pair.served[i].bytes;
    }
    ck_assert_uint_le(held, 2 * 512 * KIB);
    /* Closing the calls gives everything back. */
    for (i = 0; i < 20; i++) {
        if (pair.calls[i].call != NULL) { /* not refused for its unfinished message */
            fl_call_cancel(pair.calls[i].call);
        }
    }
    callpair_run(&pair);
    send_all(callpair_call(&pair, "Sum", 0), 60 * KIB, 50);
    fl_call_end(pair.calls[20].call);
    callpair_run(&pair);
    ck_assert_uint_eq(pair.calls[20].reply, 50 * 60 * KIB);
    callpair_close(&pair);
}

TEST(unfinished_messages_of_many_streams_do_not_lock_the_connection)
{
    unsigned i;

    callpair_init(&pair);
    pair.limits.message_bytes = 256 * KIB;
    pair.limits.stream_window = 512 * KIB;
    pair.limits.conn_window = 2560 * KIB;
    pair.client_limits.frame_bytes = 16384;
    callpair_open(&pair);
    /* Frames of ten messages alternate; together they are as large as the window. */
    for (i = 0; i < 10; i++) {
        send_all(callpair_call(&pair, "Sum", 0), 256 * KIB, 3);
        fl_call_end(pair.calls[i].call);
    }
    callpair_run(&pair);
    for (i = 0; i < 10; i++) {
        ck_assert_int_eq(pair.calls[i].status, FL_GRPC_OK);
        ck_assert_uint_eq(pair.calls[i].reply, 3 * 256 * KIB);
    }
    callpair_close(&pair);
}

TEST(more_unfinished_messages_than_the_account_takes_are_refused)
{
    unsigned refused = 0;
    unsigned i;

    callpair_init(&pair);
    pair.limits.message_bytes = 256 * KIB;
    pair.limits.stream_window = 512 * KIB;
    pair.limits.conn_window = 512 * KIB;
    pair.limits.memory = 800 * KIB;
    pair.client_limits.frame_bytes = 16384;
    callpair_open(&pair);
    for (i = 0; i < 10; i++) {
        send_all(callpair_call(&pair, "Sum", 0), 250 * KIB, 1);
        fl_call_end(pair.calls[i].call);
    }
    callpair_run(&pair);
    for (i = 0; i < 10; i++) {
        ck_assert_uint_eq(pair.calls[i].closes, 1);
        if (pair.calls[i].status == FL_GRPC_RESOURCE_EXHAUSTED) {
            refused++;
            ck_assert_str_eq(pair.calls[i].text,
                             "an unfinished message: memory limit of this connection "
                             "exceeded: too many unfinished or unread bytes");
        } else {
            ck_assert_int_eq(pair.calls[i].status, FL_GRPC_OK);
        }
    }
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_lt(refused, 10);
    ck_assert_uint_le(fl_h2_account(pair.server)->peak, 800 * KIB);
    ck_assert_uint_eq(fl_h2_account(pair.server)->used, 0); /* nothing of what is over */
    callpair_close(&pair);
}

TEST(control_overtakes_bulk_that_was_queued_before_it)
{
    struct call_log *bulk;
    struct call_log *control;
    size_t sent;
    size_t bound;

    callpair_init(&pair);
    callpair_open(&pair);
    /* Two frames may be on their way to the socket, and one more is being made. */
    bound = 3 * (size_t)pair.client_limits.frame_bytes + KIB;
    bulk = callpair_call(&pair, "Sum", 0);
    control = callpair_call(&pair, "Echo", 0);
    callpair_run(&pair);
    pair.pipe.blocked[MEMPIPE_UP] = true;
    send_all(bulk, 3 * MIB, 5);
    (void)mempipe_collect(&pair.pipe, MEMPIPE_UP, 100);
    sent = pair.pipe.sent[MEMPIPE_UP];
    ck_assert_int_eq(callpair_send(control, 100), FL_OK);
    /* A slow socket: the control message is there long before the bulk. */
    while (control->messages == 0) {
        ck_assert_uint_le(pair.pipe.sent[MEMPIPE_UP] - sent, bound);
        ck_assert_uint_gt(mempipe_collect(&pair.pipe, MEMPIPE_UP, 10000), 0);
        callpair_run(&pair);
    }
    ck_assert_uint_gt(fl_call_queued(bulk->call), 13 * MIB);
    ck_assert_uint_eq(pair.served[0].messages, 0);
    pair.pipe.blocked[MEMPIPE_UP] = false;
    fl_call_end(bulk->call);
    callpair_run(&pair);
    ck_assert_uint_eq(bulk->reply, 15 * MIB);
    callpair_close(&pair);
}

TEST(a_slow_pace_leaves_little_before_a_control_message)
{
    struct call_log *bulk;
    struct call_log *control;
    size_t sent;
    size_t pace = 20 * KIB;

    callpair_init(&pair);
    callpair_open(&pair);
    fl_h2_set_pacing(pair.client, pace);
    bulk = callpair_call(&pair, "Sum", 0);
    control = callpair_call(&pair, "Echo", 0);
    callpair_run(&pair);
    pair.pipe.blocked[MEMPIPE_UP] = true;
    send_all(bulk, 3 * MIB, 5);
    (void)mempipe_collect(&pair.pipe, MEMPIPE_UP, 1000);
    sent = pair.pipe.sent[MEMPIPE_UP];
    ck_assert_int_eq(callpair_send(control, 100), FL_OK);
    while (control->messages == 0) {
        /* One frame of half the pace may be on top. */
        ck_assert_uint_le(pair.pipe.sent[MEMPIPE_UP] - sent, pace + pace / 2 + 1000);
        ck_assert_uint_gt(mempipe_collect(&pair.pipe, MEMPIPE_UP, 1000), 0);
        callpair_run(&pair);
    }
    callpair_close(&pair);
}

TEST(bulk_goes_on_beside_busy_control_streams)
{
    struct call_log *bulk;
    struct call_log *control[4];
    unsigned rounds = 0;
    int i;

    callpair_init(&pair);
    callpair_open(&pair);
    bulk = callpair_call(&pair, "Sum", 0);
    for (i = 0; i < 4; i++) {
        control[i] = callpair_call(&pair, "Silent", 0);
    }
    callpair_run(&pair);
    pair.pipe.blocked[MEMPIPE_UP] = true;
    send_all(bulk, 3 * MIB, 1);
    /* Whatever the socket takes, there is always a control stream that has something. */
    while (fl_call_queued(bulk->call) > 0) {
        ck_assert_uint_lt(++rounds, 20000);
        for (i = 0; i < 4; i++) {
            if (fl_call_queued(control[i]->call) < 32 * KIB) {
                ck_assert_int_eq(callpair_send(control[i], 30 * KIB), FL_OK);
            }
        }
        (void)mempipe_collect(&pair.pipe, MEMPIPE_UP, 10 * KIB);
        callpair_run(&pair);
    }
    callpair_close(&pair);
}

TEST(bulk_calls_share_the_connection)
{
    struct call_log *logs[4];
    size_t least = SIZE_MAX;
    size_t most = 0;
    int i;

    callpair_init(&pair);
    pair.limits.message_bytes = 64 * KIB;
    callpair_open(&pair);
    pair.pipe.blocked[MEMPIPE_UP] = true;
    for (i = 0; i < 4; i++) {
        logs[i] = callpair_call(&pair, "Sum", 0);
        send_all(logs[i], 60 * KIB, 200);
    }
    while (pair.pipe.sent[MEMPIPE_UP] < 20 * MIB) {
        (void)mempipe_collect(&pair.pipe, MEMPIPE_UP, 100000);
        callpair_run(&pair);
    }
    for (i = 0; i < 4; i++) {
        least = pair.served[i].bytes < least ? pair.served[i].bytes : least;
        most = pair.served[i].bytes > most ? pair.served[i].bytes : most;
    }
    ck_assert_uint_gt(least, 4 * MIB);
    ck_assert_uint_le(most - least, 2 * (size_t)pair.limits.frame_bytes + 60 * KIB);
    callpair_close(&pair);
}

static void count_release(void *ctx)
{
    ++*(unsigned *)ctx;
}

TEST(shared_bytes_are_released_when_the_last_receiver_has_them)
{
    static uint8_t bytes[600 * 1024];
    struct fl_blob *blob = NULL;
    struct fl_piece piece = {.data = bytes, .len = sizeof(bytes)};
    struct call_log *log[2];
    unsigned released = 0;
    int i;

    callpair_init(&pair);
    callpair_open(&pair);
    ck_assert_int_eq(fl_blob_wrap(bytes, sizeof(bytes), count_release, &released, &blob), FL_OK);
    piece.blob = blob;
    pair.pipe.blocked[MEMPIPE_UP] = true;
    for (i = 0; i < 2; i++) {
        log[i] = callpair_call(&pair, "Sum", 0);
        ck_assert_int_eq(fl_call_send(log[i]->call, &piece, 1), FL_OK);
        fl_call_end(log[i]->call);
    }
    fl_blob_unref(blob);
    callpair_run(&pair);
    ck_assert_uint_eq(released, 0);
    pair.pipe.blocked[MEMPIPE_UP] = false;
    callpair_run(&pair);
    ck_assert_uint_eq(log[0]->reply, sizeof(bytes));
    ck_assert_uint_eq(log[1]->reply, sizeof(bytes));
    ck_assert_uint_eq(released, 1);
    callpair_close(&pair);
}
