#include "tests/lib/callpair.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint8_t callpair_byte(size_t len, size_t i)
{
    return (uint8_t)(i * 31 + (i >> 9) + len * 7);
}

static bool pattern_ok(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != callpair_byte(len, i)) {
            return false;
        }
    }
    return true;
}

int callpair_send_text(struct call_log *log, const void *data, size_t len)
{
    struct fl_piece piece = {.data = data, .len = len};

    return fl_call_send(log->call, &piece, 1);
}

int callpair_send(struct call_log *log, size_t len)
{
    struct fl_blob *blob = NULL;
    struct fl_piece pieces[3];
    size_t a = len / 3;
    size_t b = len - len / 4;
    uint8_t *bytes;
    int rv = fl_blob_create(len, &blob);

    if (rv != FL_OK) {
        return rv;
    }
    bytes = fl_blob_fill(blob);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = callpair_byte(len, i);
    }
    pieces[0] = (struct fl_piece){.data = bytes, .len = a};
    pieces[1] = (struct fl_piece){.data = bytes + a, .len = b - a, .blob = blob};
    pieces[2] = (struct fl_piece){.data = bytes + b, .len = len - b};
    rv = fl_call_send(log->call, pieces, 3);
    fl_blob_unref(blob);
    return rv;
}

/* ---- common handler code */

static void note_message(struct call_log *log, const uint8_t *data, size_t len)
{
    if (log->messages == 0) {
        log->at_first = log->pair->pipe.sent[1 - log->side];
    }
    log->messages++;
    log->bytes += len;
    log->last_len = len;
    log->wrong += pattern_ok(data, len) ? 0 : 1;
    log->after_close += log->closes;
}

static bool log_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct call_log *log = ctx;

    note_message(log, data, len);
    if (len == 8) {
        log->reply = 0;
        for (size_t i = 0; i < 8; i++) {
            log->reply = log->reply << 8 | data[i];
        }
    }
    if (log->take) {
        uint8_t *mine = fl_call_take(call);

        if (mine != NULL) {
            log->wrong += pattern_ok(mine, len) ? 0 : 1;
        }
        free(mine);
    }
    if (log->cancel) {
        fl_call_cancel(call);
    }
    return !log->hold;
}

static void log_end(struct fl_call *call, void *ctx)
{
    struct call_log *log = ctx;

    (void)call;
    log->ends++;
    log->after_close += log->closes;
}

static void log_writable(struct fl_call *call, void *ctx)
{
    struct call_log *log = ctx;

    (void)call;
    log->writables++;
    log->after_close += log->closes;
}

static void log_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                       const char *message)
{
    struct call_log *log = ctx;

    /* Using a closed call is rejected without side effects. */
    log->after_close += fl_call_send(call, NULL, 0) != FL_ECLOSED ? 1 : 0;
    fl_call_cancel(call);
    fl_call_consume(call, 1);
    log->closes++;
    log->status = status;
    (void)snprintf(log->text, sizeof(log->text), "%s", message);
    log->call = NULL;
}

const struct fl_call_handler callpair_client_handler = {
    .on_message = log_message,
    .on_end = log_end,
    .on_writable = log_writable,
    .on_closed = log_closed,
};

/* ---- the service */

static struct call_log *serve(struct fl_call *call, void *ctx,
                              const struct fl_call_handler *handler)
{
    struct callpair *pair = ctx;
    struct call_log *log = &pair->served[pair->n_served % CALLPAIR_CALLS];

    *log = (struct call_log){.call = call, .pair = pair, .side = 1};
    pair->n_served++;
    fl_call_set_handler(call, handler, log);
    return log;
}

static bool echo_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct call_log *log = ctx;
    struct fl_blob *blob = NULL;
    struct fl_piece piece = {.data = data, .len = len};
    struct fl_buf buf = {.len = len, .cap = len, .max = len};
    int rv;

    note_message(log, data, len);
    /* Every second message is echoed in the memory in which it was received. */
    buf.data = log->messages % 2 == 0 ? fl_call_take(call) : NULL;
    if (buf.data != NULL && fl_blob_from_buf(&buf, &blob) == FL_OK) {
        piece.data = fl_blob_data(blob);
        piece.blob = blob;
    }
    rv = fl_call_send(call, &piece, 1);
    fl_blob_unref(blob);
    fl_buf_done(&buf);
    if (rv != FL_OK) {
        fl_call_finish(call, fl_grpc_status_from_err(rv), "echo");
    }
    return true;
}

static void finish_ok(struct fl_call *call, void *ctx)
{
    log_end(call, ctx);
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

static bool sink_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct call_log *log = ctx;

    (void)call;
    note_message(log, data, len);
    return !log->hold;
}

static void sum_end(struct fl_call *call, void *ctx)
{
    struct call_log *log = ctx;
    uint8_t reply[8];
    struct fl_piece piece = {.data = reply, .len = sizeof(reply)};
    int rv;

    for (int i = 0; i < 8; i++) {
        reply[i] = (uint8_t)((uint64_t)log->bytes >> (56 - 8 * i) & 0xff);
    }
    log_end(call, ctx);
    rv = fl_call_send(call, &piece, 1);
    fl_call_finish(call, fl_grpc_status_from_err(rv), NULL);
}

static void give(struct fl_call *call, void *ctx)
{
    struct call_log *log = ctx;
    int rv = FL_OK;

    log_writable(call, ctx);
    while (log->to_give > 0 && rv == FL_OK) {
        rv = callpair_send(log, log->give_len);
        log->to_give -= rv == FL_OK ? 1 : 0;
    }
    if (log->to_give == 0) {
        fl_call_finish(call, FL_GRPC_OK, NULL);
    } else if (rv != FL_ELIMIT) {
        fl_call_finish(call, fl_grpc_status_from_err(rv), "give");
    }
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static bool give_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct call_log *log = ctx;

    note_message(log, data, len);
    if (len != 8) {
        fl_call_finish(call, FL_GRPC_INVALID_ARGUMENT, "eight bytes, please");
        return true;
    }
    log->to_give = be32(data);
    log->give_len = be32(data + 4);
    give(call, ctx);
    return true;
}

static bool fail_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    char text[4096];

    note_message(ctx, data, len);
    (void)snprintf(text, sizeof(text), "%.*s", (int)len - 1, (const char *)data + 1);
    fl_call_finish(call, (enum fl_grpc_status)data[0], text);
    return true;
}

static bool cancel_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    note_message(ctx, data, len);
    fl_call_cancel(call);
    return true;
}

static bool hold_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    (void)call;
    note_message(ctx, data, len);
    return false;
}

static const struct fl_call_handler echo = {echo_message, finish_ok, log_writable, log_closed};
static const struct fl_call_handler sum = {sink_message, sum_end, NULL, log_closed};
static const struct fl_call_handler giver = {give_message, NULL, give, log_closed};
static const struct fl_call_handler failing = {fail_message, NULL, NULL, log_closed};
static const struct fl_call_handler cancelling = {cancel_message, log_end, NULL, log_closed};
static const struct fl_call_handler silent = {sink_message, log_end, NULL, log_closed};
static const struct fl_call_handler holding = {hold_message, finish_ok, NULL, log_closed};

static void start_echo(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &echo);
}

static void start_sum(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &sum);
}

static void start_give(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &giver);
}

static void start_fail(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &failing);
}

static void start_refuse(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &silent);
    fl_call_finish(call, FL_GRPC_NOT_FOUND, "not here");
}

static void start_greet(struct fl_call *call, void *ctx)
{
    struct call_log *log = serve(call, ctx, &silent);
    int rv = callpair_send(log, 10);

    rv = rv == FL_OK ? callpair_send(log, 0) : rv;
    fl_call_finish(call, fl_grpc_status_from_err(rv), "bye");
}

static void start_drop(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &silent);
    fl_call_cancel(call);
}

static void start_cancel(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &cancelling);
}

static void start_silent(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &silent);
}

static void start_hold(struct fl_call *call, void *ctx)
{
    (void)serve(call, ctx, &holding);
}

/* ---- the pair */

static void count_wake(void *ctx)
{
    ++*(unsigned *)ctx;
}

void callpair_init(struct callpair *pair)
{
    static const struct fl_rpc_method methods[] = {
        {"/t.T/Echo", FL_WHO_ANYBODY, start_echo, NULL},
        {"/t.T/Sum", FL_WHO_ANYBODY, start_sum, NULL},
        {"/t.T/Give", FL_WHO_ANYBODY, start_give, NULL},
        {"/t.T/Fail", FL_WHO_ANYBODY, start_fail, NULL},
        {"/t.T/Refuse", FL_WHO_ANYBODY, start_refuse, NULL},
        {"/t.T/Drop", FL_WHO_ANYBODY, start_drop, NULL},
        {"/t.T/Cancel", FL_WHO_ANYBODY, start_cancel, NULL},
        {"/t.T/Silent", FL_WHO_ANYBODY, start_silent, NULL},
        {"/t.T/Hold", FL_WHO_ANYBODY, start_hold, NULL},
        {"/t.T/Greet", FL_WHO_ANYBODY, start_greet, NULL},
        {NULL, 0, NULL, NULL},
    };

    (void)memset(pair, 0, sizeof(*pair));
    (void)memcpy(pair->methods, methods, sizeof(methods));
    for (size_t i = 0; pair->methods[i].path != NULL; i++) {
        pair->methods[i].ctx = pair;
    }
    fl_rpc_limits_default(&pair->limits);
    pair->limits.message_bytes = 4u * 1024 * 1024;
    pair->limits.queue_bytes = 16u * 1024 * 1024;
    pair->limits.stream_window = 8u * 1024 * 1024;
    pair->client_limits = pair->limits;
    pair->now_ms = 1000;
}

int callpair_try_open(struct callpair *pair)
{
    struct fl_h2_setup setup = {.limits = pair->limits,
                                .peer = "client:1",
                                .wake = count_wake,
                                .ctx = &pair->wakes[1],
                                .methods = pair->methods};
    int rv = fl_h2_server_create(&setup, &pair->server);

    if (rv != FL_OK) {
        return rv;
    }
    setup = (struct fl_h2_setup){.limits = pair->client_limits,
                                 .peer = "server:2",
                                 .wake = count_wake,
                                 .ctx = &pair->wakes[0],
                                 .authority = "server:2"};
    rv = fl_h2_client_create(&setup, &pair->client);
    if (rv != FL_OK) {
        fl_h2_free(pair->server);
        pair->server = NULL;
        return rv;
    }
    mempipe_init(&pair->pipe, pair->client, pair->server);
    return FL_OK;
}

void callpair_open(struct callpair *pair)
{
    ck_assert_int_eq(callpair_try_open(pair), FL_OK);
    mempipe_run(&pair->pipe);
    ck_assert(fl_h2_ready(pair->client));
    ck_assert(fl_h2_ready(pair->server));
}

void callpair_close(struct callpair *pair)
{
    mempipe_done(&pair->pipe);
    for (unsigned i = 0; i < CALLPAIR_CALLS; i++) {
        ck_assert_uint_eq(pair->calls[i].after_close, 0);
        ck_assert_uint_eq(pair->served[i].after_close, 0);
        ck_assert_uint_eq(pair->calls[i].closes, i < pair->n_calls ? 1 : 0);
        ck_assert_uint_le(pair->served[i].closes, 1);
        ck_assert_ptr_null(pair->calls[i].call);
        ck_assert_ptr_null(pair->served[i].call);
    }
}

int callpair_try_call(struct callpair *pair, const char *path, uint64_t timeout_ms,
                      struct call_log **ret)
{
    struct call_log *log = &pair->calls[pair->n_calls];
    int rv;

    if (pair->n_calls >= CALLPAIR_CALLS) {
        abort();
    }
    *log = (struct call_log){.pair = pair};
    rv = fl_h2_call(pair->client, path, pair->now_ms, timeout_ms, &callpair_client_handler, log,
                    &log->call);
    if (rv == FL_OK) {
        pair->n_calls++;
        *ret = log;
    }
    return rv;
}

struct call_log *callpair_call(struct callpair *pair, const char *method, uint64_t timeout_ms)
{
    struct call_log *log = NULL;
    char path[64];

    (void)snprintf(path, sizeof(path), "/t.T/%s", method);
    ck_assert_int_eq(callpair_try_call(pair, path, timeout_ms, &log), FL_OK);
    return log;
}

void callpair_run(struct callpair *pair)
{
    mempipe_run(&pair->pipe);
}

void callpair_tick(struct callpair *pair, uint64_t ms)
{
    pair->now_ms += ms;
    fl_h2_tick(pair->client, pair->now_ms);
    fl_h2_tick(pair->server, pair->now_ms);
    callpair_run(pair);
}
