#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/net/net_impl.h"

/*
 * Connecting, on the thread of the loop. The name is resolved (on another thread), then the
 * addresses are tried in the order of the resolver, each with an equal share of the remaining time,
 * until one accepts.
 * Failures: unknown name; every address refuses or times out (the last reason is reported); the
 * deadline passes; the connection is closed at any of these points.
 */

static void dial_next_attempt(struct fl_conn *conn);

static void dial_fail(struct fl_conn *conn)
{
    const struct fl__dial *dial = conn->dial;
    char name[FL_ADDRESS_HOST_MAX + 16];
    int code = fl_uv_err(dial->status);
    const struct fl_address *address = &dial->address;

    if (address->kind == FL_ADDRESS_UNIX) {
        (void)snprintf(name, sizeof(name), "unix:%s", address->path);
    } else if (address->kind == FL_ADDRESS_IP6) {
        (void)snprintf(name, sizeof(name), "[%s]:%u", address->host, (unsigned)address->port);
    } else {
        (void)snprintf(name, sizeof(name), "%s:%u", address->host, (unsigned)address->port);
    }
    if (code == FL_ETIMEOUT) {
        fl__conn_fail(conn, code,
                      "cannot connect to %s: timed out after %u ms; check the address and the "
                      "firewalls on the way",
                      name, (unsigned)dial->timeout_ms);
        return;
    }
    if (code != FL_ENOMEM && code != FL_EPERM && code != FL_ELIMIT) {
        /* Callers get one code for all connection errors: the server is unavailable. */
        code = FL_EUNAVAIL;
    }
    fl__conn_fail(conn, code, "cannot connect to %s: %s%s", name, uv_strerror(dial->status),
                  dial->status == UV_ECONNREFUSED
                      ? ": nothing listens there; check host and port, and that its program runs"
                      : "");
}

/* An attempt failed and its handle is closed: the next address needs a new handle. */
static void on_attempt_closed(uv_handle_t *handle)
{
    struct fl_conn *conn = handle->data;
    bool closing = conn->sm.state == FL__CONN_CLOSING;

    conn->dial->retrying = false;
    fl__conn_handle_gone(
        conn); /* When the connection is closing, this may have been its last handle. */
    if (!closing) {
        dial_next_attempt(conn);
    }
}

static void end_attempt(struct fl_conn *conn, int status)
{
    conn->dial->status = status;
    conn->dial->retrying = true;
    conn->stream_live = false;
    (void)uv_timer_stop(&conn->timer);
    uv_close(&conn->u.handle, on_attempt_closed);
}

static void on_connected(uv_connect_t *req, int status)
{
    struct fl_conn *conn = req->handle->data;

    if (status == UV_ECANCELED || conn->sm.state != FL__CONN_CONNECTING || conn->dial->retrying) {
        return;
    }
    if (status != 0) {
        end_attempt(conn, status);
        return;
    }
    (void)uv_timer_stop(&conn->timer);
    fl__conn_established(conn, conn->dial->address.kind == FL_ADDRESS_UNIX);
    fl__dial_free(conn);
    fl__conn_opened(conn);
    if (conn->sm.state == FL__CONN_OPEN) {
        conn->cbs->on_open(conn->ctx);
    }
}

static void dial_on_timeout(uv_timer_t *timer)
{
    fl__dial_timeout(timer->data);
}

static void dial_next_attempt(struct fl_conn *conn)
{
    struct fl__dial *dial = conn->dial;
    uint64_t now = uv_now(&conn->loop->uv);
    uint64_t left = dial->deadline > now ? dial->deadline - now : 0;
    int status;

    if (dial->next == dial->found.n) {
        dial_fail(conn);
        return;
    }
    if (left == 0) {
        dial->status = UV_ETIMEDOUT;
        dial_fail(conn);
        return;
    }
    if (fl__conn_stream_init(conn, dial->address.kind == FL_ADDRESS_UNIX) != FL_OK) {
        dial->status = UV_ENOMEM;
        dial_fail(conn);
        return;
    }
    /* An address that drops all packets must leave time for the addresses after it. */
    left /= dial->found.n - dial->next;
    dial->next++;
    (void)uv_timer_start(&conn->timer, dial_on_timeout, left > 0 ? left : 1, 0);
    if (dial->address.kind == FL_ADDRESS_UNIX) {
        uv_pipe_connect(&dial->req, &conn->u.pipe, dial->address.path, on_connected);
        return;
    }
    status =
        uv_tcp_connect(&dial->req, &conn->u.tcp,
                       (const struct sockaddr *)&dial->found.addrs[dial->next - 1], on_connected);
    if (status != 0) {
        end_attempt(conn, status);
    }
}

void fl__dial_step(struct fl_conn *conn)
{
    fl_sm_move(&conn->sm, FL__CONN_CONNECTING);
    dial_next_attempt(conn);
}

void fl__dial_timeout(struct fl_conn *conn)
{
    if (conn->sm.state == FL__CONN_RESOLVING) {
        fl__conn_fail(conn, FL_ETIMEOUT, "cannot look up %s: timed out after %u ms",
                      conn->dial->address.host, (unsigned)conn->dial->timeout_ms);
    } else if (conn->sm.state == FL__CONN_CONNECTING && !conn->dial->retrying) {
        end_attempt(conn, UV_ETIMEDOUT);
    }
}

static void on_resolved(void *ctx, const struct fl__resolved *result)
{
    struct fl_conn *conn = ctx;

    conn->dial->resolve = NULL;
    if (result->status != 0) {
        fl__conn_fail(conn, FL_EUNAVAIL,
                      "cannot look up %s: %s; check the spelling and that this host resolves the "
                      "name (getent hosts %s)",
                      conn->dial->address.host, gai_strerror(result->status),
                      conn->dial->address.host);
        return;
    }
    conn->dial->found = *result;
    fl__dial_step(conn);
}

void fl__dial_free(struct fl_conn *conn)
{
    free(conn->dial);
    conn->dial = NULL;
}

static int dial_begin(struct fl_conn *conn, struct fl_err *err)
{
    struct fl__dial *dial = conn->dial;
    int rv;

    uv_update_time(&conn->loop->uv);
    dial->deadline = uv_now(&conn->loop->uv) + dial->timeout_ms;
    if (dial->address.kind == FL_ADDRESS_NAME) {
        rv = fl__resolve_start(conn->loop, dial->address.host, dial->address.port, on_resolved,
                               conn, &dial->resolve);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "cannot look up %s: %s", dial->address.host,
                              fl_strerror(rv));
        }
        (void)uv_timer_start(&conn->timer, dial_on_timeout, dial->timeout_ms, 0);
        return FL_OK;
    }
    if (dial->address.kind == FL_ADDRESS_UNIX) {
        dial->found.n = 1;
    } else {
        fl__resolve_literal(&dial->address, &dial->found);
    }
    fl__conn_due(conn);
    return FL_OK;
}

int fl_conn_connect(struct fl_loop *loop, const char *address, uint32_t timeout_ms,
                    struct fl_stream **ret, struct fl_err *err)
{
    struct fl_address parsed;
    struct fl_conn *conn = NULL;
    int rv;

    rv = fl_address_parse(address, &parsed, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (parsed.kind == FL_ADDRESS_ANY || (parsed.kind != FL_ADDRESS_UNIX && parsed.port == 0)) {
        return fl_err_set(err, FL_EINVAL, "address '%s': cannot connect to \"*\" or to port 0",
                          address);
    }
    rv = fl__conn_create(loop, FL__CONN_RESOLVING, &conn);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "connecting: out of memory");
    }
    conn->dial = calloc(1, sizeof(*conn->dial));
    if (conn->dial == NULL) {
        fl__conn_close(conn);
        return fl_err_set(err, FL_ENOMEM, "connecting: out of memory");
    }
    conn->dial->address = parsed;
    conn->dial->timeout_ms = timeout_ms;
    rv = dial_begin(conn, err);
    if (rv != FL_OK) {
        fl__conn_close(conn);
        return rv;
    }
    *ret = &conn->stream;
    return FL_OK;
}
