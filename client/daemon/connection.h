#ifndef FL_CLIENTD_CONNECTION_H
#define FL_CLIENTD_CONNECTION_H

/*
 * The connection to the server: a channel, the control stream (Attend) on it, and the session token
 * and chunk size from Welcome. The control stream is opened as soon as the channel is up; when it
 * ends, the channel is closed too.
 *
 * Several servers are tried in their order, beginning with the first, with a random pause before
 * each other one, so that many clients that lose one server do not reach the next at the same
 * moment. Only when the last one has failed too the connection is down. A server that let us in
 * and gave no Welcome is followed by the next one when connecting again.
 *
 * Threading: everything on the loop. Callbacks never run inside the function that caused them.
 */

#include "client/conf/client_conf.h"
#include "libfl/base/device_limits.h"
#include "libfl/base/log.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/wire/messages.h"

struct fl_connection;

struct fl_connection_cbs {
    /* The channel is up. False: it serves calls other than Attend, and the callee closes it. */
    bool (*on_channel)(void *ctx);
    /* The control stream is open: send Hello. */
    void (*on_up)(void *ctx);
    /* A command arrived on the control stream. */
    void (*on_message)(void *ctx, const uint8_t *data, size_t len);
    /* The control stream accepts data again. */
    void (*on_writable)(void *ctx);
    /* The control stream ended; on_down follows. */
    void (*on_ended)(void *ctx, enum fl_grpc_status status, const char *message);
    /*
     * The last callback: connecting failed, or the connection was lost. `refused`: one side
     * rejected the certificate of the other, at each server.
     */
    void (*on_down)(void *ctx, bool refused, const char *why);
};

/* Copied; what it points to is borrowed. */
struct fl_connection_conf {
    struct fl_loop *loop;
    const struct fl_log *log;
    const char *const *servers; /* [n_servers] addresses, at least one, in the order of trying */
    size_t n_servers;
    const struct fl_stream_filter *filters; /* [n_servers] (TLS); NULL: plaintext */
    uint64_t seed;                          /* of the pauses between two servers */
    uint64_t pause_ms;                      /* the longest of them */
    struct fl_traffic *traffic;             /* of all connections */
    const struct fl_proxy_rule *proxy;      /* NULL: none */
    uint32_t timeout_ms;                    /* of connecting */
    uint32_t ping_after_ms, ping_limit_ms;  /* as of a channel */
    const struct fl_device_limits *limits;  /* read when it connects */
    struct fl_connection_cbs cbs;
    void *ctx; /* of cbs */
};
/* FL_ENOMEM. */
FL_MUST_CHECK int fl_connection_create(const struct fl_connection_conf *conf,
                                       struct fl_connection **ret);
/* Close the channel and run the loop until that is done, without a callback. NULL is allowed. */
void fl_connection_free(struct fl_connection *connection);

/* Start connecting, unless it has begun already. Errors are logged already. */
FL_MUST_CHECK int fl_connection_open(struct fl_connection *connection, struct fl_err *err);
/* on_down follows if a channel exists; else connecting ends without it. */
void fl_connection_close(struct fl_connection *connection);
/* The address that is tried now or next, or was reached. */
const char *fl_connection_server(const struct fl_connection *connection);

/* Store what Welcome has: the session token of transfers and the longest chunk. */
void fl_connection_welcomed(struct fl_connection *connection, struct fl_wire_session token,
                            uint32_t chunk_bytes);
struct fl_wire_session fl_connection_token(const struct fl_connection *connection);
size_t fl_connection_chunk(const struct fl_connection *connection);

/*
 * Send on the control stream; without one this does nothing. A stream that rejects data is
 * cancelled.
 */
void fl_connection_send(struct fl_connection *connection, const struct fl_wire_event *event);
/*
 * Is less than half of the send queue used? Bulk data leaves the other half for reports and
 * heartbeats.
 */
bool fl_connection_has_room(const struct fl_connection *connection);
/* Half-close the control stream: queued messages are sent before it ends. */
void fl_connection_end(struct fl_connection *connection);
/* Cancel the control stream; on_ended and on_down follow. */
void fl_connection_give_up(struct fl_connection *connection);

/* Start another call, see fl_grpc_call(). FL_ECLOSED: there is no connection. */
FL_MUST_CHECK int fl_connection_call(struct fl_connection *connection, const char *path,
                                     uint64_t timeout_ms, const struct fl_call_handler *handler,
                                     void *ctx, struct fl_call **ret);

#endif
