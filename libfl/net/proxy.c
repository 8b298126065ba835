/*
 * Asks an HTTP proxy for a tunnel, then passes bytes through. Runs on one loop. Does not choose the
 * proxy (proxy_rule.c) and does not read its answer (proxy_answer.c).
 */
#include "libfl/net/proxy.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/sm.h"
#include "libfl/base/str.h"
#include "libfl/net/proxy_answer.h"

#define PROXY_TEXT_MAX 768
/* Longest request: the address twice, and the credentials in base64. */
#define PROXY_REQUEST_MAX 2048

/*
 *   FRESH -> CONNECTING -> ASKING -> OPEN -> FLUSHING
 *                |           |        |         |
 *                +-----------+--------+---------+--> CLOSING
 */
enum proxy_state {
    PROXY_FRESH,
    PROXY_CONNECTING, /* to the proxy */
    PROXY_ASKING,     /* CONNECT is on its way, or its answer */
    PROXY_OPEN,
    PROXY_FLUSHING, /* the user closes: output continues, input does not */
    PROXY_CLOSING,
    PROXY_STATES
};

/* clang-format off */
static const struct fl_sm_state states[PROXY_STATES] = {
    [PROXY_FRESH]      = {"fresh",      FL_SM_TO(PROXY_CONNECTING) | FL_SM_TO(PROXY_CLOSING)},
    [PROXY_CONNECTING] = {"connecting", FL_SM_TO(PROXY_ASKING) | FL_SM_TO(PROXY_CLOSING)},
    [PROXY_ASKING]     = {"asking",     FL_SM_TO(PROXY_OPEN) | FL_SM_TO(PROXY_CLOSING)},
    [PROXY_OPEN]       = {"open",       FL_SM_TO(PROXY_FLUSHING) | FL_SM_TO(PROXY_CLOSING)},
    [PROXY_FLUSHING]   = {"flushing",   FL_SM_TO(PROXY_CLOSING)},
    [PROXY_CLOSING]    = {"closing",    0},
};
/* clang-format on */

struct proxy_stream {
    struct fl_stream stream; /* First. */
    struct fl_stream *below;
    const struct fl_stream_cbs *cbs;
    void *ctx;
    struct fl_sm sm;
    struct fl_timer *timer; /* until the answer is there */
    uint32_t timeout_ms;
    struct fl_buf request; /* secret */
    size_t asked;          /* bytes of it that were sent */
    struct fl_proxy_answer answer;
    uint8_t *kept; /* bytes behind the answer, while the user has paused; NULL: none */
    size_t kept_len;
    bool paused;
    bool with_user;                       /* the request has credentials */
    int code;                             /* of on_close; FL_OK: that of the stream below */
    char *text;                           /* of on_close */
    const char *file;                     /* where its credentials are */
    char *target;                         /* "host:port" behind the proxy */
    char name[FL_PROXY_ADDRESS_MAX + 64]; /* of the proxy, for messages */
    char peer[2 * FL_PROXY_ADDRESS_MAX + 16];
};

static struct proxy_stream *proxy_stream_of(struct fl_stream *stream)
{
    return (struct proxy_stream *)stream;
}

static void proxy_free(struct proxy_stream *s)
{
    fl_timer_close(s->timer);
    fl_buf_done(&s->request);
    free(s->kept);
    free(s->target);
    free(s->text);
    free(s);
}

FL_PRINTF(3, 4)
static void proxy_fail(struct proxy_stream *s, int code, const char *fmt, ...)
{
    char text[PROXY_TEXT_MAX];
    va_list ap;
    int n;

    if (s->sm.state == PROXY_CLOSING) {
        return;
    }
    n = snprintf(text, sizeof(text), "%s: ", s->name);
    va_start(ap, fmt);
    (void)vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
    va_end(ap);
    s->code = code;
    s->text = fl_str_dup(text); /* Out of memory: the text is missing, the code is kept. */
    fl_sm_move(&s->sm, PROXY_CLOSING);
    fl_stream_close(s->below);
}

static void proxy_on_timeout(void *arg)
{
    struct proxy_stream *s = arg;

    if (s->sm.state == PROXY_ASKING) {
        proxy_fail(s, FL_ETIMEOUT,
                   "timed out after %u ms: it accepts connections but does not answer CONNECT %s; "
                   "check that it is an HTTP proxy and reaches that host",
                   (unsigned)s->timeout_ms, s->target);
    }
}

/* --- the answer --- */

static void proxy_unauthorized(struct proxy_stream *s)
{
    const struct fl_proxy_answer *a = &s->answer;

    if (!a->basic && a->schemes[0] != '\0') {
        proxy_fail(s, FL_EPERM,
                   "%u %s: it asks for authentication by %s, and only Basic is supported: ask for "
                   "an exception for %s",
                   a->status, a->reason, a->schemes, s->target);
    } else if (s->with_user) {
        proxy_fail(s, FL_EPERM,
                   "%u %s: it rejected user or password: correct the line USER:PASSWORD of the "
                   "file in %s, which is read again for each connection",
                   a->status, a->reason, s->file);
    } else {
        proxy_fail(s, FL_EPERM,
                   "%u %s: it asks for user and password: write the line USER:PASSWORD into a file "
                   "and name it in %s",
                   a->status, a->reason, s->file);
    }
}

static void proxy_rejected(struct proxy_stream *s)
{
    const struct fl_proxy_answer *a = &s->answer;

    if (a->status == 407 || (a->status == 401 && s->with_user)) { /* 401: of tinyproxy */
        proxy_unauthorized(s);
    } else if (a->status == 401 || a->status == 403) {
        proxy_fail(s, FL_EPERM,
                   "%u %s: it does not allow connections to %s: ask its administrator to allow "
                   "CONNECT to this host and port",
                   a->status, a->reason, s->target);
    } else if (a->status == 500 || (a->status >= 502 && a->status <= 504)) {
        proxy_fail(s, FL_EUNAVAIL,
                   "%u %s: it cannot reach %s: check that the server runs, and its name, port and "
                   "the firewalls behind the proxy",
                   a->status, a->reason, s->target);
    } else {
        proxy_fail(s, FL_EUNAVAIL,
                   "%u %s: it opens no tunnel to %s: check that it is an HTTP proxy that allows "
                   "CONNECT",
                   a->status, a->reason, s->target);
    }
}

/* The bytes behind the answer stay until the user reads. */
static void proxy_keep(struct proxy_stream *s, const uint8_t *data, size_t len)
{
    uint8_t *kept = realloc(s->kept, s->kept_len + len);

    if (kept == NULL) {
        proxy_fail(s, FL_ENOMEM, "out of memory for the bytes that it sent");
        return;
    }
    (void)memcpy(kept + s->kept_len, data, len);
    s->kept = kept;
    s->kept_len += len;
}

static void proxy_deliver(struct proxy_stream *s, const uint8_t *data, size_t len)
{
    if (s->sm.state != PROXY_OPEN || len == 0) {
        return;
    }
    if (s->paused || s->kept != NULL) {
        proxy_keep(s, data, len);
    } else {
        s->cbs->on_data(s->ctx, data, len);
    }
}

static void proxy_opened(struct proxy_stream *s, const uint8_t *rest, size_t len)
{
    fl_timer_stop(s->timer);
    fl_buf_done(&s->request); /* The credentials are not needed any more. */
    fl_sm_move(&s->sm, PROXY_OPEN);
    fl_stream_pause(s->below, s->paused);
    s->cbs->on_open(s->ctx);
    proxy_deliver(s, rest, len);
    fl_stream_wake(s->below); /* The user was not asked for output before. */
}

static void proxy_take_answer(struct proxy_stream *s, const uint8_t *data, size_t len)
{
    size_t used = 0;
    int rv = fl_proxy_answer_take(&s->answer, data, len, &used);

    if (rv == FL_ELIMIT) {
        proxy_fail(s, FL_EPROTO, "its answer to CONNECT is longer than %u bytes",
                   FL_PROXY_ANSWER_MAX);
    } else if (rv != FL_OK || (s->answer.done && s->asked < s->request.len)) {
        proxy_fail(s, FL_EPROTO,
                   "it does not answer CONNECT with HTTP: check that this is the address of an "
                   "HTTP proxy");
    } else if (s->answer.done && s->answer.status / 100 == 2) {
        proxy_opened(s, data + used, len - used);
    } else if (s->answer.done) {
        proxy_rejected(s);
    }
}

/* --- callbacks of the stream below --- */

static void proxy_below_open(void *ctx)
{
    struct proxy_stream *s = ctx;

    if (s->sm.state == PROXY_CONNECTING) {
        fl_sm_move(&s->sm, PROXY_ASKING);
        fl_stream_wake(s->below);
    }
}

static void proxy_below_data(void *ctx, const uint8_t *data, size_t len)
{
    struct proxy_stream *s = ctx;

    if (s->sm.state == PROXY_ASKING) {
        proxy_take_answer(s, data, len);
    } else {
        proxy_deliver(s, data, len);
    }
}

static void proxy_below_wake(void *ctx)
{
    struct proxy_stream *s = ctx;
    uint8_t *kept = s->kept;
    size_t len = s->kept_len;

    if (s->sm.state == PROXY_OPEN && kept != NULL && !s->paused) {
        s->kept = NULL;
        s->kept_len = 0;
        proxy_deliver(s, kept, len);
        free(kept);
    }
    if ((s->sm.state == PROXY_OPEN || s->sm.state == PROXY_FLUSHING) && s->cbs->on_wake != NULL) {
        s->cbs->on_wake(s->ctx);
    }
}

static int proxy_below_output(void *ctx, struct iovec *iov, int max)
{
    struct proxy_stream *s = ctx;

    if (s->sm.state == PROXY_OPEN || s->sm.state == PROXY_FLUSHING) {
        return s->cbs->output(s->ctx, iov, max);
    }
    if (s->sm.state != PROXY_ASKING || s->asked == s->request.len) {
        return 0;
    }
    *iov = (struct iovec){s->request.data + s->asked, s->request.len - s->asked};
    return 1;
}

static void proxy_below_sent(void *ctx, size_t n)
{
    struct proxy_stream *s = ctx;

    if (s->sm.state == PROXY_OPEN || s->sm.state == PROXY_FLUSHING) {
        s->cbs->sent(s->ctx, n);
    } else {
        s->asked += n;
    }
}

static void proxy_below_close(void *ctx, int code, const char *text)
{
    struct proxy_stream *s = ctx;
    char line[PROXY_TEXT_MAX];

    if (s->code != FL_OK) {
        code = s->code;
        text = s->text != NULL ? s->text : fl_strerror(code);
    } else if (s->sm.state < PROXY_OPEN && code != FL_OK) {
        (void)snprintf(line, sizeof(line), "%s: %s", s->name, text);
        text = line;
    } else if (s->sm.state < PROXY_OPEN) {
        code = FL_EUNAVAIL;
        (void)snprintf(line, sizeof(line),
                       "%s: it closed the connection without an answer to CONNECT %s; check that "
                       "it is an HTTP proxy and allows this host and port",
                       s->name, s->target);
        text = line;
    }
    s->cbs->on_close(s->ctx, code, text);
    proxy_free(s);
}

static const struct fl_stream_cbs below_cbs = {proxy_below_open, proxy_below_data,
                                               proxy_below_wake, proxy_below_output,
                                               proxy_below_sent, proxy_below_close};

/* --- table of stream functions --- */

static void proxy_start(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx)
{
    struct proxy_stream *s = proxy_stream_of(stream);

    s->cbs = cbs;
    s->ctx = ctx;
    fl_sm_move(&s->sm, PROXY_CONNECTING);
    fl_timer_start(s->timer, s->timeout_ms);
    fl_stream_start(s->below, &below_cbs, s);
}

static void proxy_wake(struct fl_stream *stream)
{
    fl_stream_wake(proxy_stream_of(stream)->below);
}

static void proxy_pause(struct fl_stream *stream, bool paused)
{
    struct proxy_stream *s = proxy_stream_of(stream);

    s->paused = paused;
    if (s->sm.state != PROXY_OPEN) {
        return; /* The answer is read in any case. */
    }
    fl_stream_pause(s->below, paused);
    if (!paused && s->kept != NULL) {
        fl_stream_wake(s->below);
    }
}

static void proxy_close(struct fl_stream *stream)
{
    struct proxy_stream *s = proxy_stream_of(stream);
    bool fresh = s->sm.state == PROXY_FRESH;

    if (s->sm.state != PROXY_CLOSING) {
        fl_sm_move(&s->sm, PROXY_CLOSING);
    }
    fl_stream_close(s->below);
    if (fresh) {
        proxy_free(s);
    }
}

static void proxy_close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    struct proxy_stream *s = proxy_stream_of(stream);

    if (s->sm.state == PROXY_OPEN) {
        fl_sm_move(&s->sm, PROXY_FLUSHING);
        fl_stream_close_flushed(s->below, timeout_ms);
    } else if (s->sm.state < PROXY_OPEN) {
        proxy_close(stream);
    }
}

static const char *proxy_peer(const struct fl_stream *stream)
{
    return ((const struct proxy_stream *)stream)->peer;
}

static void proxy_charge(struct fl_stream *stream, struct fl_account *account)
{
    fl_stream_charge(proxy_stream_of(stream)->below, account);
}

static const struct fl_stream_ops ops = {.start = proxy_start,
                                         .wake = proxy_wake,
                                         .pause = proxy_pause,
                                         .close = proxy_close,
                                         .close_flushed = proxy_close_flushed,
                                         .peer = proxy_peer,
                                         .charge = proxy_charge};

/* --- the request --- */

/* Base64 of RFC 4648, section 4. */
static int proxy_add_base64(struct fl_buf *out, const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text);
    int rv = FL_OK;

    for (; left > 0 && rv == FL_OK; at += 3) {
        size_t n = left < 3 ? left : 3;
        unsigned bits = (unsigned)at[0] << 16 | (n > 1 ? (unsigned)at[1] << 8 : 0) |
                        (n > 2 ? (unsigned)at[2] : 0);
        const char quad[4] = {letters[bits >> 18], letters[bits >> 12 & 63],
                              n > 1 ? letters[bits >> 6 & 63] : '=',
                              n > 2 ? letters[bits & 63] : '='};

        rv = fl_buf_add(out, quad, sizeof(quad));
        left -= n;
    }
    return rv;
}

static int proxy_add_user(struct fl_buf *out, const char *user)
{
    int rv = fl_buf_printf(out, "Proxy-Authorization: Basic ");

    if (rv != FL_OK) {
        return rv;
    }
    rv = proxy_add_base64(out, user);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_add(out, "\r\n", 2);
}

static int proxy_make_request(struct proxy_stream *s, const struct fl_proxy *proxy)
{
    int rv;

    fl_buf_init(&s->request, PROXY_REQUEST_MAX);
    s->request.secret = true;
    rv = fl_buf_printf(&s->request, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", s->target, s->target);
    if (rv != FL_OK) {
        return rv;
    }
    if (s->with_user) {
        rv = proxy_add_user(&s->request, proxy->user);
    }
    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_add(&s->request, "\r\n", 2);
}

static int proxy_wrap(struct fl_loop *loop, const char *address, const struct fl_proxy *proxy,
                      uint32_t timeout_ms, struct fl_stream *below, struct fl_stream **ret)
{
    struct proxy_stream *s = calloc(1, sizeof(*s));
    int rv;

    if (s == NULL) {
        return FL_ENOMEM;
    }
    s->stream.ops = &ops;
    s->below = below;
    s->timeout_ms = timeout_ms;
    s->with_user = proxy->user[0] != '\0';
    s->file = proxy->file_key;
    (void)snprintf(s->name, sizeof(s->name), "proxy %s of %s", proxy->address, proxy->key);
    (void)snprintf(s->peer, sizeof(s->peer), "%s through proxy %s", address, proxy->address);
    fl_sm_init(&s->sm, states, PROXY_STATES, PROXY_FRESH);
    s->target = fl_str_dup(address);
    rv = s->target == NULL ? FL_ENOMEM : proxy_make_request(s, proxy);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_timer_create(loop, proxy_on_timeout, s, &s->timer);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = &s->stream;
    return FL_OK;
fail:
    proxy_free(s);
    return rv;
}

int fl_proxy_connect(struct fl_loop *loop, const char *address, const struct fl_proxy_rule *rule,
                     uint32_t timeout_ms, struct fl_stream **ret, struct fl_err *err)
{
    struct fl_proxy proxy = {.key = NULL};
    struct fl_stream *below = NULL;
    bool direct = true;
    int rv = fl_proxy_find(rule, address, &proxy, &direct, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (direct) {
        return fl_conn_connect(loop, address, timeout_ms, ret, err);
    }
    rv = fl_conn_connect(loop, proxy.address, timeout_ms, &below, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = proxy_wrap(loop, address, &proxy, timeout_ms, below, ret);
    if (rv != FL_OK) {
        fl_stream_close(below);
        (void)fl_err_set(err, rv, "connecting: %s", fl_strerror(rv));
    }
done:
    fl_proxy_done(&proxy);
    return rv;
}
