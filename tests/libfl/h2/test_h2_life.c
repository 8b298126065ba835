/* Cancelling, deadlines, draining and the end of connections, two of our own sides. */
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

TEST_EACH(either_side_cancels_in_any_phase, 8)
{
    struct call_log *log;
    bool server = _i >= 4;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Silent", 0);
    callpair_run(&pair);
    switch (_i % 4) {
    case 0: /* idle */
        break;
    case 1: /* with a queue */
        send_all(server ? &pair.served[0] : log, 3 * MIB, 2);
        break;
    case 2: /* in the middle of a message */
        pair.pipe.blocked[server ? MEMPIPE_DOWN : MEMPIPE_UP] = true;
        send_all(server ? &pair.served[0] : log, 3 * MIB, 2);
        (void)mempipe_collect(&pair.pipe, server ? MEMPIPE_DOWN : MEMPIPE_UP, 400 * KIB);
        (void)mempipe_deliver(&pair.pipe, server ? MEMPIPE_DOWN : MEMPIPE_UP, SIZE_MAX);
        pair.pipe.blocked[server ? MEMPIPE_DOWN : MEMPIPE_UP] = false;
        break;
    case 3: /* the request is over */
        fl_call_end(log->call);
        callpair_run(&pair);
        break;
    default:
        break;
    }
    fl_call_cancel(server ? pair.served[0].call : log->call);
    ck_assert_uint_eq((server ? &pair.served[0] : log)->closes, 0);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_CANCELLED);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_CANCELLED);
    ck_assert_uint_eq(fl_h2_calls(pair.server) + fl_h2_calls(pair.client), 0);
    /* The connection is as before. */
    log = callpair_call(&pair, "Echo", 0);
    ck_assert_int_eq(callpair_send(log, 3 * MIB), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    ck_assert_uint_eq(log->bytes, 3 * MIB);
    callpair_close(&pair);
}

TEST(a_call_may_be_cancelled_inside_on_message)
{
    struct call_log *log;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Cancel", 0);
    send_all(log, 10, 5); /* several messages in one run of bytes */
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_uint_eq(pair.served[0].messages, 1);
    ck_assert_uint_eq(pair.served[0].ends, 0);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_CANCELLED);
    log = callpair_call(&pair, "Echo", 0);
    log->cancel = true;
    send_all(log, 10, 5);
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_uint_eq(log->messages, 1);
    ck_assert_uint_eq(log->ends, 0);
    ck_assert_int_eq(log->status, FL_GRPC_CANCELLED);
    callpair_close(&pair);
}

TEST(a_deadline_ends_both_sides)
{
    struct call_log *log;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Silent", 1000);
    callpair_run(&pair);
    ck_assert_uint_eq(fl_h2_deadline(pair.server), 0);
    callpair_tick(&pair, 0);
    ck_assert_uint_eq(fl_h2_deadline(pair.server), pair.now_ms + 1000);
    callpair_tick(&pair, 999);
    ck_assert_uint_eq(log->closes + pair.served[0].closes, 0);
    fl_h2_tick(pair.server, pair.now_ms + 1);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_DEADLINE_EXCEEDED);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_DEADLINE_EXCEEDED);
    callpair_close(&pair);
}

TEST(a_deadline_frees_a_call_whose_reply_nobody_reads)
{
    struct call_log *log;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Silent", 1000);
    callpair_run(&pair);
    callpair_tick(&pair, 0);
    pair.pipe.blocked[MEMPIPE_DOWN] = true;
    send_all(&pair.served[0], 3 * MIB, 3);
    fl_call_finish(pair.served[0].call, FL_GRPC_OK, NULL);
    (void)mempipe_collect(&pair.pipe, MEMPIPE_DOWN, 100);
    fl_h2_tick(pair.server, pair.now_ms + 1000);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_DEADLINE_EXCEEDED);
    ck_assert_uint_eq(fl_h2_calls(pair.server), 0);
    pair.pipe.blocked[MEMPIPE_DOWN] = false;
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_DEADLINE_EXCEEDED);
    callpair_close(&pair);
}

TEST(a_drained_server_ends_open_calls_and_takes_no_others)
{
    struct call_log *open;
    struct call_log *late;
    struct call_log *log = NULL;

    callpair_init(&pair);
    callpair_open(&pair);
    open = callpair_call(&pair, "Echo", 0);
    callpair_run(&pair);
    pair.pipe.parked[MEMPIPE_DOWN] = true;
    fl_h2_drain(pair.server);
    fl_h2_drain(pair.server);
    callpair_run(&pair);
    ck_assert(!fl_h2_finished(pair.server));
    /* This call crosses the announcement on the wire, and is still served. */
    late = callpair_call(&pair, "Echo", 0);
    ck_assert_int_eq(callpair_send(late, 10), FL_OK);
    fl_call_end(late->call);
    callpair_run(&pair);
    pair.pipe.parked[MEMPIPE_DOWN] = false;
    callpair_run(&pair);
    ck_assert_int_eq(late->status, FL_GRPC_OK);
    ck_assert_uint_eq(late->closes, 1);
    ck_assert_int_eq(callpair_try_call(&pair, "/t.T/Echo", 0, &log), FL_ECLOSED);
    ck_assert(!fl_h2_finished(pair.server));
    ck_assert(!fl_h2_finished(pair.client));
    ck_assert_int_eq(callpair_send(open, 20), FL_OK);
    fl_call_end(open->call);
    callpair_run(&pair);
    ck_assert_int_eq(open->status, FL_GRPC_OK);
    ck_assert(fl_h2_finished(pair.server));
    ck_assert(fl_h2_finished(pair.client));
    callpair_close(&pair);
}

TEST(an_idle_server_is_drained_at_once)
{
    callpair_init(&pair);
    callpair_open(&pair);
    ck_assert(!fl_h2_finished(pair.server));
    fl_h2_drain(pair.server);
    callpair_run(&pair);
    ck_assert(fl_h2_finished(pair.server));
    ck_assert(fl_h2_finished(pair.client));
    callpair_close(&pair);
}

TEST(a_drained_client_finishes_its_calls)
{
    struct call_log *log;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Echo", 0);
    fl_h2_drain(pair.client);
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    ck_assert(fl_h2_finished(pair.client));
    ck_assert_int_eq(callpair_try_call(&pair, "/t.T/Echo", 0, &log), FL_ECLOSED);
    callpair_close(&pair);
}

TEST(freeing_a_session_closes_its_calls_as_unavailable)
{
    struct call_log *log;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Hold", 5000);
    send_all(log, 3 * MIB, 2);
    pair.pipe.parked[MEMPIPE_UP] = true;
    callpair_run(&pair);
    (void)mempipe_deliver(&pair.pipe, MEMPIPE_UP, 4 * MIB);
    ck_assert_uint_eq(pair.served[0].messages, 1);
    callpair_close(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_UNAVAILABLE);
    ck_assert_str_eq(log->text, "the connection is closed");
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_UNAVAILABLE);
    ck_assert_uint_eq(pair.served[0].ends, 0);
}
