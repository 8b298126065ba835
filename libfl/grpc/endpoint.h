#ifndef FL_GRPC_ENDPOINT_H
#define FL_GRPC_ENDPOINT_H

/*
 * gRPC over connections: joins libfl/net and libfl/h2 into servers and channels. Used by
 * both daemons, flctl and the benchmarks.
 *
 * Threading: everything belongs to one loop. Callbacks never run inside the function
 * that caused them.
 */

#include "libfl/h2/h2.h"
#include "libfl/net/address_range.h"
#include "libfl/net/conn.h"
#include "libfl/net/proxy_rule.h"

struct fl_grpc_server;

#define FL_GRPC_RESERVE 4

struct fl_grpc_server_setup {
    struct fl_loop *loop;
    struct fl_rpc_limits limits;
    /*
     * Beyond this number a new connection replaces one without an authenticated call: first one
     * from the address of the new one, then one without a certificate, then one without any call,
     * the oldest of them; when there is none, the new connection is closed.
     */
    uint32_t max_connections;
    /*
     * Connections of one client, by its certificate, else by its authenticated name; beyond the
     * number the oldest is closed. limits.streams is then the limit of its calls over all of them:
     * one more is refused with RESOURCE_EXHAUSTED. 0: no limit.
     */
    uint32_t peer_connections;
    /*
     * Bytes that all connections together may make the server hold (libfl/base/budget.h), beside
     * limits.memory of each; 0: no limit. One part in FL_GRPC_RESERVE of it is for authenticated
     * connections.
     */
    size_t memory;
    /*
     * On a connection with calls, as those of a channel (below): middleboxes keep it open, and a
     * peer that is gone does not keep its calls. 0: never.
     */
    uint32_t ping_after_ms, ping_limit_ms;
    /*
     * For logs: a peer lost a call or its connection because of what it does or fails to do, or was
     * rejected. `reason` is a literal, the same for events of one kind. The other arguments are
     * borrowed. May be NULL.
     */
    void (*notice)(void *ctx, const char *peer, const char *reason, const char *text);
    void *notice_ctx;
    const struct fl_rpc_method *methods; /* kept; ended by a NULL path */
};

/* One address, and the rule that classifies its peers. */
struct fl_grpc_listen {
    const char *address;
    /*
     * A filter over each connection, kept; NULL: none. The time limit covers its handshake and that
     * of HTTP/2 together.
     */
    const struct fl_stream_filter *filter;
    /*
     * Classifies a peer for the methods, in bits of enum fl_who, by its identity (NULL: none). 0:
     * rejected, and its calls fail with `*why`, which is valid until the next call. Called when the
     * peer connects, and for all connections by fl_grpc_server_review(). NULL: every peer is
     * FL_WHO_PLAIN.
     */
    uint32_t (*who)(void *ctx, const struct fl_identity *identity, const char **why);
    void *who_ctx;
    struct fl_traffic *traffic; /* of its connections, outlives the server; NULL: not counted */
    /*
     * Addresses of load balancers: their connections begin with a header that names the client
     * (libfl/net/balancer.h), which is the peer from then on. [n_balancers], copied.
     */
    const struct fl_address_range *balancers;
    size_t n_balancers;
};

FL_MUST_CHECK int fl_grpc_server_create(const struct fl_grpc_server_setup *setup,
                                        struct fl_grpc_server **ret, struct fl_err *err);
/* Listens on one more address; `*ret_port` (may be NULL) is the bound port. */
FL_MUST_CHECK int fl_grpc_server_listen(struct fl_grpc_server *server,
                                        const struct fl_grpc_listen *listen, unsigned *ret_port,
                                        struct fl_err *err);
/*
 * Classifies every peer again: its certificate may have expired or been revoked. The calls of a
 * peer that has lost a right end with PERMISSION_DENIED and the reason, then its connection is
 * closed.
 */
void fl_grpc_server_review(struct fl_grpc_server *server);
size_t fl_grpc_server_connections(const struct fl_grpc_server *server);
/* Bytes held for all peers, now and at most. */
const struct fl_budget *fl_grpc_server_budget(const struct fl_grpc_server *server);
/*
 * Stops listening, sends GOAWAY, closes each connection when its calls have ended or after
 * `grace_ms`; then `closed(ctx)` and the server is freed.
 */
void fl_grpc_server_close(struct fl_grpc_server *server, uint32_t grace_ms, fl_loop_cb closed,
                          void *ctx);

struct fl_grpc_channel;

struct fl_grpc_channel_cbs {
    /* The HTTP/2 session is ready: calls may begin. */
    void (*on_up)(void *ctx);
    /* The last callback: connecting failed or the connection was lost. */
    void (*on_down)(void *ctx, int code, const char *text);
};

/* Where no configuration says otherwise: below the usual idle timeout of middleboxes, 60 s. */
#define FL_GRPC_PING_AFTER_MS 30000
#define FL_GRPC_PING_LIMIT_MS 20000

struct fl_grpc_channel_setup {
    struct fl_loop *loop;
    const char *address;
    const struct fl_rpc_limits *limits;
    uint32_t timeout_ms; /* until the HTTP/2 session is ready */
    /*
     * When nothing was received for `ping_after_ms`, a PING is sent; when nothing is received for
     * `ping_limit_ms` after it, the connection is closed with FL_ETIMEOUT. 0: never.
     */
    uint32_t ping_after_ms, ping_limit_ms;
    const struct fl_grpc_channel_cbs *cbs;
    void *ctx;
    const struct fl_stream_filter *filter; /* over the connection; NULL: none */
    struct fl_traffic *traffic;            /* of the connection, outlives it; NULL: not counted */
    const struct fl_proxy_rule *proxy;     /* read when connecting; NULL: no proxy */
};

/* Copies `setup` and what it points to, except `cbs` and `traffic`. */
FL_MUST_CHECK int fl_grpc_connect(const struct fl_grpc_channel_setup *setup,
                                  struct fl_grpc_channel **ret, struct fl_err *err);
FL_MUST_CHECK int fl_grpc_call(struct fl_grpc_channel *channel, const char *path,
                               uint64_t timeout_ms, const struct fl_call_handler *handler,
                               void *ctx, struct fl_call **ret);
/* Calls end with UNAVAILABLE; on_down follows. */
void fl_grpc_channel_close(struct fl_grpc_channel *channel);

/*
 * Built-in services: grpc.health.v1.Health and server reflection. Copy their method tables into the
 * server's.
 */
struct fl_grpc_builtin;
/*
 * `services`: NULL-terminated full names of the offered services, kept; health and reflection are
 * added to them. The initial health is SERVING.
 */
FL_MUST_CHECK int fl_grpc_builtin_create(const char *const *services, struct fl_grpc_builtin **ret);
/* After the server that offers the methods is closed. */
void fl_grpc_builtin_free(struct fl_grpc_builtin *builtin);
/* Append the methods to `methods`; returns their number (at most 4). */
size_t fl_grpc_builtin_methods(struct fl_grpc_builtin *builtin, struct fl_rpc_method *methods);
/* Sets the health of all services; watchers receive the change. */
void fl_grpc_builtin_serving(struct fl_grpc_builtin *builtin, bool serving);

#endif
