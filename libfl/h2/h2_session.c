/*
 * The life cycle of an HTTP/2 session: settings and limits, receiving, ticks, draining, and the
 * delivery of callbacks to calls. Runs on the loop of its connection. Does no I/O and reads no
 * clock.
 */
#include "libfl/h2/h2_session_impl.h"

#include <stdlib.h>

#include "libfl/base/str.h"

#define FL_RATE_MS 1000

static int create_session(struct fl_h2 *h2)
{
    nghttp2_mem mem = fl__h2_mem();
    nghttp2_session_callbacks *cbs = NULL;
    nghttp2_option *option = NULL;
    int rv = FL_ENOMEM;

    if (nghttp2_session_callbacks_new(&cbs) != 0 || nghttp2_option_new(&option) != 0) {
        goto out;
    }
    fl__h2_set_callbacks(cbs);
    fl__h2_set_output_callbacks(cbs);
    nghttp2_option_set_no_auto_window_update(option, 1);
    /* nghttp2 would keep closed streams for the priority tree, which we do not use. */
    nghttp2_option_set_no_closed_streams(option, 1);
    if (h2->server) {
        rv = nghttp2_session_server_new3(&h2->session, cbs, h2, option, &mem);
    } else {
        rv = nghttp2_session_client_new3(&h2->session, cbs, h2, option, &mem);
    }
    rv = rv == 0 ? FL_OK : FL_ENOMEM;
out:
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(cbs);
    return rv;
}

static uint32_t clamp_limit(uint32_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Clamps the limits to what HTTP/2 can express and to what keeps calls from deadlocking. */
static void set_limits(struct fl_rpc_limits *to, const struct fl_rpc_limits *from)
{
    uint32_t window;

    *to = *from;
    /*
     * The credit of a message is returned when it is complete, and nghttp2 sends a window update
     * when half the window is free: less than two messages would be a deadlock.
     */
    window = to->message_bytes < FL_H2_WINDOW_MAX / 2 ? (uint32_t)to->message_bytes * 2
                                                      : FL_H2_WINDOW_MAX;
    window = clamp_limit(window, FL_H2_WINDOW_MIN, FL_H2_WINDOW_MAX);
    to->stream_window = clamp_limit(to->stream_window, window, FL_H2_WINDOW_MAX);
    to->conn_window = clamp_limit(to->conn_window, to->stream_window, FL_H2_WINDOW_MAX);
    /* A message is being received while the user holds a window of earlier ones. */
    if (to->memory < (size_t)to->stream_window + to->message_bytes) {
        to->memory = (size_t)to->stream_window + to->message_bytes;
    }
    to->frame_bytes = clamp_limit(to->frame_bytes, FL_H2_FRAME_MIN, FL_H2_FRAME_MAX);
}

static int submit_settings(struct fl_h2 *h2)
{
    const struct fl_rpc_limits *l = &h2->conn.limits;
    nghttp2_settings_entry iv[] = {
        /* With a rate limit a transfer has no window but the credit that it is given. */
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, h2->takes != NULL ? 0 : l->stream_window},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, l->frame_bytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, l->header_bytes},
        {h2->server ? NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS : NGHTTP2_SETTINGS_ENABLE_PUSH,
         h2->server ? l->streams : 0},
    };
    int rv =
        nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, iv, sizeof(iv) / sizeof(iv[0]));

    if (rv == 0) {
        rv = nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                                   (int32_t)l->conn_window);
    }
    return rv == 0 ? FL_OK : FL_ENOMEM;
}

static int session_create(const struct fl_h2_setup *setup, bool server, struct fl_h2 **ret)
{
    struct fl_h2 *h2 = calloc(1, sizeof(*h2));
    int rv = FL_ENOMEM;

    if (h2 == NULL) {
        return FL_ENOMEM;
    }
    h2->server = server;
    h2->secure = setup->secure;
    h2->wake = setup->wake;
    h2->ctx = setup->ctx;
    h2->methods = setup->methods;
    h2->conn.ops = &fl__h2_transport;
    set_limits(&h2->conn.limits, &setup->limits);
    fl_account_open(&h2->conn.account, setup->budget, h2->conn.limits.memory, setup->ctx);
    h2->conn.notice = setup->notice;
    h2->conn.notice_ctx = setup->ctx;
    fl_h2_set_pacing(h2, SIZE_MAX);
    h2->peer = fl_str_dup(setup->peer != NULL ? setup->peer : "");
    h2->authority = fl_str_dup(setup->authority != NULL ? setup->authority : "localhost");
    h2->conn.peer = h2->peer;
    h2->conn.who = FL_WHO_PLAIN;
    if (h2->peer == NULL || h2->authority == NULL) {
        goto fail;
    }
    rv = fl__h2_bulk_new(server ? 0 : setup->limits.send_rate, &h2->sends);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__h2_bulk_new(server ? 0 : setup->limits.take_rate, &h2->takes);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = create_session(h2);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = submit_settings(h2);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = h2;
    return FL_OK;
fail:
    fl_h2_free(h2);
    return rv;
}

int fl_h2_server_create(const struct fl_h2_setup *setup, struct fl_h2 **ret)
{
    FL_REQUIRE(setup->methods != NULL);
    return session_create(setup, /* server= */ true, ret);
}

int fl_h2_client_create(const struct fl_h2_setup *setup, struct fl_h2 **ret)
{
    return session_create(setup, /* server= */ false, ret);
}

void fl_h2_dispatch(struct fl_h2 *h2)
{
    struct h2_stream *s;

    FL_REQUIRE(h2->depth == 0);
    h2->woken_dispatch = false;
    h2->depth++;
    while ((s = FL_LIST_FIRST(&h2->due, struct h2_stream, due)) != NULL) {
        fl_list_remove(&s->due);
        if (fl_call_dispatch(s->call)) {
            fl__h2_stream_free(s);
        }
    }
    h2->depth--;
}

void fl_h2_free(struct fl_h2 *h2)
{
    struct h2_stream *s;

    if (h2 == NULL) {
        return;
    }
    FL_REQUIRE(h2->depth == 0);
    h2->freeing = true;
    h2->going_away = true;
    (void)fl__h2_fail(h2, FL_ECLOSED);
    FL_LIST_FOREACH (s, &h2->all, struct h2_stream, all) {
        fl_call_closed(s->call, FL_GRPC_UNAVAILABLE, "the connection is closed");
    }
    fl_h2_dispatch(h2);
    FL_REQUIRE(fl_list_is_empty(&h2->all));
    nghttp2_session_del(h2->session);
    fl__h2_output_done(h2);
    fl_account_close(&h2->conn.account);
    fl_rpc_conn_done(&h2->conn);
    free(h2->sends);
    free(h2->takes);
    free(h2->peer);
    free(h2->authority);
    free(h2);
}

int fl_h2_recv(struct fl_h2 *h2, const void *data, size_t len)
{
    ssize_t n;

    FL_REQUIRE(h2->depth == 0);
    if (h2->code != FL_OK) {
        return h2->code;
    }
    h2->received += len;
    h2->depth++;
    n = nghttp2_session_mem_recv(h2->session, data, len);
    if (n < 0) {
        (void)fl__h2_check(h2, (int)n);
    }
    h2->depth--;
    /* Answers to received frames; a GOAWAY for a broken connection is detected here. */
    fl__h2_pump(h2, /* data= */ false);
    fl_h2_dispatch(h2);
    return h2->code;
}

void fl_h2_tick(struct fl_h2 *h2, uint64_t now_ms)
{
    struct h2_stream *s;

    /* The time is known at ticks only: the second begins with the first tick after an event. */
    if (h2->resets != 0 || h2->idle_frames != 0) {
        if (!h2->rate_anchored) {
            h2->rate_anchored = true;
            h2->rate_end = now_ms + FL_RATE_MS;
        } else if (now_ms >= h2->rate_end) {
            h2->rate_anchored = false;
            h2->resets = 0;
            h2->idle_frames = 0;
        }
    }
    fl__h2_bulk_tick(h2, now_ms);
    FL_LIST_FOREACH (s, &h2->all, struct h2_stream, all) {
        fl_call_tick(s->call, now_ms);
    }
    fl_h2_dispatch(h2);
}

uint64_t fl_h2_deadline(const struct fl_h2 *h2)
{
    uint64_t deadline = fl__h2_bulk_deadline(h2);
    const struct h2_stream *s;

    if (h2->resets > 0 || h2->idle_frames > 0) {
        deadline = h2->rate_anchored ? h2->rate_end : 0;
    }
    FL_LIST_FOREACH (s, &h2->all, struct h2_stream, all) {
        uint64_t d = fl_call_deadline(s->call);

        deadline = d < deadline ? d : deadline;
    }
    return deadline;
}

bool fl_h2_finished(const struct fl_h2 *h2)
{
    if (h2->code != FL_OK) {
        return true;
    }
    if (h2->drain == FL_H2_NOTICED) {
        return false; /* calls may be on their way */
    }
    return nghttp2_session_want_read(h2->session) == 0 &&
           nghttp2_session_want_write(h2->session) == 0 && h2->n_calls == 0;
}

bool fl_h2_ready(const struct fl_h2 *h2)
{
    return h2->settings_received;
}

int fl_h2_identify(struct fl_h2 *h2, uint32_t who, const char *why,
                   const struct fl_identity *identity)
{
    return fl_rpc_conn_identify(&h2->conn, who, why, identity);
}

uint32_t fl_h2_who(const struct fl_h2 *h2)
{
    return h2->conn.who;
}

const struct fl_identity *fl_h2_identity(const struct fl_h2 *h2)
{
    return h2->conn.identity;
}

struct fl_account *fl_h2_account(struct fl_h2 *h2)
{
    return &h2->conn.account;
}

size_t fl_h2_calls(const struct fl_h2 *h2)
{
    return h2->n_calls;
}

uint64_t fl_h2_received(const struct fl_h2 *h2)
{
    return h2->received;
}

void fl_h2_ping(struct fl_h2 *h2)
{
    if (h2->code == FL_OK) {
        (void)fl__h2_check(h2, nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL));
        fl__h2_wake_output(h2);
    }
}

/*
 * A server sends a notice first and closes after a ping has come back: calls that were already on
 * their way are still served (RFC 9113 section 6.8).
 */
void fl_h2_drain(struct fl_h2 *h2)
{
    int rv;

    if (h2->code != FL_OK || h2->drain != FL_H2_SERVING) {
        return;
    }
    if (h2->server) {
        h2->drain = FL_H2_NOTICED;
        rv = nghttp2_submit_shutdown_notice(h2->session);
        if (rv == 0) {
            rv = nghttp2_submit_ping(h2->session, NGHTTP2_FLAG_NONE, NULL);
        }
    } else {
        h2->drain = FL_H2_DRAINED;
        h2->going_away = true;
        rv = nghttp2_submit_goaway(h2->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
    }
    (void)fl__h2_check(h2, rv);
    fl__h2_wake_output(h2);
}
