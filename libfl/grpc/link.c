#include "libfl/grpc/link_impl.h"

#include <stdio.h>

/* How long last words (a GOAWAY) and the peer's end may take before we just close. */
#define LAST_WORDS_MS 1000

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void set_timer(struct fl__link *link, uint64_t at, uint64_t now_ms)
{
    if (at == link->timer_at) {
        return;
    }
    link->timer_at = at;
    if (at == UINT64_MAX) {
        fl_timer_stop(link->timer);
    } else {
        fl_timer_start(link->timer, at > now_ms ? at - now_ms : 0);
    }
}

/*
 * After anything happened: deadlines of calls, the owner's view, the next wake-up. Runs from the
 * loop only, never inside a function of the session or of our users.
 */
static void look(struct fl__link *link)
{
    uint64_t now_ms = fl_loop_now(link->loop);
    uint64_t at;

    if (link->mute || link->code != FL_OK) {
        return;
    }
    if (link->h2 == NULL) { /* It does not stand yet. */
        set_timer(link, link->ops->check(link, now_ms), now_ms);
        return;
    }
    if (fl_h2_deadline(link->h2) <= now_ms) {
        fl_h2_tick(link->h2, now_ms);
    }
    if (!link->ready && fl_h2_ready(link->h2)) {
        link->ready = true;
        if (link->ops->ready != NULL) {
            link->ops->ready(link);
        }
    }
    at = link->ops->check(link, now_ms);
    if (link->mute) {
        return; /* It was closed by what we called. */
    }
    if (fl__backlog_due(&link->unread, link->idle_ms) <= now_ms) {
        fl__link_abort(link, FL_ETIMEOUT, "it does not take what is sent");
        return;
    }
    at = earlier(at, fl__backlog_due(&link->unread, link->idle_ms));
    if (link->grace_at <= now_ms) {
        fl__link_close(link, FL_OK, NULL);
        return;
    }
    at = earlier(at, link->grace_at);
    set_timer(link, earlier(at, fl_h2_deadline(link->h2)), now_ms);
}

static void on_timer(void *arg)
{
    struct fl__link *link = arg;

    link->timer_at = UINT64_MAX;
    look(link);
}

static void on_session_wake(void *ctx)
{
    struct fl__link *link = ctx;

    if (link->stream != NULL) {
        fl_stream_wake(link->stream);
    }
}

static void on_open(void *ctx)
{
    struct fl__link *link = ctx;

    link->ops->opened(link);
}

/*
 * What begins as a record of TLS (RFC 8446, section 5.1) and is no HTTP/2: a ClientHello, or the
 * alert with which TLS answers us.
 */
static const char *speaks_tls(const uint8_t *data, size_t len)
{
    if (len < 2 || data[1] != 3) {
        return NULL;
    }
    if (data[0] == 0x16) {
        return "it speaks TLS, and this address is `insecure`: let it connect to one with TLS, or "
               "set "
               "`insecure` there too";
    }
    return data[0] == 0x15
               ? "it speaks TLS, and we are set to `insecure`: join it (fl-clientd --join) or "
                 "set `tls`"
               : NULL;
}

/* A server that wants TLS wants it until somebody changes a configuration: a permanent error. */
static int tls_code(const uint8_t *data)
{
    return data[0] == 0x15 ? FL_EPERM : FL_EPROTO;
}

static void on_data(void *ctx, const uint8_t *data, size_t len)
{
    struct fl__link *link = ctx;
    const char *tls = NULL;
    int rv;

    if (!link->arrived) {
        link->arrived = true;
        tls = speaks_tls(data, len);
        if (link->ops->arrived != NULL) {
            link->ops->arrived(link);
        }
    }
    if (link->mute || link->code != FL_OK) {
        return;
    }
    /* An alert is shorter than the head of a frame: HTTP/2 would wait for the rest of it. */
    rv = tls != NULL ? tls_code(data) : fl_h2_recv(link->h2, data, len);
    /* Answers may be due: window updates and the like do not come with a wake. */
    fl_stream_wake(link->stream);
    if (rv != FL_OK && !link->mute) {
        /* Dead, but the GOAWAY that says why still goes out. */
        link->code = rv;
        link->why = tls;
        fl_stream_close_flushed(link->stream, LAST_WORDS_MS);
        return;
    }
    look(link);
}

static void on_wake(void *ctx)
{
    struct fl__link *link = ctx;

    if (link->code == FL_OK && !link->mute) {
        fl_h2_dispatch(link->h2);
        look(link);
    }
}

static size_t bytes_of(const struct iovec *iov, int n)
{
    size_t bytes = 0;
    int i;

    for (i = 0; i < n; i++) {
        bytes += iov[i].iov_len;
    }
    return bytes;
}

static int output(void *ctx, struct iovec *iov, int max)
{
    struct fl__link *link = ctx;
    int n;

    if (link->mute) {
        return 0;
    }
    n = fl_h2_output(link->h2, iov, max);
    if (n > 0) {
        fl__pacing_busy(&link->pace, fl_loop_now(link->loop));
        fl__backlog_wait(&link->unread, fl_loop_now(link->loop), bytes_of(iov, n));
        set_timer(link, earlier(link->timer_at, fl__backlog_due(&link->unread, link->idle_ms)),
                  fl_loop_now(link->loop));
        return n;
    }
    fl__backlog_none(&link->unread);
    fl__pacing_idle(&link->pace, fl_loop_now(link->loop));
    if (n < 0 && link->code == FL_OK) {
        link->code = n;
        return n;
    }
    if (link->code == FL_OK && fl_h2_finished(link->h2)) {
        fl_stream_close_flushed(link->stream, LAST_WORDS_MS);
    }
    return 0;
}

static void sent(void *ctx, size_t n)
{
    struct fl__link *link = ctx;

    fl__backlog_taken(&link->unread, fl_loop_now(link->loop), n);
    fl_h2_sent(link->h2, n);
    fl_h2_set_pacing(link->h2, fl__pacing_sent(&link->pace, fl_loop_now(link->loop), n));
}

static void on_close(void *ctx, int code, const char *text)
{
    struct fl__link *link = ctx;
    struct fl_h2 *h2 = link->h2;
    char ours[256];

    if (link->code != FL_OK) {
        code = link->code;
        (void)snprintf(ours, sizeof(ours), "%s: %s", fl_stream_peer(link->stream),
                       link->why != NULL ? link->why : fl_strerror(code));
        text = ours;
    }
    /* Calls end inside fl_h2_free(), and their owners may turn to the link from there. */
    link->stream = NULL;
    link->h2 = NULL;
    fl_h2_free(h2);
    fl_timer_close(link->timer);
    link->timer = NULL;
    link->ops->gone(link, code, text);
}

static const struct fl_stream_cbs stream_cbs = {
    .on_open = on_open,
    .on_data = on_data,
    .on_wake = on_wake,
    .output = output,
    .sent = sent,
    .on_close = on_close,
};

int fl__link_init(struct fl__link *link, struct fl_loop *loop, const struct fl__link_ops *ops)
{
    *link = (struct fl__link){.loop = loop,
                              .ops = ops,
                              .timer_at = UINT64_MAX,
                              .grace_at = UINT64_MAX,
                              .unread = {.since_ms = UINT64_MAX}};
    return fl_timer_create(loop, on_timer, link, &link->timer);
}

void fl__link_done(struct fl__link *link)
{
    fl_timer_close(link->timer);
    link->timer = NULL;
}

void fl__link_attach(struct fl__link *link, struct fl_stream *stream)
{
    uint64_t now_ms = fl_loop_now(link->loop);

    link->stream = stream;
    fl_stream_start(stream, &stream_cbs, link);
    set_timer(link, now_ms,
              now_ms); /* Whatever else happens, the owner's deadlines are looked at. */
}

int fl__link_start(struct fl__link *link, const char *peer, struct fl_h2_setup *setup, bool server)
{
    int rv;

    link->idle_ms = setup->limits.idle_ms;
    setup->peer = peer;
    setup->wake = on_session_wake;
    setup->ctx = link;
    rv = server ? fl_h2_server_create(setup, &link->h2) : fl_h2_client_create(setup, &link->h2);
    if (rv == FL_OK) {
        fl__pacing_init(&link->pace, fl_loop_now(link->loop));
        fl_h2_set_pacing(link->h2, link->pace.value);
    }
    return rv;
}

void fl__link_drain(struct fl__link *link, uint32_t grace_ms)
{
    uint64_t at = fl_loop_now(link->loop) + grace_ms;

    if (link->h2 == NULL || link->mute) {
        return;
    }
    link->grace_at = earlier(link->grace_at, at);
    fl_h2_drain(link->h2);
    fl_stream_wake(link->stream); /* The deadline is set in look(). */
}

void fl__link_close(struct fl__link *link, int code, const char *why)
{
    if (link->stream == NULL || link->mute) {
        return;
    }
    link->mute = true;
    if (link->code == FL_OK) {
        link->code = code;
        link->why = why;
    }
    fl_stream_close_flushed(link->stream, LAST_WORDS_MS);
}

void fl__link_abort(struct fl__link *link, int code, const char *why)
{
    if (link->stream == NULL) {
        return;
    }
    link->mute = true;
    if (link->code == FL_OK) {
        link->code = code;
        link->why = why;
    }
    fl_stream_close(link->stream);
}
