/*
 * What peers whom nobody knows make us hold, how much of it, and for how long. The peers are
 * foreign clients (rawpeer) that do not go on: with a message, with reading, with asking.
 */
#include <check.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/rpc/frame.h"
#include "tests/lib/rawpeer.h"
#include "tests/lib/suites.h"

#define KIB     ((size_t)1024)
#define MIB     (KIB * KIB)
#define IDLE_MS 1000
#define PEERS   100

static struct rawpeer raw[PEERS];
static struct fl_budget budget;
static struct fl_rpc_limits limits;
static unsigned n_evicted, n_notices, n_closed;
static enum fl_grpc_status status;
static char notice[300];
static struct fl_call *last;

static bool ignore_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return true;
}

static bool echo_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_piece piece = {.data = data, .len = len};
    int rv = fl_call_send(call, &piece, 1);

    (void)ctx;
    if (rv == FL_ELIMIT) {
        fl_call_finish(call, FL_GRPC_RESOURCE_EXHAUSTED, "answers are not read");
    }
    return true;
}

static bool hold_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    (void)ctx;
    (void)data;
    (void)len;
    return false;
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status how, const char *message)
{
    (void)call;
    (void)ctx;
    (void)message;
    last = NULL;
    n_closed++;
    status = how;
}

static void start_ignore(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = ignore_message,
                                                   .on_closed = on_closed};

    last = call;
    fl_call_set_handler(call, &handler, ctx);
}

static void start_echo(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = echo_message,
                                                   .on_closed = on_closed};

    last = call;
    fl_call_set_handler(call, &handler, ctx);
}

static void start_hold(struct fl_call *call, void *ctx)
{
    static const struct fl_call_handler handler = {.on_message = hold_message,
                                                   .on_closed = on_closed};

    last = call;
    fl_call_set_handler(call, &handler, ctx);
}

static const struct fl_rpc_method methods[] = {{"/t.T/Ignore", FL_WHO_ANYBODY, start_ignore, NULL},
                                               {"/t.T/Echo", FL_WHO_ANYBODY, start_echo, NULL},
                                               {"/t.T/Hold", FL_WHO_ANYBODY, start_hold, NULL},
                                               {NULL, 0, NULL, NULL}};

static void on_notice(void *ctx, const struct fl_call *call, const char *reason, const char *text)
{
    ck_assert_ptr_nonnull(reason);
    (void)ctx;
    (void)call;
    n_notices++;
    ck_assert_int_eq(fl_str_copy(notice, sizeof(notice), text), FL_OK);
}

static void on_evict(void *ctx, struct fl_account *account, enum fl_evict why)
{
    (void)why;
    (void)ctx;
    (void)account;
    n_evicted++;
}

static void begin(size_t all)
{
    fl_rpc_limits_default(&limits);
    limits.idle_ms = IDLE_MS;
    fl_budget_init(&budget, all, 0, on_evict, NULL);
    n_evicted = n_notices = n_closed = 0;
    notice[0] = '\0';
    last = NULL;
}

static void open_peer(struct rawpeer *peer, uint32_t window)
{
    struct fl_h2_setup setup = {.limits = limits,
                                .peer = "raw:9",
                                .methods = methods,
                                .budget = &budget,
                                .notice = on_notice};
    struct fl_h2 *server = NULL;

    ck_assert_int_eq(fl_h2_server_create(&setup, &server), FL_OK);
    rawpeer_open(peer, server, /* server= */ false, window);
}

/* As a link does: at once when something has begun, and when a time has come. */
static uint64_t tick_until(struct rawpeer *peer, uint64_t from_ms, uint64_t until_ms,
                           unsigned closed)
{
    uint64_t now_ms = from_ms;

    while (now_ms <= until_ms && n_closed < closed) {
        if (fl_h2_deadline(peer->other) <= now_ms) {
            fl_h2_tick(peer->other, now_ms);
        }
        rawpeer_run(peer);
        now_ms++;
    }
    return now_ms - 1;
}

TEST(unfinished_messages_of_a_hundred_peers_stay_within_the_budget)
{
    /* A message of 1 MiB of which enough comes to take its memory, on each of eight streams. */
    static const uint8_t begun[5 + FL_CALL_BEGUN + 1] = {0, 0, 0x10, 0, 0, 'a', 'b', 'c'};
    unsigned p;
    unsigned i;

    begin(32 * MIB);
    for (p = 0; p < PEERS; p++) {
        open_peer(&raw[p], 65535);
        for (i = 0; i < 8; i++) {
            (void)rawpeer_request(&raw[p], "/t.T/Ignore", NULL, begun, sizeof(begun), false);
            rawpeer_run(&raw[p]);
        }
        ck_assert_uint_le(budget.used, 32 * MIB);
    }
    ck_assert_uint_gt(budget.peak, 24 * MIB); /* it was tried */
    ck_assert_uint_le(budget.peak, 32 * MIB);
    ck_assert_uint_gt(n_evicted, 0);
    ck_assert_uint_gt(n_notices, 0);
    ck_assert_str_eq(notice, "an unfinished message: memory limit of all connections exceeded by "
                             "unfinished or unread bytes");
    for (p = 0; p < PEERS; p++) {
        rawpeer_close(&raw[p]);
    }
    ck_assert_uint_eq(budget.used, 0);
}

TEST(a_message_that_has_only_begun_takes_little_memory)
{
    static const uint8_t message[5 + FL_CALL_BEGUN + 1] = {0, 0, 0x10, 0, 0};
    size_t headers;

    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, message, sizeof(message), false);
    raw[0].body_len = 5;
    rawpeer_run(&raw[0]);
    headers = budget.used;
    raw[0].body_len = sizeof(message) - 1;
    (void)nghttp2_session_resume_data(raw[0].session, 1);
    rawpeer_run(&raw[0]);
    ck_assert_uint_eq(budget.used, headers + FL_CALL_BEGUN);
    raw[0].body_len = sizeof(message);
    (void)nghttp2_session_resume_data(raw[0].session, 1);
    rawpeer_run(&raw[0]);
    ck_assert_uint_eq(budget.used, headers + 1 * MIB);
    rawpeer_close(&raw[0]);
    ck_assert_uint_eq(budget.used, 0);
}

/* One whose memory is taken at once, one that is as long as what has begun, a short one. */
static void fill_body(struct fl_buf *body)
{
    static const uint32_t lens[] = {FL_CALL_BEGUN + 1, FL_CALL_BEGUN, 100, 3 * FL_CALL_BEGUN, 7};
    size_t i;
    size_t j;

    fl_buf_init(body, 1 * MIB);
    for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        uint8_t prefix[FL_FRAME_PREFIX];

        fl_frame_prefix(prefix, lens[i]);
        ck_assert_int_eq(fl_buf_add(body, prefix, sizeof(prefix)), FL_OK);
        for (j = 0; j < lens[i]; j++) {
            ck_assert_int_eq(fl_buf_add(body, &(uint8_t){(uint8_t)(body->len * 31 >> 3)}, 1),
                             FL_OK);
        }
    }
}

TEST(messages_arrive_as_they_were_whatever_the_parts)
{
    static const size_t parts[] = {1,
                                   5,
                                   1000,
                                   FL_CALL_BEGUN - 1,
                                   FL_CALL_BEGUN,
                                   FL_CALL_BEGUN + 1,
                                   FL_CALL_BEGUN + 5,
                                   FL_CALL_BEGUN + 6};
    struct fl_buf sent;
    struct fl_buf heard;
    size_t i;

    fill_body(&sent);
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        begin(32 * MIB);
        fl_buf_init(&heard, 1 * MIB);
        open_peer(&raw[0], 1 << 20);
        raw[0].mute = true;
        raw[0].sink = &heard;
        (void)rawpeer_request(&raw[0], "/t.T/Echo", NULL, sent.data, sent.len, false);
        for (raw[0].body_len = 0; raw[0].body_len < sent.len;) {
            size_t left = sent.len - raw[0].body_len;

            raw[0].body_len += left < parts[i] ? left : parts[i];
            (void)nghttp2_session_resume_data(raw[0].session, 1);
            rawpeer_run(&raw[0]);
        }
        ck_assert_uint_eq(heard.len, sent.len);
        ck_assert_mem_eq(heard.data, sent.data, sent.len);
        rawpeer_close(&raw[0]);
        ck_assert_uint_eq(budget.used, 0);
        fl_buf_done(&heard);
    }
    fl_buf_done(&sent);
}

TEST(a_message_that_was_delivered_is_charged_as_long_as_its_memory_is_kept)
{
    static uint8_t message[5 + 300 * 1024] = {0, 0, 0x04, 0xb0, 0};

    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, message, sizeof(message), false);
    rawpeer_run(&raw[0]);
    ck_assert_uint_ge(budget.used, 300 * KIB);
    ck_assert_uint_lt(budget.used, 301 * KIB);
    fl_call_finish(last, FL_GRPC_OK, NULL);
    rawpeer_run(&raw[0]);
    ck_assert_uint_eq(budget.used, 0);
    rawpeer_close(&raw[0]);
}

TEST(what_a_handler_holds_is_charged_until_it_is_consumed)
{
    static uint8_t message[5 + 1000] = {0, 0, 0, 0x03, 0xe8};
    size_t headers;

    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Hold", NULL, "", 0, false);
    rawpeer_run(&raw[0]);
    headers = budget.used;
    ck_assert_uint_gt(headers, 0);
    (void)rawpeer_request(&raw[0], "/t.T/Hold", NULL, message, sizeof(message), false);
    rawpeer_run(&raw[0]);
    ck_assert_uint_eq(budget.used, 2 * headers + 1000);
    fl_call_consume(last, 400);
    ck_assert_uint_eq(budget.used, 2 * headers + 600);
    rawpeer_close(&raw[0]);
    ck_assert_uint_eq(budget.used, 0);
}

/* Small replies cost more than their bytes: the queue's limit counts what they cost. */
TEST(replies_that_nobody_reads_cost_no_more_than_the_queue)
{
    static uint8_t small[6 * 100000];
    size_t i;

    begin(512 * MIB);
    for (i = 0; i < sizeof(small); i += 6) {
        (void)memcpy(small + i, "\0\0\0\0\1x", 6);
    }
    open_peer(&raw[0], 0);
    (void)rawpeer_request(&raw[0], "/t.T/Echo", NULL, small, sizeof(small), false);
    rawpeer_run(&raw[0]);
    ck_assert_uint_gt(budget.peak, limits.queue_bytes / 2);
    ck_assert_uint_le(budget.peak, limits.queue_bytes + 64 * KIB);
    rawpeer_close(&raw[0]);
    ck_assert_uint_eq(budget.used, 0);
}

TEST(a_queue_that_was_taken_costs_nothing)
{
    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Echo", NULL, "\0\0\0\0\3abc\0\0\0\0\1d", 14, true);
    rawpeer_run(&raw[0]);
    fl_call_finish(last, FL_GRPC_OK, NULL);
    rawpeer_run(&raw[0]);
    ck_assert_uint_eq(n_closed, 1);
    ck_assert_uint_eq(budget.used, 0);
    rawpeer_close(&raw[0]);
}

TEST(what_its_handler_charges_goes_with_the_call)
{
    begin(1 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, "", 0, false);
    rawpeer_run(&raw[0]);
    ck_assert_int_eq(fl_call_charge(last, 500 * KIB), FL_OK);
    ck_assert_int_eq(fl_call_charge(last, 2 * MIB), FL_ELIMIT);
    ck_assert_int_eq(fl_call_charge(last, 600 * KIB), FL_ENOMEM);
    fl_call_discharge(last, 100 * KIB);
    fl_call_vouch(last, NULL);
    ck_assert_uint_eq(budget.n_known, 1);
    fl_call_cancel(last);
    rawpeer_run(&raw[0]);
    ck_assert_uint_eq(n_closed, 1);
    ck_assert_uint_eq(budget.used, 0);
    ck_assert_uint_eq(budget.n_known, 0);
    rawpeer_close(&raw[0]);
}

TEST(a_call_whose_client_is_silent_ends)
{
    uint64_t at;

    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, "", 0, false);
    rawpeer_run(&raw[0]);
    raw[0].trace[0] = '\0';
    at = tick_until(&raw[0], 500, 10000, 1);
    ck_assert_uint_eq(at, 500 + IDLE_MS);
    ck_assert_int_eq(status, FL_GRPC_DEADLINE_EXCEEDED);
    ck_assert_str_eq(notice, "timed out: the client has sent nothing for 1000 ms");
    ck_assert_str_eq(raw[0].trace,
                     "T grpc-status=4 grpc-message=timed out: the client has sent nothing for "
                     "1000 ms E R0");
    rawpeer_close(&raw[0]);
}

TEST(half_a_message_is_silence_too)
{
    uint64_t at;

    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, "\0\0\0\0\7abc", 8, false);
    at = tick_until(&raw[0], 0, 10000, 1);
    ck_assert_uint_ge(at, IDLE_MS);
    ck_assert_uint_le(at, 2 * IDLE_MS + 10);
    ck_assert_int_eq(status, FL_GRPC_DEADLINE_EXCEEDED);
    ck_assert_uint_eq(budget.used, 0);
    rawpeer_close(&raw[0]);
}

TEST(a_client_that_goes_on_sending_is_not_idle)
{
    uint64_t now_ms = 0;
    unsigned i;

    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, "\0\0\0\0\1a\0\0\0\0\1b\0\0\0\0\1c", 18,
                          false);
    raw[0].body_len = 0;
    for (i = 0; i < 9; i++) {
        raw[0].body_len += 2;
        (void)nghttp2_session_resume_data(raw[0].session, 1);
        rawpeer_run(&raw[0]);
        now_ms = tick_until(&raw[0], now_ms, now_ms + IDLE_MS - 100, 1);
    }
    ck_assert_uint_eq(n_closed, 0);
    (void)tick_until(&raw[0], now_ms, now_ms + 2 * IDLE_MS, 1);
    ck_assert_uint_eq(n_closed, 1);
    rawpeer_close(&raw[0]);
}

TEST(a_call_that_waits_for_us_does_not_end)
{
    begin(32 * MIB);
    /* The client has ended its side; the handler has all it may. */
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, "\0\0\0\0\1a", 6, true);
    (void)tick_until(&raw[0], 0, 5 * IDLE_MS, 1);
    ck_assert_uint_eq(n_closed, 0);
    rawpeer_close(&raw[0]);
    /* The handler holds its credit. */
    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Hold", NULL, "\0\0\0\0\1a", 6, false);
    (void)tick_until(&raw[0], 0, 5 * IDLE_MS, 1);
    ck_assert_uint_eq(n_closed, 0);
    fl_call_consume(last, 1);
    (void)tick_until(&raw[0], 5 * IDLE_MS, 8 * IDLE_MS, 1);
    ck_assert_uint_eq(n_closed, 1);
    rawpeer_close(&raw[0]);
    /* The handler says that it is its turn, and then that it is the client's. */
    begin(32 * MIB);
    open_peer(&raw[0], 65535);
    (void)rawpeer_request(&raw[0], "/t.T/Ignore", NULL, "", 0, false);
    rawpeer_run(&raw[0]);
    (void)tick_until(&raw[0], 0, IDLE_MS / 2, 1);
    fl_call_set_patient(last, true);
    (void)tick_until(&raw[0], IDLE_MS / 2, 5 * IDLE_MS, 1);
    ck_assert_uint_eq(n_closed, 0);
    fl_call_set_patient(last, false);
    ck_assert_uint_ge(tick_until(&raw[0], 5 * IDLE_MS, 8 * IDLE_MS, 1), 6 * IDLE_MS);
    ck_assert_uint_eq(n_closed, 1);
    rawpeer_close(&raw[0]);
}

/* Not even by sending, and not even when it is our turn. */
TEST(a_client_that_takes_nothing_ends)
{
    static const uint8_t more[] = "\0\0\0\0\1a\0\0\0\0\1b\0\0\0\0\1c\0\0\0\0\1d";
    uint64_t now_ms = 0;
    unsigned i;

    begin(32 * MIB);
    open_peer(&raw[0], 0); /* no window, ever */
    (void)rawpeer_request(&raw[0], "/t.T/Echo", NULL, more, sizeof(more) - 1, false);
    raw[0].body_len = 6;
    rawpeer_run(&raw[0]);
    fl_call_set_patient(last, true);
    for (i = 1; i < 4 && n_closed == 0; i++) {
        now_ms = tick_until(&raw[0], now_ms, now_ms + IDLE_MS * 2 / 3, 1);
        raw[0].body_len += 6;
        (void)nghttp2_session_resume_data(raw[0].session, 1);
        rawpeer_run(&raw[0]);
    }
    (void)tick_until(&raw[0], now_ms, 2 * IDLE_MS + 10, 1);
    ck_assert_uint_eq(n_closed, 1);
    ck_assert_int_eq(status, FL_GRPC_DEADLINE_EXCEEDED);
    ck_assert_str_eq(notice, "timed out: the client has taken nothing of what is sent for 1000 ms");
    ck_assert_uint_eq(budget.used, 0);
    rawpeer_close(&raw[0]);
}

TEST(a_finished_call_whose_end_is_not_taken_ends)
{
    begin(32 * MIB);
    open_peer(&raw[0], 0);
    (void)rawpeer_request(&raw[0], "/t.T/Echo", NULL, "\0\0\0\0\1a", 6, true);
    rawpeer_run(&raw[0]);
    fl_call_finish(last, FL_GRPC_OK, NULL);
    (void)tick_until(&raw[0], 0, 2 * IDLE_MS + 10, 1);
    ck_assert_uint_eq(n_closed, 1);
    ck_assert_int_eq(status, FL_GRPC_DEADLINE_EXCEEDED);
    ck_assert_uint_eq(budget.used, 0);
    rawpeer_close(&raw[0]);
}
