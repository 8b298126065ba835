/* Calls over HTTP/2: every shape and size, however the bytes are cut. */
#include <check.h>
#include <string.h>

#include "tests/lib/callpair.h"
#include "tests/lib/suites.h"

static struct callpair pair;

#define KIB ((size_t)1024)

/* Around nghttp2's default frame, around ours, and several frames. */
static const size_t sizes[] = {0,        1,         16 * KIB - 1,  16 * KIB,    16 * KIB + 1,
                               64 * KIB, 256 * KIB, 256 * KIB + 1, 3 * KIB *KIB};
#define N_SIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

/* Bytes per delivery; 0 is all at once. */
static const size_t steps[] = {0, 1, 7, 1000, 16 * 1024 + 9, 65536};
#define N_STEPS ((int)(sizeof(steps) / sizeof(steps[0])))

static void put_be32(uint8_t *p, size_t n)
{
    p[0] = (uint8_t)(n >> 24 & 0xff);
    p[1] = (uint8_t)(n >> 16 & 0xff);
    p[2] = (uint8_t)(n >> 8 & 0xff);
    p[3] = (uint8_t)(n & 0xff);
}

static void open_with_step(size_t step, size_t size)
{
    callpair_init(&pair);
    callpair_open(&pair);
    /* A byte at a time is for what a byte can cut, not for megabytes. */
    pair.pipe.step = step > 0 && size / step > 40000 ? 4096 + step : step;
}

static void expect_ok(const struct call_log *log)
{
    ck_assert_uint_eq(log->closes, 1);
    ck_assert_msg(log->status == FL_GRPC_OK, "%s: %s", fl_grpc_status_name(log->status), log->text);
    ck_assert_str_eq(log->text, "");
    ck_assert_uint_eq(log->wrong, 0);
}

TEST_EACH(a_unary_call_carries_a_message_of_any_size_both_ways, (N_SIZES * N_STEPS))
{
    size_t size = sizes[_i / N_STEPS];
    struct call_log *log;

    open_with_step(steps[_i % N_STEPS], size);
    log = callpair_call(&pair, "Echo", 0);
    ck_assert_int_eq(callpair_send(log, size), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    expect_ok(log);
    ck_assert_uint_eq(log->messages, 1);
    ck_assert_uint_eq(log->last_len, size);
    ck_assert_uint_eq(log->ends, 1);
    expect_ok(&pair.served[0]);
    ck_assert_uint_eq(pair.served[0].ends, 1);
    ck_assert_uint_eq(fl_h2_calls(pair.server), 0);
    ck_assert_uint_eq(fl_h2_calls(pair.client), 0);
    callpair_close(&pair);
}

TEST_EACH(a_client_stream_arrives_whole_and_in_order, (N_SIZES * N_STEPS))
{
    size_t size = sizes[_i / N_STEPS];
    struct call_log *log;
    int i;

    open_with_step(steps[_i % N_STEPS], size * 4);
    log = callpair_call(&pair, "Sum", 0);
    for (i = 0; i < 4; i++) {
        ck_assert_int_eq(callpair_send(log, size), FL_OK);
    }
    fl_call_end(log->call);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_OK);
    ck_assert_uint_eq(log->reply, 4 * size);
    ck_assert_uint_eq(pair.served[0].messages, 4);
    ck_assert_uint_eq(pair.served[0].wrong, 0);
    callpair_close(&pair);
}

TEST_EACH(a_server_stream_arrives_whole_and_in_order, (N_SIZES * N_STEPS))
{
    size_t size = sizes[_i / N_STEPS];
    struct call_log *log;
    uint8_t ask[8];

    open_with_step(steps[_i % N_STEPS], size * 8);
    log = callpair_call(&pair, "Give", 0);
    log->take = true;
    put_be32(ask, 8);
    put_be32(ask + 4, size);
    ck_assert_int_eq(callpair_send_text(log, ask, sizeof(ask)), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    expect_ok(log);
    ck_assert_uint_eq(log->messages, 8);
    ck_assert_uint_eq(log->bytes, 8 * size);
    callpair_close(&pair);
}

TEST_EACH(a_bidirectional_stream_is_a_conversation, N_STEPS)
{
    struct call_log *log;
    unsigned i;

    open_with_step(steps[_i], 1);
    log = callpair_call(&pair, "Echo", 0);
    for (i = 1; i <= 10; i++) {
        ck_assert_int_eq(callpair_send(log, i * 100), FL_OK);
        callpair_run(&pair);
        ck_assert_uint_eq(log->messages, i);
        ck_assert_uint_eq(log->last_len, i * 100);
        ck_assert_uint_eq(log->closes, 0);
    }
    fl_call_end(log->call);
    callpair_run(&pair);
    expect_ok(log);
    callpair_close(&pair);
}

/* One whole life of a connection with the byte streams cut at `cut`; returns their length. */
static size_t life_cut_at(int dir, size_t cut)
{
    struct call_log *log;
    size_t total;

    callpair_init(&pair);
    ck_assert_int_eq(callpair_try_open(&pair), FL_OK);
    pair.pipe.cut[dir] = cut;
    log = callpair_call(&pair, "Echo", 5000);
    ck_assert_int_eq(callpair_send(log, 40), FL_OK);
    ck_assert_int_eq(callpair_send(log, 0), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    expect_ok(log);
    ck_assert_uint_eq(log->messages, 2);
    total = pair.pipe.sent[dir];
    callpair_close(&pair);
    return total;
}

TEST_EACH(the_byte_stream_may_be_cut_at_every_position, 2)
{
    size_t total = life_cut_at(_i, 0);
    size_t cut;

    ck_assert_uint_gt(total, 100);
    for (cut = 1; cut < total; cut++) {
        (void)life_cut_at(_i, cut);
    }
}

TEST(many_calls_share_a_connection)
{
    struct call_log *logs[20];
    int i;

    callpair_init(&pair);
    callpair_open(&pair);
    pair.pipe.step = 5000;
    for (i = 0; i < 20; i++) {
        logs[i] = callpair_call(&pair, "Echo", 0);
        ck_assert_int_eq(callpair_send(logs[i], (size_t)i * 5000), FL_OK);
        fl_call_end(logs[i]->call);
    }
    ck_assert_uint_eq(fl_h2_calls(pair.client), 20);
    callpair_run(&pair);
    for (i = 0; i < 20; i++) {
        expect_ok(logs[i]);
        ck_assert_uint_eq(logs[i]->last_len, (size_t)i * 5000);
    }
    ck_assert_uint_eq(fl_h2_calls(pair.client), 0);
    callpair_close(&pair);
}

TEST(response_headers_go_out_before_any_message)
{
    struct call_log *log;
    size_t before;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Silent", 0);
    before = pair.pipe.sent[MEMPIPE_DOWN];
    callpair_run(&pair);
    ck_assert_uint_gt(pair.pipe.sent[MEMPIPE_DOWN], before);
    ck_assert_uint_eq(log->closes, 0);
    callpair_close(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_UNAVAILABLE);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_UNAVAILABLE);
}

TEST_EACH(a_status_and_its_text_reach_the_client, 17 * 6)
{
    static const char *const texts[] = {
        "", "plain", "100% of it", "zeile\nzwei\r\n", "gr\303\274\303\237e \342\202\254", "%41"};
    enum fl_grpc_status status = (enum fl_grpc_status)(_i % 17);
    const char *text = texts[_i / 17];
    struct call_log *log;
    char ask[64];

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Fail", 0);
    ask[0] = (char)status;
    (void)memcpy(ask + 1, text, strlen(text));
    ck_assert_int_eq(callpair_send_text(log, ask, 1 + strlen(text)), FL_OK);
    callpair_run(&pair);
    ck_assert_uint_eq(log->closes, 1);
    ck_assert_int_eq(log->status, status);
    ck_assert_str_eq(log->text, text);
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_OK);
    callpair_close(&pair);
}

TEST(a_method_that_is_not_offered_is_unimplemented)
{
    struct call_log *log;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Nothing", 0);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_UNIMPLEMENTED);
    ck_assert_str_eq(log->text, "unknown method /t.T/Nothing");
    ck_assert_uint_eq(pair.n_served, 0);
    callpair_close(&pair);
}

TEST(a_call_may_end_inside_its_start)
{
    struct call_log *log;

    callpair_init(&pair);
    callpair_open(&pair);
    log = callpair_call(&pair, "Refuse", 0);
    ck_assert_int_eq(callpair_send(log, 100), FL_OK);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_NOT_FOUND);
    ck_assert_str_eq(log->text, "not here");
    ck_assert_int_eq(pair.served[0].status, FL_GRPC_OK);
    log = callpair_call(&pair, "Drop", 0);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_CANCELLED);
    ck_assert_int_eq(pair.served[1].status, FL_GRPC_CANCELLED);
    callpair_close(&pair);
}

TEST(a_reply_that_comes_before_the_request_is_over_stops_the_client)
{
    struct call_log *log;

    callpair_init(&pair);
    pair.limits.message_bytes = 32 * KIB;
    pair.limits.stream_window = 64 * KIB;
    callpair_open(&pair);
    log = callpair_call(&pair, "Fail", 0);
    ck_assert_int_eq(callpair_send_text(log, "\x05gone", 5), FL_OK);
    ck_assert_int_eq(callpair_send(log, 3 * KIB * KIB), FL_OK);
    callpair_run(&pair);
    ck_assert_int_eq(log->status, FL_GRPC_NOT_FOUND);
    ck_assert_str_eq(log->text, "gone");
    ck_assert_uint_eq(pair.served[0].messages, 1);
    /* The connection is none the worse for it. */
    log = callpair_call(&pair, "Echo", 0);
    ck_assert_int_eq(callpair_send(log, 30 * KIB), FL_OK);
    fl_call_end(log->call);
    callpair_run(&pair);
    expect_ok(log);
    callpair_close(&pair);
}

TEST(the_owner_is_woken_when_calls_have_something_to_send)
{
    struct call_log *log;
    unsigned before;

    callpair_init(&pair);
    callpair_open(&pair);
    before = pair.wakes[0];
    log = callpair_call(&pair, "Echo", 0);
    ck_assert_uint_gt(pair.wakes[0], before);
    callpair_run(&pair);
    before = pair.wakes[0];
    ck_assert_int_eq(callpair_send(log, 10), FL_OK);
    ck_assert_uint_eq(pair.wakes[0], before + 1);
    callpair_run(&pair);
    before = pair.wakes[0];
    fl_call_cancel(log->call);
    ck_assert_uint_gt(pair.wakes[0], before);
    ck_assert_uint_eq(log->closes, 0);
    callpair_run(&pair);
    ck_assert_uint_eq(log->closes, 1);
    callpair_close(&pair);
}
