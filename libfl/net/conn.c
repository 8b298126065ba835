/*
 * A connected or connecting socket as an fl_stream: reading, pulling and writing output, flushing
 * and closing, with the states of net_impl.h. Runs on the thread of its loop. Does not resolve
 * names or try addresses (dial.c) and does not accept (listen.c).
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/net/net_impl.h"

/* One writev() takes this many runs; 64 frames of 16 KiB are the share of one turn. */
#define IOV_MAX_RUNS 64
/*
 * Bytes handed to libuv when the socket is full; these can no longer be overtaken. Everything
 * beyond stays with `output`, which can still put a control message in front of it.
 */
#define COMMIT_BYTES (64u * 1024)
/*
 * Bytes that may wait unsent in the kernel. At 2 Mbit/s 64 KiB delay a control message behind them
 * by a quarter of a second; on loopback the limit has no measurable cost.
 */
#define NOTSENT_BYTES (64 * 1024)
/* After this long without traffic the kernel sends TCP keepalive probes. */
#define KEEPALIVE_S 60

/* On unix, libuv documents that uv_buf_t has the layout of iovec. */
_Static_assert(sizeof(uv_buf_t) == sizeof(struct iovec) &&
                   offsetof(uv_buf_t, base) == offsetof(struct iovec, iov_base) &&
                   offsetof(uv_buf_t, len) == offsetof(struct iovec, iov_len),
               "uv_buf_t is not an iovec");

/* clang-format off */
static const struct fl_sm_state states[] = {
    [FL__CONN_RESOLVING]  = {"resolving",  FL_SM_TO(FL__CONN_CONNECTING) | FL_SM_TO(FL__CONN_CLOSING)},
    [FL__CONN_CONNECTING] = {"connecting", FL_SM_TO(FL__CONN_OPEN) | FL_SM_TO(FL__CONN_CLOSING)},
    [FL__CONN_FRESH]      = {"fresh",      FL_SM_TO(FL__CONN_OPEN) | FL_SM_TO(FL__CONN_CLOSING)},
    [FL__CONN_OPEN]       = {"open",       FL_SM_TO(FL__CONN_FLUSHING) | FL_SM_TO(FL__CONN_CLOSING)},
    [FL__CONN_FLUSHING]   = {"flushing",   FL_SM_TO(FL__CONN_LINGERING) | FL_SM_TO(FL__CONN_CLOSING)},
    [FL__CONN_LINGERING]  = {"lingering",  FL_SM_TO(FL__CONN_CLOSING)},
    [FL__CONN_CLOSING]    = {"closing",    FL_SM_TO(FL__CONN_CLOSED)},
    [FL__CONN_CLOSED]     = {"closed",     0},
};
/* clang-format on */

static bool is_open(const struct fl_conn *conn)
{
    return conn->sm.state == FL__CONN_OPEN || conn->sm.state == FL__CONN_FLUSHING;
}

static void conn_wake(struct fl_conn *conn)
{
    if (is_open(conn)) {
        fl__conn_due(conn);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    fl__conn_handle_gone(handle->data);
}

static void on_flush_over(uv_timer_t *timer)
{
    struct fl_conn *conn = timer->data;

    FL_REQUIRE(conn->magic == FL__CONN_MAGIC);
    if (conn->sm.state == FL__CONN_FLUSHING) {
        fl__conn_fail(conn, FL_ETIMEOUT, "%s: closed with unsent bytes", conn->peer);
    } else {
        fl__conn_close(conn); /* LINGERING: everything was sent. */
    }
}

int fl__conn_stream_init(struct fl_conn *conn, bool is_unix)
{
    int status;

    /* Neither call opens a descriptor. */
    if (is_unix) {
        status = uv_pipe_init(&conn->loop->uv, &conn->u.pipe, 0);
    } else {
        status = uv_tcp_init(&conn->loop->uv, &conn->u.tcp);
    }
    if (status != 0) {
        return fl_uv_err(status);
    }
    conn->u.handle.data = conn;
    conn->stream_live = true;
    conn->n_handles++;
    return FL_OK;
}

/* The share of this turn is used up: returning no buffer ends libuv's read loop for now. */
static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct fl_conn *conn = handle->data;

    (void)suggested;
    if (conn->turn != conn->loop->turn) {
        conn->turn = conn->loop->turn;
        conn->turn_bytes = 0;
    }
    buf->base = conn->loop->read_buf;
    buf->len = conn->turn_bytes < FL__TURN_BYTES ? FL__READ_BYTES : 0;
}

static void conn_on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct fl_conn *conn = stream->data;

    FL_REQUIRE(conn->magic == FL__CONN_MAGIC);
    if (nread == 0 || nread == UV_ENOBUFS) {
        return;
    }
    if (nread > 0) {
        conn->turn_bytes += (size_t)nread;
        if (conn->traffic != NULL) {
            atomic_fetch_add_explicit(&conn->traffic->in, (size_t)nread, memory_order_relaxed);
        }
        if (conn->sm.state == FL__CONN_OPEN) {
            conn->cbs->on_data(conn->ctx, (const uint8_t *)buf->base, (size_t)nread);
        }
        return;
    }
    if (nread == UV_EOF && conn->sm.state == FL__CONN_FLUSHING) {
        /* The peer may have closed its half only: the remaining output is still sent, or fails. */
        conn->peer_ended = true;
        return;
    }
    if (nread == UV_EOF || conn->sm.state == FL__CONN_LINGERING) {
        /* Lingering, everything was sent: how the peer closes does not matter. */
        fl__conn_close(conn);
        return;
    }
    fl__conn_fail(conn, fl_uv_err((int)nread), "%s: %s", conn->peer, uv_strerror((int)nread));
}

void fl__conn_established(struct fl_conn *conn, bool is_unix)
{
    uv_os_fd_t fd;

    if (is_unix) {
        (void)snprintf(conn->peer, sizeof(conn->peer), "unix");
        conn->identity = uv_fileno(&conn->u.handle, &fd) == 0 ? fl__local_identity(fd) : NULL;
    } else {
        int lowat = NOTSENT_BYTES;
        struct sockaddr_storage addr;
        struct fl_ip ip;
        int len;

        /*
         * The kernel tunes the socket buffers; setting SO_RCVBUF would switch its autotuning off.
         * Each option is only an improvement, so a kernel that refuses one is no error.
         */
        (void)uv_tcp_nodelay(&conn->u.tcp, 1);
        (void)uv_tcp_keepalive(&conn->u.tcp, 1, KEEPALIVE_S);
        if (uv_fileno(&conn->u.handle, &fd) == 0) {
            (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, sizeof(lowat));
        }
        len = sizeof(addr);
        if (uv_tcp_getpeername(&conn->u.tcp, (struct sockaddr *)&addr, &len) != 0) {
            (void)snprintf(conn->peer, sizeof(conn->peer), "unknown");
            return;
        }
        if (addr.ss_family == AF_INET) {
            const struct sockaddr_in *ip4 = (const struct sockaddr_in *)(void *)&addr;

            fl_ip_of_v4((const uint8_t *)&ip4->sin_addr, &ip);
        } else {
            const struct sockaddr_in6 *ip6 = (const struct sockaddr_in6 *)(void *)&addr;

            /* A socket that listens on "*" reports an IPv4 peer as a mapped address. */
            (void)memcpy(ip.bytes, &ip6->sin6_addr, sizeof(ip.bytes));
        }
        /* sin_port and sin6_port have the same offset. */
        fl_ip_peer(&ip, ntohs(((const struct sockaddr_in *)(void *)&addr)->sin_port), conn->peer);
    }
}

static void start_reading(struct fl_conn *conn)
{
    int status = uv_read_start(&conn->u.stream, on_alloc, conn_on_read);

    /* UV_ENOTCONN: the peer has reset a connection that was accepted a moment ago. */
    if (status != 0 && status != UV_EALREADY) {
        fl__conn_fail(conn, fl_uv_err(status), "%s: %s", conn->peer, uv_strerror(status));
    }
}

void fl__conn_opened(struct fl_conn *conn)
{
    FL_REQUIRE(conn->cbs != NULL);
    fl_sm_move(&conn->sm, FL__CONN_OPEN);
    start_reading(conn);
    conn_wake(conn);
}

void fl__conn_handle_gone(struct fl_conn *conn)
{
    FL_REQUIRE(conn->magic == FL__CONN_MAGIC && conn->n_handles > 0);
    conn->n_handles--;
    if (conn->n_handles > 0 || conn->sm.state != FL__CONN_CLOSING) {
        return;
    }
    fl_sm_move(&conn->sm, FL__CONN_CLOSED);
    fl__loop_closed(conn->loop);
    if (conn->cbs != NULL) {
        conn->cbs->on_close(conn->ctx, conn->code, conn->text != NULL ? conn->text : "closed");
    }
    fl__dial_free(conn);
    conn->magic = 0;
    free(conn->identity);
    free(conn->text);
    free(conn);
}

static void count_sent(const struct fl_conn *conn, size_t n)
{
    if (conn->traffic != NULL) {
        atomic_fetch_add_explicit(&conn->traffic->out, n, memory_order_relaxed);
    }
}

static void conn_begin_close(struct fl_conn *conn, int code)
{
    fl_sm_move(&conn->sm, FL__CONN_CLOSING);
    conn->code = code;
    fl__conn_not_due(conn);
    fl__loop_closing(conn->loop);
    if (conn->dial != NULL) {
        fl__resolve_cancel(conn->dial->resolve);
        conn->dial->resolve = NULL;
    }
    if (conn->writing > 0) { /* Closing drops what the socket has not taken. */
        count_sent(conn, conn->writing - uv_stream_get_write_queue_size(&conn->u.stream));
        conn->writing = 0;
    }
    if (conn->stream_live) {
        conn->stream_live = false;
        uv_close(&conn->u.handle, on_handle_closed);
    }
    uv_close((uv_handle_t *)&conn->timer, on_handle_closed);
}

void fl__conn_fail(struct fl_conn *conn, int code, const char *fmt, ...)
{
    char text[FL__TEXT_MAX];
    va_list ap;

    if (conn->sm.state >= FL__CONN_CLOSING) {
        return;
    }
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    conn->text = fl_str_dup(text); /* Out of memory: the text is missing, the code is kept. */
    conn_begin_close(conn, code);
}

void fl__conn_close(struct fl_conn *conn)
{
    if (conn->sm.state < FL__CONN_CLOSING) {
        conn_begin_close(conn, FL_OK);
    }
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    /*
     * The shutdown was cancelled by closing, or the peer has closed first: the read callback
     * handles both.
     */
    (void)req;
    (void)status;
}

static void send_output(struct fl_conn *conn);

static void conn_sent(struct fl_conn *conn, size_t n)
{
    count_sent(conn, n);
    conn->cbs->sent(conn->ctx, n);
}

static void on_written(uv_write_t *req, int status)
{
    struct fl_conn *conn = req->handle->data;
    size_t n = conn->writing;

    FL_REQUIRE(conn->magic == FL__CONN_MAGIC);
    conn->writing = 0;
    if (status == UV_ECANCELED || !is_open(conn)) {
        return;
    }
    if (status != 0) {
        fl__conn_fail(conn, fl_uv_err(status), "%s: %s", conn->peer, uv_strerror(status));
        return;
    }
    conn_sent(conn, n);
    if (is_open(conn)) {
        send_output(conn);
    }
}

/* Pulls and writes until there is no output, the socket is full, or the turn's share is used up. */
static void send_output(struct fl_conn *conn)
{
    struct iovec iov[IOV_MAX_RUNS];
    size_t written = 0;
    bool full = false;

    while (written < FL__TURN_BYTES) {
        int n = conn->cbs->output(conn->ctx, iov, IOV_MAX_RUNS);
        int status;
        size_t sum;
        int i;

        if (!is_open(conn)) {
            return;
        }
        if (n < 0) {
            fl__conn_fail(conn, n, "%s: %s", conn->peer, fl_strerror(n));
            return;
        }
        if (n == 0) {
            if (conn->sm.state != FL__CONN_FLUSHING) {
                return;
            }
            if (!conn->peer_ended) {
                fl_sm_move(&conn->sm, FL__CONN_LINGERING);
                if (uv_shutdown(&conn->req.shutdown, &conn->u.stream, on_shutdown) == 0) {
                    return;
                }
            }
            fl__conn_close(conn);
            return;
        }
        if (full) {
            size_t len = iov[0].iov_len < COMMIT_BYTES ? iov[0].iov_len : COMMIT_BYTES;
            uv_buf_t buf = uv_buf_init(iov[0].iov_base, (unsigned)len);

            /* The socket is full: libuv writes one run as soon as it can, then calls back. */
            conn->writing = len;
            status = uv_write(&conn->req.write, &conn->u.stream, &buf, 1, on_written);
            if (status != 0) {
                conn->writing = 0;
                fl__conn_fail(conn, fl_uv_err(status), "%s: %s", conn->peer, uv_strerror(status));
            }
            return;
        }
        status = uv_try_write(&conn->u.stream, (const uv_buf_t *)(const void *)iov, (unsigned)n);
        if (status == UV_EAGAIN) {
            full = true;
            continue;
        }
        if (status < 0) {
            fl__conn_fail(conn, fl_uv_err(status), "%s: %s", conn->peer, uv_strerror(status));
            return;
        }
        sum = 0;
        for (i = 0; i < n; i++) {
            sum += iov[i].iov_len;
        }
        full = (size_t)status < sum;
        written += (size_t)status;
        conn_sent(conn, (size_t)status);
        if (!is_open(conn)) {
            return;
        }
    }
    fl__conn_due(conn);
}

void fl__conn_step(struct fl_conn *conn)
{
    FL_REQUIRE(conn->magic == FL__CONN_MAGIC);
    if (conn->sm.state == FL__CONN_RESOLVING) {
        fl__dial_step(conn);
        return;
    }
    if (!is_open(conn)) {
        return;
    }
    if (conn->cbs->on_wake != NULL) {
        conn->cbs->on_wake(conn->ctx);
    }
    if (is_open(conn) && conn->writing == 0) {
        send_output(conn);
    }
}

/* --- table of stream functions --- */

static struct fl_conn *conn_of(struct fl_stream *stream)
{
    return (struct fl_conn *)(void *)stream;
}

void fl_conn_count(struct fl_stream *stream, struct fl_traffic *traffic)
{
    FL_REQUIRE(conn_of(stream)->magic == FL__CONN_MAGIC);
    conn_of(stream)->traffic = traffic;
}

static void stream_start(struct fl_stream *stream, const struct fl_stream_cbs *cbs, void *ctx)
{
    struct fl_conn *conn = conn_of(stream);

    FL_REQUIRE(conn->cbs == NULL);
    conn->cbs = cbs;
    conn->ctx = ctx;
    if (conn->sm.state == FL__CONN_FRESH) {
        fl__conn_opened(conn);
    }
}

static void stream_wake(struct fl_stream *stream)
{
    conn_wake(conn_of(stream));
}

static void stream_pause(struct fl_stream *stream, bool paused)
{
    struct fl_conn *conn = conn_of(stream);

    if (conn->paused == paused || !is_open(conn)) {
        return;
    }
    conn->paused = paused;
    if (paused) {
        (void)uv_read_stop(&conn->u.stream);
    } else {
        start_reading(conn);
    }
}

static void stream_close(struct fl_stream *stream)
{
    fl__conn_close(conn_of(stream));
}

static void stream_close_flushed(struct fl_stream *stream, uint32_t timeout_ms)
{
    struct fl_conn *conn = conn_of(stream);

    if (conn->sm.state == FL__CONN_FLUSHING || conn->sm.state == FL__CONN_LINGERING) {
        return;
    }
    if (conn->sm.state != FL__CONN_OPEN) {
        fl__conn_close(conn);
        return;
    }
    fl_sm_move(&conn->sm, FL__CONN_FLUSHING);
    uv_update_time(&conn->loop->uv);
    (void)uv_timer_start(&conn->timer, on_flush_over, timeout_ms, 0);
    stream_pause(stream, false);
    conn_wake(conn);
}

static const char *stream_peer(const struct fl_stream *stream)
{
    return ((const struct fl_conn *)(const void *)stream)->peer;
}

static const struct fl_identity *stream_identity(const struct fl_stream *stream)
{
    return ((const struct fl_conn *)stream)->identity;
}

static const struct fl_stream_ops ops = {
    .start = stream_start,
    .wake = stream_wake,
    .pause = stream_pause,
    .close = stream_close,
    .close_flushed = stream_close_flushed,
    .peer = stream_peer,
    .identity = stream_identity,
};

int fl__conn_create(struct fl_loop *loop, enum fl__conn_state initial, struct fl_conn **ret)
{
    struct fl_conn *conn = calloc(1, sizeof(*conn));

    if (conn == NULL) {
        return FL_ENOMEM;
    }
    conn->stream.ops = &ops;
    conn->magic = FL__CONN_MAGIC;
    conn->loop = loop;
    fl_sm_init(&conn->sm, states, FL__CONN_CLOSED + 1, initial);
    (void)uv_timer_init(&loop->uv, &conn->timer);
    conn->timer.data = conn;
    conn->n_handles = 1;
    fl__loop_opened(loop);
    *ret = conn;
    return FL_OK;
}
