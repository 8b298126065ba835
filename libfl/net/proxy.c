/*
 * Asks an HTTP proxy for a tunnel, then passes bytes through. Runs on one loop. Does not choose the
 * proxy (proxy_rule.c) and does not read its answer (proxy_answer.c).
 */
#include "libfl/net/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/buf.h"
#include "libfl/base/str.h"
#include "libfl/net/proxy_answer.h"
#include "libfl/net/tunnel_impl.h"

/* Longest request: the address twice, and the credentials in base64. */
#define PROXY_REQUEST_MAX 2048

struct proxy_stream {
    struct fl__tunnel tunnel; /* First. */
    uint32_t timeout_ms;
    struct fl_buf request; /* secret */
    size_t asked;          /* bytes of it that were sent */
    bool connected;        /* to the proxy */
    struct fl_proxy_answer answer;
    bool with_user;                       /* the request has credentials */
    const char *file;                     /* where they are configured */
    char *target;                         /* "host:port" behind the proxy */
    char name[FL_PROXY_ADDRESS_MAX + 64]; /* of the proxy, for messages */
};

static struct proxy_stream *proxy_of_tunnel(struct fl__tunnel *tunnel)
{
    return (struct proxy_stream *)tunnel;
}

static void proxy_free(struct fl__tunnel *tunnel)
{
    struct proxy_stream *s = proxy_of_tunnel(tunnel);

    fl__tunnel_done(tunnel);
    fl_buf_done(&s->request);
    free(s->target);
    free(s);
}

/* "proxy HOST:PORT of KEY: " and the text. */
#define PROXY_FAIL(s, code, fmt, ...) \
    fl__tunnel_fail(&(s)->tunnel, code, "%s: " fmt, (s)->name, __VA_ARGS__)

static void proxy_on_timeout(void *arg)
{
    struct proxy_stream *s = arg;

    if (s->connected && s->tunnel.sm.state == FL__TUNNEL_BEFORE) {
        PROXY_FAIL(s, FL_ETIMEOUT,
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
        PROXY_FAIL(s, FL_EPERM,
                   "%u %s: it asks for authentication by %s, and only Basic is supported: ask for "
                   "an exception for %s",
                   a->status, a->reason, a->schemes, s->target);
    } else if (s->with_user) {
        PROXY_FAIL(s, FL_EPERM,
                   "%u %s: it rejected user or password: correct the line USER:PASSWORD of the "
                   "file in %s, which is read again for each connection",
                   a->status, a->reason, s->file);
    } else {
        PROXY_FAIL(s, FL_EPERM,
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
        PROXY_FAIL(s, FL_EPERM,
                   "%u %s: it does not allow connections to %s: ask its administrator to allow "
                   "CONNECT to this host and port",
                   a->status, a->reason, s->target);
    } else if (a->status == 500 || (a->status >= 502 && a->status <= 504)) {
        PROXY_FAIL(s, FL_EUNAVAIL,
                   "%u %s: it cannot reach %s: check that the server runs, and its name, port and "
                   "the firewalls behind the proxy",
                   a->status, a->reason, s->target);
    } else {
        PROXY_FAIL(s, FL_EUNAVAIL,
                   "%u %s: it opens no tunnel to %s: check that it is an HTTP proxy that allows "
                   "CONNECT",
                   a->status, a->reason, s->target);
    }
}

static void proxy_data(struct fl__tunnel *tunnel, const uint8_t *data, size_t len)
{
    struct proxy_stream *s = proxy_of_tunnel(tunnel);
    size_t used = 0;
    int rv = fl_proxy_answer_take(&s->answer, data, len, &used);

    if (rv == FL_ELIMIT) {
        PROXY_FAIL(s, FL_EPROTO, "its answer to CONNECT is longer than %u bytes",
                   FL_PROXY_ANSWER_MAX);
    } else if (rv != FL_OK || (s->answer.done && s->asked < s->request.len)) {
        PROXY_FAIL(s, FL_EPROTO,
                   "it does not answer CONNECT %s with HTTP: check that this is the address of an "
                   "HTTP proxy",
                   s->target);
    } else if (s->answer.done && s->answer.status / 100 == 2) {
        fl_buf_done(&s->request); /* The credentials are not needed any more. */
        fl__tunnel_open(tunnel);
        tunnel->cbs->on_open(tunnel->ctx);
        fl__tunnel_flow(tunnel, data + used, len - used);
    } else if (s->answer.done) {
        proxy_rejected(s);
    }
}

/* --- operations of the tunnel --- */

static void proxy_connected(struct fl__tunnel *tunnel)
{
    struct proxy_stream *s = proxy_of_tunnel(tunnel);

    s->connected = true;
    fl_stream_wake(tunnel->below);
}

static int proxy_output(struct fl__tunnel *tunnel, struct iovec *iov)
{
    const struct proxy_stream *s = proxy_of_tunnel(tunnel);

    if (s->asked == s->request.len) {
        return 0;
    }
    *iov = (struct iovec){s->request.data + s->asked, s->request.len - s->asked};
    return 1;
}

static void proxy_sent(struct fl__tunnel *tunnel, size_t n)
{
    proxy_of_tunnel(tunnel)->asked += n;
}

static int proxy_ended(struct fl__tunnel *tunnel, int code, const char *text)
{
    const struct proxy_stream *s = proxy_of_tunnel(tunnel);

    if (code != FL_OK) {
        fl__tunnel_text(tunnel, "%s: %s", s->name, text);
        return code;
    }
    fl__tunnel_text(tunnel,
                    "%s: it closed the connection without an answer to CONNECT %s; check that it "
                    "is an HTTP proxy and allows this host and port",
                    s->name, s->target);
    return FL_EUNAVAIL;
}

static const struct fl__tunnel_ops ops = {.connected = proxy_connected,
                                          .data = proxy_data,
                                          .output = proxy_output,
                                          .sent = proxy_sent,
                                          .ended = proxy_ended,
                                          .free = proxy_free};

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
    rv = fl__tunnel_init(&s->tunnel, loop, &ops, proxy_on_timeout, below);
    if (rv != FL_OK) {
        goto fail;
    }
    s->timeout_ms = timeout_ms;
    s->with_user = proxy->user[0] != '\0';
    s->file = proxy->file_key;
    (void)snprintf(s->name, sizeof(s->name), "proxy %s of %s", proxy->address, proxy->key);
    (void)snprintf(s->tunnel.peer, sizeof(s->tunnel.peer), "%s through proxy %s", address,
                   proxy->address);
    s->target = fl_str_dup(address);
    rv = s->target == NULL ? FL_ENOMEM : proxy_make_request(s, proxy);
    if (rv != FL_OK) {
        goto fail;
    }
    fl_timer_start(s->tunnel.timer, timeout_ms);
    *ret = &s->tunnel.stream;
    return FL_OK;
fail:
    proxy_free(&s->tunnel);
    return rv;
}

int fl_proxy_connect(struct fl_loop *loop, const char *address, const struct fl_proxy_rule *rule,
                     uint32_t timeout_ms, struct fl_traffic *traffic, struct fl_stream **ret,
                     struct fl_err *err)
{
    struct fl_proxy proxy = {.key = NULL};
    struct fl_stream *below = NULL;
    bool direct = true;
    int rv = fl_proxy_find(rule, address, &proxy, &direct, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (direct) {
        rv = fl_conn_connect(loop, address, timeout_ms, ret, err);
        if (rv != FL_OK) {
            return rv;
        }
        fl_conn_count(*ret, traffic);
        return FL_OK;
    }
    rv = fl_conn_connect(loop, proxy.address, timeout_ms, &below, err);
    if (rv != FL_OK) {
        goto done;
    }
    fl_conn_count(below, traffic);
    rv = proxy_wrap(loop, address, &proxy, timeout_ms, below, ret);
    if (rv != FL_OK) {
        fl_stream_close(below);
        (void)fl_err_set(err, rv, "connecting: %s", fl_strerror(rv));
    }
done:
    fl_proxy_done(&proxy);
    return rv;
}
