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
#include "libfl/net/conn.h"

struct fl_grpc_server;

#define FL_GRPC_RESERVE 4

struct fl_grpc_server_setup {
    struct fl_loop *loop;
    struct fl_rpc_limits limits;
    /* More make room at the cost of those without an authenticated call: one from the
       address of the new one first, then one without a certificate, then one without any call,
       the oldest of them; with none such the new one is closed. */
    uint32_t max_connections;
    /* Of one client, by its certificate, else by the name that was vouched for; of more the
       oldest is closed. 0: no limit. */
    uint32_t peer_connections;
    /* What all connections together make us hold (libfl/base/budget.h), beside
       limits.memory of each; 0: no limit. One part in FL_GRPC_RESERVE of it is for those that
       somebody has vouched for. */
    size_t memory;
    /* A peer lost a call or its connection because of what it does or fails to do, or was
       turned away: for logs. `reason` is a literal that is the same for what is alike. The
       others are borrowed. May be NULL. */
    void (*notice)(void *ctx, const char *peer, const char *reason, const char *text);
    void *notice_ctx;
    const struct fl_rpc_method *methods; /* kept; ended by a NULL path */
};

/* One address, and what its peers are. */
struct fl_grpc_listen {
    const char *address;
    /* Over each connection, kept; NULL: nothing. Its handshake counts as one with that of HTTP/2.
     */
    const struct fl_stream_filter *filter;
    /*
     * What a peer is to the methods, in bits of enum fl_who, by what it has shown (NULL: nothing).
     * 0: nothing, and its calls are refused with `*why`, which is valid until the next call.
     * Asked when it comes, and for all that are there by fl_grpc_server_review(). NULL: each is
     * FL_WHO_PLAIN.
     */
    uint32_t (*who)(void *ctx, const struct fl_identity *identity, const char **why);
    void *who_ctx;
};

FL_MUST_CHECK int fl_grpc_server_create(const struct fl_grpc_server_setup *setup,
                                        struct fl_grpc_server **ret, struct fl_err *err);
/* Listen on one more address; `*ret_port` (may be NULL) is the bound port. */
FL_MUST_CHECK int fl_grpc_server_listen(struct fl_grpc_server *server,
                                        const struct fl_grpc_listen *listen, unsigned *ret_port,
                                        struct fl_err *err);
/*
 * Look again at what each peer is: a certificate may be over by now, or denied. The calls of one
 * that has lost something end with PERMISSION_DENIED and the reason, then its connection.
 */
void fl_grpc_server_review(struct fl_grpc_server *server);
size_t fl_grpc_server_connections(const struct fl_grpc_server *server);
/* What is held for all of its peers, now and at most. */
const struct fl_budget *fl_grpc_server_budget(const struct fl_grpc_server *server);
/*
 * Stop listening, send GOAWAY, close each connection when its calls are over or after
 * `grace_ms`; then `closed(ctx)` and the server is freed.
 */
void fl_grpc_server_close(struct fl_grpc_server *server, uint32_t grace_ms, fl_loop_cb closed,
                          void *ctx);

struct fl_grpc_channel;

struct fl_grpc_channel_cbs {
    /* HTTP/2 stands: calls may begin. */
    void (*on_up)(void *ctx);
    /* The last callback: connecting failed or the connection is gone. */
    void (*on_down)(void *ctx, int code, const char *text);
};

struct fl_grpc_channel_setup {
    struct fl_loop *loop;
    const char *address;
    const struct fl_rpc_limits *limits;
    uint32_t timeout_ms; /* until HTTP/2 stands */
    const struct fl_grpc_channel_cbs *cbs;
    void *ctx;
    const struct fl_stream_filter *filter; /* over the connection; NULL: nothing */
};

/* `setup` and what it points to are copied, but for `cbs`. */
FL_MUST_CHECK int fl_grpc_connect(const struct fl_grpc_channel_setup *setup,
                                  struct fl_grpc_channel **ret, struct fl_err *err);
FL_MUST_CHECK int fl_grpc_call(struct fl_grpc_channel *channel, const char *path,
                               uint64_t timeout_ms, const struct fl_call_handler *handler,
                               void *ctx, struct fl_call **ret);
/* Calls end with UNAVAILABLE; on_down follows. */
void fl_grpc_channel_close(struct fl_grpc_channel *channel);

/*
 * Ready-made services: grpc.health.v1.Health and server reflection. Their method tables
 * are to be copied into the server's.
 */
struct fl_grpc_builtin;
/*
 * `services`: NULL-terminated full names offered, kept; health and reflection are added
 * to them. Healthy from the start.
 */
FL_MUST_CHECK int fl_grpc_builtin_create(const char *const *services, struct fl_grpc_builtin **ret);
/* After the server that offers the methods is closed. */
void fl_grpc_builtin_free(struct fl_grpc_builtin *builtin);
/* Append the methods to `methods`; returns their number (at most 4). */
size_t fl_grpc_builtin_methods(struct fl_grpc_builtin *builtin, struct fl_rpc_method *methods);
/* Health of all services; watchers are told. */
void fl_grpc_builtin_serving(struct fl_grpc_builtin *builtin, bool serving);

#endif
