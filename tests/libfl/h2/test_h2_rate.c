/* Calls that carry bulk go at their rate, and the others know nothing of it. Times are virtual. */
#include <check.h>
#include <string.h>

#include "libfl/base/rate.h"
#include "tests/lib/callpair.h"
#include "tests/lib/suites.h"

static struct callpair pair;

#define KIB ((size_t)1024)
#define MIB (KIB * KIB)
/* Of each message. */
#define PREFIX 5

static void open_at(uint64_t send_rate, uint64_t take_rate)
{
    callpair_init(&pair);
    pair.client_limits.send_rate = send_rate;
    pair.client_limits.take_rate = take_rate;
    callpair_open(&pair);
}

static struct call_log *begin_upload(size_t bytes)
{
    struct call_log *log = callpair_call(&pair, "Sum", 0);

    fl_call_set_bulk(log->call, FL_CALL_SENDS_BULK);
    ck_assert_int_eq(callpair_send(log, bytes - PREFIX), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    return log;
}

/* Messages of a download. */
#define PARTS 4

/* A download of `bytes`, prefixes counted, a multiple of PARTS. */
static struct call_log *begin_download(size_t bytes)
{
    struct call_log *log = callpair_call(&pair, "Give", 0);
    size_t len = bytes / PARTS - PREFIX;
    uint8_t ask[8] = {
        0,           0, 0, PARTS, (uint8_t)(len >> 24), (uint8_t)(len >> 16), (uint8_t)(len >> 8),
        (uint8_t)len};

    fl_call_set_bulk(log->call, FL_CALL_TAKES_BULK);
    ck_assert_int_eq(callpair_send_text(log, ask, sizeof(ask)), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    return log;
}

/* To the next time at which the client wants to be asked, and not one millisecond further. */
static void step(void)
{
    uint64_t at = fl_h2_deadline(pair.client);

    ck_assert_uint_ne(at, UINT64_MAX);
    callpair_tick(&pair, at > pair.now_ms ? at - pair.now_ms : 0);
}

static uint64_t portion_of(uint64_t rate)
{
    uint64_t portion = rate / 100 > 256 ? rate / 100 : 256;

    return portion < 256 * KIB ? portion : 256 * KIB;
}

static const struct {
    uint64_t rate;
    size_t bytes;
} speeds[] = {
    {1000, 10000},        {31250, 100001},       {250000, MIB},          {12500000, 3 * MIB},
    {125000000, 4 * MIB}, {1250000000, 4 * MIB}, {FL_RATE_MAX, 4 * MIB},
};
#define N_SPEEDS (int)(sizeof(speeds) / sizeof(speeds[0]))

TEST_EACH(an_upload_goes_at_its_rate_from_an_empty_bucket, N_SPEEDS)
{
    uint64_t rate = speeds[_i].rate;
    size_t total = speeds[_i].bytes;
    struct call_log *log;
    uint64_t start;

    open_at(rate, 0);
    start = pair.now_ms;
    log = begin_upload(total);
    ck_assert_uint_eq(fl_call_queued(log->call), total);
    while (log->closes == 0) {
        uint64_t may;
        size_t sent;

        step();
        may = (pair.now_ms - start) * rate / 1000;
        sent = total - (log->call != NULL ? fl_call_queued(log->call) : 0);
        ck_assert_uint_le(sent, may);
        ck_assert(sent == total || sent + portion_of(rate) > may);
    }
    /* The last byte goes in the millisecond in which it may. */
    ck_assert_uint_eq(pair.now_ms - start, (total * 1000 + rate - 1) / rate);
    ck_assert_uint_eq(log->reply, total - PREFIX);
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    callpair_close(&pair);
}

TEST_EACH(a_download_comes_at_its_rate_from_an_empty_bucket, N_SPEEDS)
{
    uint64_t rate = speeds[_i].rate;
    size_t total = speeds[_i].bytes / PARTS * PARTS;
    struct call_log *log;
    uint64_t late = portion_of(rate) * 1000 / rate + 1;
    uint64_t start;

    open_at(0, rate);
    start = pair.now_ms;
    log = begin_download(total);
    log->hold = _i % 2 == 1;
    ck_assert_uint_eq(fl_call_queued(pair.served[0].call), total);
    while (log->closes == 0) {
        uint64_t may;
        size_t sent;

        step();
        if (log->closes == 0) {
            fl_call_consume(log->call, SIZE_MAX); /* gives no credit that the rate does not give */
        }
        may = (pair.now_ms - start) * rate / 1000;
        sent = total - (pair.served[0].call != NULL ? fl_call_queued(pair.served[0].call) : 0);
        ck_assert_uint_le(sent, may);
        ck_assert(sent == total || sent + portion_of(rate) > may);
    }
    ck_assert_uint_ge(pair.now_ms - start, (total * 1000 + rate - 1) / rate);
    ck_assert_uint_le(pair.now_ms - start, (total * 1000 + rate - 1) / rate + late);
    ck_assert_uint_eq(log->messages, PARTS);
    ck_assert_uint_eq(log->wrong, 0);
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    callpair_close(&pair);
}

TEST(timers_that_fire_late_lose_nothing)
{
    static const uint64_t late[] = {0, 1, 2, 13, 1, 0, 30, 2, 2, 1};
    uint64_t rate = 12500000;
    size_t total = 4 * MIB;
    struct call_log *up;
    struct call_log *down;
    uint64_t start;
    unsigned i = 0;

    open_at(rate, rate);
    start = pair.now_ms;
    up = begin_upload(total);
    down = begin_download(total);
    while (up->closes == 0 || down->closes == 0) {
        uint64_t at = fl_h2_deadline(pair.client) + late[i++ % 10];

        callpair_tick(&pair, at > pair.now_ms ? at - pair.now_ms : 0);
    }
    ck_assert_uint_ge(pair.now_ms - start, total * 1000 / rate);
    ck_assert_uint_le(pair.now_ms - start, total * 1000 / rate + 10 + 30);
    callpair_close(&pair);
}

TEST(control_messages_pass_an_upload_that_waits_for_its_rate)
{
    struct call_log *bulk;
    struct call_log *control;
    size_t left;
    unsigned i;

    open_at(1000, 0);
    control = callpair_call(&pair, "Echo", 0);
    bulk = begin_upload(MIB);
    step();
    left = fl_call_queued(bulk->call);
    for (i = 1; i <= 100; i++) {
        ck_assert_int_eq(callpair_send(control, 300), FL_OK);
        callpair_run(&pair);
        ck_assert_uint_eq(control->messages, i); /* there and back, at the same time */
    }
    ck_assert_int_eq(callpair_send(control, 300 * KIB), FL_OK);
    callpair_run(&pair);
    ck_assert_uint_eq(control->messages, i);
    ck_assert_uint_eq(fl_call_queued(bulk->call), left);
    callpair_close(&pair);
}

TEST(control_messages_pass_a_download_that_waits_for_its_rate)
{
    struct call_log *bulk;
    struct call_log *control;
    size_t left;
    unsigned i;

    open_at(0, 1000);
    bulk = begin_download(MIB);
    control = callpair_call(&pair, "Echo", 0); /* its window does not wait for a tick */
    step();
    left = fl_call_queued(pair.served[0].call);
    for (i = 1; i <= 100; i++) {
        ck_assert_int_eq(callpair_send(control, 300 * KIB), FL_OK);
        callpair_run(&pair);
        ck_assert_uint_eq(control->messages, i);
    }
    ck_assert_uint_eq(control->wrong, 0);
    ck_assert_uint_eq(fl_call_queued(pair.served[0].call), left);
    ck_assert_uint_eq(bulk->messages, 0);
    callpair_close(&pair);
}

TEST(a_message_as_long_as_they_come_fits_the_window_of_a_control_stream)
{
    struct call_log *control;
    unsigned i;

    callpair_init(&pair);
    pair.limits.message_bytes = MIB;
    pair.client_limits = pair.limits;
    pair.client_limits.stream_window = 0; /* raised to two messages */
    pair.client_limits.take_rate = 1000;
    callpair_open(&pair);
    control = callpair_call(&pair, "Echo", 0);
    for (i = 1; i <= 20; i++) {
        ck_assert_int_eq(callpair_send(control, MIB), FL_OK);
        callpair_run(&pair);
        ck_assert_uint_eq(control->messages, i);
    }
    callpair_close(&pair);
}

TEST(a_control_stream_has_its_window_though_the_server_has_not_acknowledged_ours)
{
    struct call_log *log;
    uint8_t ask[8] = {0, 0, 0, 2, 0, 0x0f, 0xff, 0xfb}; /* two of 1 MiB with their prefixes */

    callpair_init(&pair);
    pair.client_limits.message_bytes = MIB;
    pair.client_limits.stream_window = 2 * MIB;
    pair.client_limits.take_rate = 1000;
    ck_assert_int_eq(callpair_try_open(&pair), FL_OK);
    log = callpair_call(&pair, "Give", 0);
    log->hold = true;
    ck_assert_int_eq(callpair_send_text(log, ask, sizeof(ask)), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_uint_eq(log->messages, 2);
    callpair_close(&pair);
}

TEST(a_peer_that_took_nothing_gets_a_burst_and_no_more)
{
    uint64_t rate = 1000000;
    struct call_log *log;
    size_t before;

    open_at(rate, 0);
    log = begin_upload(4 * MIB - 100);
    step();
    step();
    before = fl_call_queued(log->call);
    pair.pipe.blocked[MEMPIPE_UP] = true;
    callpair_tick(&pair, 60000);
    pair.pipe.blocked[MEMPIPE_UP] = false;
    callpair_tick(&pair, 0);
    ck_assert_uint_le(before - fl_call_queued(log->call), rate / 10);
    ck_assert_uint_gt(before - fl_call_queued(log->call), rate / 10 - portion_of(rate));
    callpair_close(&pair);
}

TEST(a_server_that_stood_still_is_ahead_by_no_more_than_its_credit)
{
    uint64_t rate = 1000000;
    size_t before;
    unsigned i;

    open_at(0, rate);
    (void)begin_download(4 * MIB - 100);
    step();
    step();
    before = fl_call_queued(pair.served[0].call);
    pair.pipe.blocked[MEMPIPE_DOWN] = true;
    for (i = 0; i < 6000; i++) {
        callpair_tick(&pair, 10);
    }
    pair.pipe.blocked[MEMPIPE_DOWN] = false;
    callpair_run(&pair);
    ck_assert_uint_le(before - fl_call_queued(pair.served[0].call), rate / 4);
    ck_assert_uint_gt(before - fl_call_queued(pair.served[0].call), rate / 4 - portion_of(rate));
    callpair_close(&pair);
}

TEST(a_transfer_begins_with_nothing_saved_up_by_the_one_before)
{
    uint64_t rate = 100000;
    size_t total = 20000;
    unsigned i;

    open_at(rate, rate);
    for (i = 0; i < 3; i++) {
        struct call_log *up = begin_upload(total);
        struct call_log *down = begin_download(total);
        uint64_t start = pair.now_ms;

        while (up->closes == 0 || down->closes == 0) {
            step();
        }
        ck_assert_uint_ge(pair.now_ms - start, total * 1000 / rate);
        callpair_tick(&pair, i * 10000);
    }
    callpair_close(&pair);
}

TEST(a_transfer_that_was_broken_off_leaves_nothing_to_the_next)
{
    uint64_t rate = 100000;
    size_t total = 20000;
    struct call_log *up;
    struct call_log *down;
    uint64_t start;

    open_at(rate, rate);
    up = begin_upload(total);
    down = begin_download(total);
    step();
    pair.pipe.blocked[MEMPIPE_UP] = true;
    pair.pipe.blocked[MEMPIPE_DOWN] = true;
    callpair_tick(&pair, 5000); /* 100 ms are saved up */
    pair.pipe.blocked[MEMPIPE_UP] = false;
    pair.pipe.blocked[MEMPIPE_DOWN] = false;
    fl_call_cancel(up->call);
    fl_call_cancel(down->call);
    fl_h2_dispatch(pair.client);
    up = begin_upload(total);
    down = begin_download(total);
    start = pair.now_ms;
    while (pair.now_ms - start < total * 1000 / rate - 20) {
        step();
        ck_assert_uint_eq(up->closes, 0);
        ck_assert_uint_eq(down->closes, 0);
    }
    callpair_close(&pair);
}

TEST(two_transfers_share_the_rate)
{
    uint64_t rate = 1000000;
    size_t total = MIB;
    struct call_log *logs[4];
    uint64_t start;
    unsigned i;

    open_at(rate, rate);
    start = pair.now_ms;
    for (i = 0; i < 4; i++) {
        logs[i] = i % 2 == 0 ? begin_upload(total) : begin_download(total);
    }
    for (i = 0; i < 50; i++) {
        step();
    }
    for (i = 0; i < 4; i++) { /* neither waits for the other */
        struct fl_call *call = i % 2 == 0 ? logs[i]->call : pair.served[i].call;

        ck_assert_uint_lt(fl_call_queued(call), total - 100000);
    }
    while (logs[0]->closes + logs[1]->closes + logs[2]->closes + logs[3]->closes < 4) {
        step();
    }
    ck_assert_uint_ge(pair.now_ms - start, 2 * total * 1000 / rate);
    ck_assert_uint_le(pair.now_ms - start, 2 * total * 1000 / rate + 100);
    callpair_close(&pair);
}

TEST(without_a_rate_nothing_waits_for_a_tick)
{
    struct call_log *up;
    struct call_log *down;

    open_at(0, 0);
    up = begin_upload(MIB);
    down = begin_download(MIB);
    ck_assert_uint_eq(up->closes, 1);
    ck_assert_uint_eq(down->closes, 1);
    ck_assert_uint_eq(fl_h2_deadline(pair.client), UINT64_MAX);
    callpair_close(&pair);
}

TEST(with_nothing_under_way_nobody_needs_to_ask)
{
    struct call_log *up;
    struct call_log *down;
    unsigned i;

    open_at(1000000, 1000000);
    ck_assert_uint_eq(fl_h2_deadline(pair.client), UINT64_MAX);
    up = begin_upload(30000);
    down = begin_download(30000);
    ck_assert_uint_eq(fl_h2_deadline(pair.client), 0);
    for (i = 0; up->closes == 0 || down->closes == 0; i++) {
        step();
    }
    ck_assert_uint_eq(fl_h2_deadline(pair.client), UINT64_MAX);
    ck_assert_uint_lt(i, 20); /* a tick for each portion, not for each millisecond */
    callpair_close(&pair);
}

/* Each byte that moves shows that the client is there. */
TEST(a_slow_upload_that_moves_is_not_idle)
{
    struct call_log *log;

    callpair_init(&pair);
    pair.limits.idle_ms = 1000;
    pair.client_limits.send_rate = 1000;
    callpair_open(&pair);
    log = begin_upload(64 * KIB); /* 65 s in one message */
    while (log->closes == 0) {
        step();
    }
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    ck_assert_uint_gt(pair.now_ms, 65000);
    callpair_close(&pair);
}

TEST(a_slow_download_that_moves_is_not_idle)
{
    struct call_log *log;

    callpair_init(&pair);
    pair.limits.idle_ms = 1000;
    pair.client_limits.take_rate = 1000;
    callpair_open(&pair);
    log = begin_download(64 * KIB);
    while (log->closes == 0) {
        step();
    }
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    ck_assert_uint_gt(pair.now_ms, 65000);
    callpair_close(&pair);
}
