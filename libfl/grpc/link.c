/*
 * One connection with its HTTP/2 session: passes bytes between stream and session, and keeps the
 * deadlines of calls, of the owner, of a draining connection and of a peer that does not read. Runs
 * on the loop of the connection. Does not decide which peers may connect (grpc_server.c).
 */
#include "libfl/grpc/link_impl.h"

#include <stdio.h>

/*
 * How long a final GOAWAY and the peer's end may take before the connection is closed without them.
 */
#define LAST_WORDS_MS 1000

static uint64_t earlier_ms(uint64_t a, uint64_t b)
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
 * Runs after every event: deadlines of calls, the owner's check, the next wake-up. Called from the
 * loop only, never inside a function of the session or of our users.
 */
static void link_update(struct fl__link *link)
{
    uint64_t now_ms = fl_loop_now(link->loop);
    uint64_t at;

    if (link->mute || link->code != FL_OK) {
        return;
    }
    if (link->h2 == NULL) { /* Not connected yet. */
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
        return; /* One of the calls above has closed it. */
    }
    if (fl__backlog_due(&link->unread, link->idle_ms) <= now_ms) {
        fl__link_abort(link, FL_ETIMEOUT, "timed out: the peer does not take what is sent");
        return;
    }
    at = earlier_ms(at, fl__backlog_due(&link->unread, link->idle_ms));
    if (link->grace_at <= now_ms) {
        fl__link_close(link, FL_OK, NULL);
        return;
    }
    at = earlier_ms(at, link->grace_at);
    set_timer(link, earlier_ms(at, fl_h2_deadline(link->h2)), now_ms);
}

static void link_on_timer(void *arg)
{
    struct fl__link *link = arg;

    link->timer_at = UINT64_MAX;
    link_update(link);
}

static void on_session_wake(void *ctx)
{
    struct fl__link *link = ctx;

    if (link->stream != NULL) {
        fl_stream_wake(link->stream);
    }
}

static void link_on_open(void *ctx)
{
    struct fl__link *link = ctx;

    link->ops->opened(link);
}

/*
 * Recognises a TLS record (RFC 8446, section 5.1) instead of HTTP/2: a ClientHello, or the alert
 * with which a TLS server answers us.
 */
static const char *speaks_tls(const uint8_t *data, size_t len)
{
    if (len < 2 || data[1] != 3) {
        return NULL;
    }
    if (data[0] == 0x16) {
        return "the peer speaks TLS, and this address is `insecure`; connect to an address with "
               "TLS, or set `insecure` on the peer too";
    }
    return data[0] == 0x15 ? "the peer speaks TLS, and `insecure` is set here; join it (fl-clientd "
                             "--join) or set `tls`"
                           : NULL;
}

/* A server that requires TLS does so until its configuration changes: a permanent error. */
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
    /* An alert is shorter than a frame header, so HTTP/2 would wait for the rest of it. */
    rv = tls != NULL ? tls_code(data) : fl_h2_recv(link->h2, data, len);
    /* Answers may be due: window updates and similar frames do not cause a wake. */
    fl_stream_wake(link->stream);
    if (rv != FL_OK && !link->mute) {
        /* The connection has failed, but the GOAWAY with the reason is still sent. */
        link->code = rv;
        link->why = tls;
        fl_stream_close_flushed(link->stream, LAST_WORDS_MS);
        return;
    }
    link_update(link);
}

static void on_wake(void *ctx)
{
    struct fl__link *link = ctx;

    if (link->code == FL_OK && !link->mute) {
        fl_h2_dispatch(link->h2);
        link_update(link);
    }
}

static int link_output(void *ctx, struct iovec *iov, int max)
{
    struct fl__link *link = ctx;
    int n;

    if (link->mute) {
        return 0;
    }
    n = fl_h2_output(link->h2, iov, max);
    if (n > 0) {
        size_t bytes;
        int i;

        fl__pacing_busy(&link->pace, fl_loop_now(link->loop));
        bytes = 0;
        for (i = 0; i < n; i++) {
            bytes += iov[i].iov_len;
        }
        fl__backlog_wait(&link->unread, fl_loop_now(link->loop), bytes);
        set_timer(link, earlier_ms(link->timer_at, fl__backlog_due(&link->unread, link->idle_ms)),
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

static void link_sent(void *ctx, size_t n)
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
    char ours[FL_ERR_BUF_SIZE]; /* the name of a peer behind a proxy is long */

    if (link->code != FL_OK) {
        code = link->code;
        (void)snprintf(ours, sizeof(ours), "%s: %s", fl_stream_peer(link->stream),
                       link->why != NULL ? link->why : fl_strerror(code));
        text = ours;
    }
    /* Calls end inside fl_h2_free(), and their owners may call the link from there. */
    link->stream = NULL;
    link->h2 = NULL;
    fl_h2_free(h2);
    fl_timer_close(link->timer);
    link->timer = NULL;
    link->ops->gone(link, code, text);
}

static const struct fl_stream_cbs stream_cbs = {
    .on_open = link_on_open,
    .on_data = on_data,
    .on_wake = on_wake,
    .output = link_output,
    .sent = link_sent,
    .on_close = on_close,
};

int fl__link_init(struct fl__link *link, struct fl_loop *loop, const struct fl__link_ops *ops)
{
    *link = (struct fl__link){.loop = loop,
                              .ops = ops,
                              .timer_at = UINT64_MAX,
                              .grace_at = UINT64_MAX,
                              .unread = {.since_ms = UINT64_MAX}};
    return fl_timer_create(loop, link_on_timer, link, &link->timer);
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
    set_timer(link, now_ms, now_ms); /* The owner's deadlines are checked whatever else happens. */
}

int fl__link_start(struct fl__link *link, const char *peer, struct fl_h2_setup *setup, bool server)
{
    int rv;

    link->idle_ms = setup->limits.idle_ms;
    setup->peer = peer;
    setup->wake = on_session_wake;
    setup->ctx = link;
    rv = server ? fl_h2_server_create(setup, &link->h2) : fl_h2_client_create(setup, &link->h2);
    if (rv != FL_OK) {
        return rv;
    }
    fl__pacing_init(&link->pace, fl_loop_now(link->loop));
    fl_h2_set_pacing(link->h2, link->pace.value);
    return FL_OK;
}

void fl__link_drain(struct fl__link *link, uint32_t grace_ms)
{
    uint64_t at = fl_loop_now(link->loop) + grace_ms;

    if (link->h2 == NULL || link->mute) {
        return;
    }
    link->grace_at = earlier_ms(link->grace_at, at);
    fl_h2_drain(link->h2);
    fl_stream_wake(link->stream); /* link_update() sets the deadline. */
}

uint64_t fl__link_keepalive(struct fl__link *link, uint64_t now_ms)
{
    uint64_t at;

    switch (fl__keepalive_check(&link->keepalive, fl_h2_received(link->h2), now_ms, &at)) {
    case FL__KEEPALIVE_PING:
        fl_h2_ping(link->h2);
        break;
    case FL__KEEPALIVE_FAILED:
        fl__link_abort(link, FL_ETIMEOUT,
                       "timed out: the connection is silent and a ping was not answered");
        break;
    default:
        break;
    }
    return at;
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
