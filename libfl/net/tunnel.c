/*
 * Passes the bytes of a stream through once its owner has opened it. Runs on one loop. What is
 * exchanged before that is the owner's (proxy.c, balancer.c).
 */
#include "libfl/net/tunnel_impl.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/budget.h"
#include "libfl/base/str.h"

#define TUNNEL_TEXT_MAX 768

/* clang-format off */
static const struct fl_sm_state states[FL__TUNNEL_STATES] = {
    [FL__TUNNEL_FRESH]    = {"fresh",    FL_SM_TO(FL__TUNNEL_BEFORE) | FL_SM_TO(FL__TUNNEL_CLOSING)},
    [FL__TUNNEL_BEFORE]   = {"before",   FL_SM_TO(FL__TUNNEL_OPEN) | FL_SM_TO(FL__TUNNEL_CLOSING)},
    [FL__TUNNEL_OPEN]     = {"open",     FL_SM_TO(FL__TUNNEL_FLUSHING) | FL_SM_TO(FL__TUNNEL_CLOSING)},
    [FL__TUNNEL_FLUSHING] = {"flushing", FL_SM_TO(FL__TUNNEL_CLOSING)},
    [FL__TUNNEL_CLOSING]  = {"closing",  0},
};
/* clang-format on */

static struct fl__tunnel *tunnel_of(struct fl_stream *stream)
{
    return (struct fl__tunnel *)stream;
}

static bool tunnel_passes(const struct fl__tunnel *t)
{
    return t->sm.state == FL__TUNNEL_OPEN || t->sm.state == FL__TUNNEL_FLUSHING;
}

void fl__tunnel_text(struct fl__tunnel *t, const char *fmt, ...)
{
    char text[TUNNEL_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    free(t->text);
    t->text = fl_str_dup(text); /* Out of memory: the text is missing, the code is kept. */
}

void fl__tunnel_fail(struct fl__tunnel *t, int code, const char *fmt, ...)
{
    char text[TUNNEL_TEXT_MAX];
    va_list ap;

    if (t->sm.state == FL__TUNNEL_CLOSING) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    fl__tunnel_text(t, "%s", text);
    t->code = code;
    fl_sm_move(&t->sm, FL__TUNNEL_CLOSING);
    fl_stream_close(t->below);
}

/* --- input --- */

static void tunnel_release(struct fl__tunnel *t)
{
    if (t->account != NULL && t->kept_len > 0) {
        fl_account_give(t->account, t->kept_len);
    }
    free(t->kept);
    t->kept = NULL;
    t->kept_len = 0;
}

static void tunnel_keep(struct fl__tunnel *t, const uint8_t *data, size_t len)
{
    uint8_t *kept = realloc(t->kept, t->kept_len + len);

    if (kept == NULL) {
        fl__tunnel_fail(t, FL_ENOMEM, "%s: out of memory for the bytes that it sent", t->peer);
        return;
    }
    (void)memcpy(kept + t->kept_len, data, len);
    t->kept = kept;
    t->kept_len += len;
    if (t->account != NULL) {
        fl_account_add(t->account, len); /* May close this stream. */
    }
}

static void tunnel_deliver(struct fl__tunnel *t, const uint8_t *data, size_t len)
{
    if (t->sm.state != FL__TUNNEL_OPEN || len == 0 || t->cbs == NULL) {
        return;
    }
    if (t->paused || t->kept != NULL) {
        tunnel_keep(t, data, len);
    } else {
        t->cbs->on_data(t->ctx, data, len);
    }
}

static void tunnel_below_open(void *ctx)
{
    struct fl__tunnel *t = ctx;

    if (t->sm.state == FL__TUNNEL_BEFORE && t->ops->connected != NULL) {
        t->ops->connected(t);
    }
}

static void tunnel_below_data(void *ctx, const uint8_t *data, size_t len)
{
    struct fl__tunnel *t = ctx;

    if (t->sm.state == FL__TUNNEL_BEFORE) {
        t->ops->data(t, data, len);
    } else {
        tunnel_deliver(t, data, len);
    }
}

static void tunnel_below_wake(void *ctx)
{
    struct fl__tunnel *t = ctx;

    if (t->sm.state == FL__TUNNEL_OPEN && t->kept != NULL && !t->paused) {
        uint8_t *kept = t->kept;
        size_t len = t->kept_len;

        t->kept =
            NULL; /* The user may pause again in the midst of it, and keeps the rest itself. */
        tunnel_release(t);
        tunnel_deliver(t, kept, len);
        free(kept);
    }
    if (tunnel_passes(t) && t->cbs != NULL && t->cbs->on_wake != NULL) {
        t->cbs->on_wake(t->ctx);
    }
}

void fl__tunnel_open(struct fl__tunnel *t)
{
    fl_timer_stop(t->timer);
    fl_sm_move(&t->sm, FL__TUNNEL_OPEN);
    fl_stream_pause(t->below, t->paused);
}

void fl__tunnel_flow(struct fl__tunnel *t, const uint8_t *data, size_t len)
{
    tunnel_deliver(t, data, len);
    fl_stream_wake(t->below);
}

/* --- output --- */

static int tunnel_below_output(void *ctx, struct iovec *iov, int max)
{
    struct fl__tunnel *t = ctx;

    if (tunnel_passes(t)) {
        return t->cbs != NULL ? t->cbs->output(t->ctx, iov, max) : 0;
    }
    return t->sm.state == FL__TUNNEL_BEFORE && t->ops->output != NULL ? t->ops->output(t, iov) : 0;
}

static void tunnel_below_sent(void *ctx, size_t n)
{
    struct fl__tunnel *t = ctx;

    if (tunnel_passes(t)) {
        t->cbs->sent(t->ctx, n);
    } else {
        t->ops->sent(t, n);
    }
}

/* --- the end --- */

static void tunnel_below_close(void *ctx, int code, const char *text)
{
    struct fl__tunnel *t = ctx;

    if (t->code != FL_OK) {
        code = t->code;
        text = fl_strerror(code);
    } else if (t->sm.state == FL__TUNNEL_BEFORE) {
        code = t->ops->ended(t, code, text);
    }
    text = t->text != NULL ? t->text : text;
    tunnel_release(t);
    t->account = NULL;
    if (t->cbs != NULL) {
        t->cbs->on_close(t->ctx, code, text);
    }
    t->ops->free(t);
}

static const struct fl_stream_cbs below_cbs = {tunnel_below_open, tunnel_below_data,
                                               tunnel_below_wake, tunnel_below_output,
                                               tunnel_below_sent, tunnel_below_close};

/* --- table of stream functions --- */

void fl__tunnel_begin(struct fl__tunnel *t)
{
    fl_sm_move(&t->sm, FL__TUNNEL_BEFORE);
    fl_stream_start(t->below, &below_cbs, t);
}

static void tunnel_start(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx)
{
    struct fl__tunnel *t = tunnel_of(stream);

    FL_REQUIRE(t->cbs == NULL);
    t->cbs = cbs;
    t->ctx = ctx;
    if (t->sm.state == FL__TUNNEL_FRESH) {
        fl__tunnel_begin(t);
    }
}

static void tunnel_wake(struct fl_stream *stream)
{
    fl_stream_wake(tunnel_of(stream)->below);
}

static void tunnel_pause(struct fl_stream *stream, bool paused)
{
    struct fl__tunnel *t = tunnel_of(stream);

    t->paused = paused;
    if (t->sm.state != FL__TUNNEL_OPEN) {
        return; /* What comes before is read in any case. */
    }
    fl_stream_pause(t->below, paused);
    if (!paused && t->kept != NULL) {
        fl_stream_wake(t->below);
    }
}

static void tunnel_close(struct fl_stream *stream)
{
    struct fl__tunnel *t = tunnel_of(stream);
    bool fresh = t->sm.state == FL__TUNNEL_FRESH;

    if (t->sm.state != FL__TUNNEL_CLOSING) {
        fl_sm_move(&t->sm, FL__TUNNEL_CLOSING);
    }
    fl_stream_close(t->below);
    if (fresh) {
        t->ops->free(t);
    }
}

static void tunnel_close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    struct fl__tunnel *t = tunnel_of(stream);

    if (t->sm.state == FL__TUNNEL_OPEN && t->cbs != NULL) {
        fl_sm_move(&t->sm, FL__TUNNEL_FLUSHING);
        fl_stream_close_flushed(t->below, timeout_ms);
    } else if (t->sm.state <= FL__TUNNEL_OPEN) {
        tunnel_close(stream);
    }
}

static const char *tunnel_peer(const struct fl_stream *stream)
{
    return ((const struct fl__tunnel *)stream)->peer;
}

static void tunnel_charge(struct fl_stream *stream, struct fl_account *account)
{
    struct fl__tunnel *t = tunnel_of(stream);

    FL_REQUIRE(t->kept == NULL);
    t->account = account;
    if (t->sm.state == FL__TUNNEL_FRESH) {
        fl_stream_charge(t->below, account);
    }
}

static const struct fl_stream_ops ops = {.start = tunnel_start,
                                         .wake = tunnel_wake,
                                         .pause = tunnel_pause,
                                         .close = tunnel_close,
                                         .close_flushed = tunnel_close_flushed,
                                         .peer = tunnel_peer,
                                         .charge = tunnel_charge};

int fl__tunnel_init(struct fl__tunnel *t, struct fl_loop *loop, const struct fl__tunnel_ops *owner,
                    fl_loop_cb on_timer, struct fl_stream *below)
{
    t->stream.ops = &ops;
    t->ops = owner;
    t->below = below;
    fl_sm_init(&t->sm, states, FL__TUNNEL_STATES, FL__TUNNEL_FRESH);
    (void)snprintf(t->peer, sizeof(t->peer), "%s", fl_stream_peer(below));
    return fl_timer_create(loop, on_timer, t, &t->timer);
}

void fl__tunnel_done(struct fl__tunnel *t)
{
    fl_timer_close(t->timer);
    tunnel_release(t);
    free(t->text);
}
