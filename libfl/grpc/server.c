#include <stdlib.h>

#include "libfl/grpc/endpoint.h"
#include "libfl/grpc/link.h"

/* A client without calls gets a GOAWAY and this long to answer it. */
#define IDLE_GRACE_MS 1000

struct listener {
    struct listener *next;
    struct fl_listener *net;
};

struct session {
    struct fl__link link; /* First: the link's callbacks lead here. */
    struct fl_grpc_server *server;
    struct session *next;
    struct session *prev;
    uint64_t accepted_at;
    uint64_t idle_since; /* UINT64_MAX while it has calls. */
    bool idle_drain;     /* Asked to go because it was idle. */
};

/*
 * Life: serving -> closing (no listeners, sessions end) -> `closed` and freed, from a timer so
 * that it never happens inside fl_grpc_server_close().
 */
struct fl_grpc_server {
    struct fl_grpc_server_setup setup;
    struct listener *listeners;
    struct session *sessions;
    size_t n_sessions;
    struct fl_timer *closer; /* Made beforehand: closing must not fail. */
    bool closing;
    fl_loop_cb closed;
    void *closed_ctx;
};

static void session_free(struct session *session)
{
    struct fl_grpc_server *server = session->server;

    if (session->next != NULL) {
        session->next->prev = session->prev;
    }
    if (session->prev != NULL) {
        session->prev->next = session->next;
    } else {
        server->sessions = session->next;
    }
    server->n_sessions--;
    free(session);
    if (server->closing && server->n_sessions == 0) {
        fl_timer_start(server->closer, 0);
    }
}

static void on_gone(struct fl__link *link, int code, const char *text)
{
    (void)code;
    (void)text;
    session_free((struct session *)link);
}

static uint64_t check(struct fl__link *link, uint64_t now_ms)
{
    struct session *session = (struct session *)link;
    const struct fl_rpc_limits *limits = &session->server->setup.limits;
    uint64_t at;

    if (!link->ready) {
        at = session->accepted_at + limits->handshake_ms;
        if (now_ms >= at) {
            fl__link_close(link, FL_ETIMEOUT, "no HTTP/2 handshake in time");
        }
        return at;
    }
    if (fl_h2_calls(link->h2) > 0) {
        session->idle_since = UINT64_MAX;
        if (session->idle_drain) {
            /* A call crossed our GOAWAY: it has all the time it needs. */
            session->idle_drain = false;
            link->grace_at = UINT64_MAX;
        }
        return UINT64_MAX;
    }
    if (link->grace_at != UINT64_MAX) {
        return UINT64_MAX; /* Draining already. */
    }
    if (session->idle_since == UINT64_MAX) {
        session->idle_since = now_ms;
    }
    at = session->idle_since + limits->idle_ms;
    if (now_ms < at) {
        return at;
    }
    session->idle_drain = true;
    fl__link_drain(link, IDLE_GRACE_MS);
    return UINT64_MAX;
}

static const struct fl__link_ops ops = {.check = check, .gone = on_gone};

static int start_session(struct fl_grpc_server *server, struct fl_conn *conn)
{
    struct fl_h2_setup setup = {.limits = server->setup.limits, .methods = server->setup.methods};
    struct session *session = calloc(1, sizeof(*session));
    int rv;

    if (session == NULL) {
        return FL_ENOMEM;
    }
    rv = fl__link_init(&session->link, server->setup.loop, &ops);
    if (rv != FL_OK) {
        free(session);
        return rv;
    }
    session->link.conn = conn;
    rv = fl__link_start(&session->link, &setup, true);
    if (rv != FL_OK) {
        fl__link_done(&session->link);
        free(session);
        return rv;
    }
    session->server = server;
    session->accepted_at = fl_loop_now(server->setup.loop);
    session->idle_since = UINT64_MAX;
    session->next = server->sessions;
    if (server->sessions != NULL) {
        server->sessions->prev = session;
    }
    server->sessions = session;
    server->n_sessions++;
    fl_conn_accept(conn, &fl__link_cbs, &session->link);
    return FL_OK;
}

static void on_accept(void *ctx, struct fl_conn *conn)
{
    struct fl_grpc_server *server = ctx;

    if (server->n_sessions >= server->setup.max_connections || start_session(server, conn) != FL_OK)
    {
        fl_conn_close(conn);
    }
}

static void on_closer(void *arg)
{
    struct fl_grpc_server *server = arg;
    fl_loop_cb closed = server->closed;
    void *ctx = server->closed_ctx;

    fl_timer_close(server->closer);
    free(server);
    if (closed != NULL) {
        closed(ctx);
    }
}

int fl_grpc_server_create(const struct fl_grpc_server_setup *setup, struct fl_grpc_server **ret,
                          struct fl_err *err)
{
    struct fl_grpc_server *server = calloc(1, sizeof(*server));

    FL_REQUIRE(setup->methods != NULL);
    if (server == NULL) {
        return fl_err_set(err, FL_ENOMEM, "gRPC server: out of memory");
    }
    server->setup = *setup;
    if (fl_timer_create(setup->loop, on_closer, server, &server->closer) != FL_OK) {
        free(server);
        return fl_err_set(err, FL_ENOMEM, "gRPC server: out of memory");
    }
    *ret = server;
    return FL_OK;
}

int fl_grpc_server_listen(struct fl_grpc_server *server, const char *address, unsigned *ret_port,
                          struct fl_err *err)
{
    struct listener *listener;
    int rv;

    FL_REQUIRE(!server->closing);
    listener = calloc(1, sizeof(*listener));
    if (listener == NULL) {
        return fl_err_set(err, FL_ENOMEM, "listening: out of memory");
    }
    rv = fl_listen(server->setup.loop, address, on_accept, server, &listener->net, err);
    if (rv != FL_OK) {
        free(listener);
        return rv;
    }
    listener->next = server->listeners;
    server->listeners = listener;
    if (ret_port != NULL) {
        *ret_port = fl_listener_port(listener->net);
    }
    return FL_OK;
}

size_t fl_grpc_server_connections(const struct fl_grpc_server *server)
{
    return server->n_sessions;
}

void fl_grpc_server_close(struct fl_grpc_server *server, uint32_t grace_ms, fl_loop_cb closed,
                          void *ctx)
{
    struct listener *listener;
    struct session *session;

    FL_REQUIRE(!server->closing);
    server->closing = true;
    server->closed = closed;
    server->closed_ctx = ctx;
    while ((listener = server->listeners) != NULL) {
        server->listeners = listener->next;
        fl_listener_close(listener->net);
        free(listener);
    }
    /* Nothing is freed here: sessions end in callbacks. */
    for (session = server->sessions; session != NULL; session = session->next) {
        session->idle_drain = false;
        if (session->link.ready) {
            fl__link_drain(&session->link, grace_ms);
        } else {
            fl__link_close(&session->link, FL_OK, NULL);
        }
    }
    if (server->n_sessions == 0) {
        fl_timer_start(server->closer, 0);
    }
}
