#ifndef FL_SERVER_NETWORK_FRONTEND_H
#define FL_SERVER_NETWORK_FRONTEND_H

/*
 * The network front end of the daemon: sessions, transfers, and the connections of calls of other
 * rooms (fl_frontend_serve()), all on the network loop. Its only knowledge of rounds is what the
 * coordinator sent: upload masks and payloads.
 *
 * Threading: fl_frontend_post() from any thread, everything else on the network loop.
 */

#include "libfl/rpc/call.h"
#include "server/network/download_counts.h"
#include "server/network/loop_messages.h"

/* What the front end asks of the daemon, on the network loop. */
struct fl_frontend_ops {
    void (*post)(void *ctx, struct fl_coord_msg *up); /* to the coordinator; takes `up` */
    /* The coordinator has completed the answer. */
    void (*answered)(void *ctx, struct fl_admin_request *request);
    void (*stopped)(void *ctx); /* the coordinator has stopped */
};

/* What the front end is made of; everything is borrowed. */
struct fl_frontend_setup {
    const struct fl_server_conf *conf;
    const char *state_dir;
    const char *admin; /* address of the admin socket */
    struct fl_rpc_limits rpc;
    uint64_t memory;                             /* limit for all connections together */
    uint32_t chunk_bytes;                        /* data bytes of one chunk of an upload */
    uint32_t max_connections, admin_connections; /* of clients, and to the admin socket */
    const struct fl_generation *generation;      /* constant since the start */
    const struct fl_log *log;
    struct fl_loop *net;
    struct fl_worker_thread *io;
    struct fl_auth *auth;                 /* NULL: no address uses TLS */
    struct fl_traffic *traffic;           /* of all clients; outlives the front end */
    struct fl_download_counts *downloads; /* likewise; NULL: not counted */
    const struct fl_frontend_ops *ops;
    void *ctx;
};

/* Copies `setup`. After an error `*ret` may be set, and is closed and freed like any other. */
FL_MUST_CHECK int fl_frontend_create(const struct fl_frontend_setup *setup,
                                     struct fl_frontend **ret, struct fl_err *err);
/*
 * Make the servers: clients may also call `client_methods`, and the admin addresses serve
 * `admin_methods`; each ends with a NULL path and outlives the front end. Before
 * fl_frontend_listen().
 */
FL_MUST_CHECK int fl_frontend_serve(struct fl_frontend *frontend,
                                    const struct fl_rpc_method *client_methods,
                                    const struct fl_rpc_method *admin_methods, struct fl_err *err);
/* Bind all addresses; prints and logs them. */
FL_MUST_CHECK int fl_frontend_listen(struct fl_frontend *frontend, struct fl_err *err);
/*
 * The client is revoked: its upload for the open round is not aggregated, and `keeps` says which of
 * its other data remains. fl_frontend_review() ends its calls. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_frontend_exclude(struct fl_frontend *frontend, const char *name,
                                      enum fl_revoked_keeps keeps);
/* Check the role of each connected peer again (fl_auth_who()). */
void fl_frontend_review(struct fl_frontend *frontend);
/* Takes `down`. */
void fl_frontend_post(struct fl_frontend *frontend, struct fl_net_msg *down);
/*
 * Send drain to the clients (they reconnect after `reconnect_ms`, 0: never) and stop listening;
 * `closed(ctx)` is called when every connection is closed, at most about `grace_ms` later.
 */
void fl_frontend_close(struct fl_frontend *frontend, uint32_t grace_ms, fl_loop_cb closed,
                       void *ctx);
/* The io thread was freed: further requests for files end with FL_ECLOSED. NULL is allowed. */
void fl_frontend_disk_closed(struct fl_frontend *frontend);
/* Call after close and after the io thread was freed. */
void fl_frontend_free(struct fl_frontend *frontend);

/* --- for calls of other rooms --- */

/* Post to the coordinator; takes `up`. */
void fl_frontend_up(struct fl_frontend *frontend, struct fl_coord_msg *up);
/* Finish a call with an error code of libfl and a message. */
void fl_frontend_fail(struct fl_call *call, int code, const struct fl_err *err);
/*
 * fl_call_finish() with a text that may name files: removes the path of the state folder, which
 * peers must not see.
 */
void fl_frontend_finish(const struct fl_frontend *frontend, struct fl_call *call,
                        enum fl_grpc_status status, const char *message);
/* Queue one encoded message. */
FL_MUST_CHECK int fl_frontend_send(struct fl_call *call, const struct fl_buf *message);
/* A client of that name has a session. */
bool fl_frontend_is_connected(const struct fl_frontend *frontend, const char *name);
/* Peers disconnected or refused because they lost a right, since the start. */
uint64_t fl_frontend_expelled(const struct fl_frontend *frontend);
/* Port of the first TLS address that has one; 0: none. Constant since fl_frontend_listen(). */
uint16_t fl_frontend_port(const struct fl_frontend *frontend);
/* `name` has a certificate: ends plaintext sessions under it. */
void fl_control_stream_certified(struct fl_frontend *frontend, const char *name);
/*
 * Send `client`, or all (FL_EVERYBODY), a Drain: reconnect after that time, and end the session. 0:
 * all rounds are done; with when_finished: stay the session stays open.
 */
void fl_control_stream_drain(struct fl_frontend *frontend, uint32_t client, const char *reason,
                             uint64_t reconnect_ms);

#endif
