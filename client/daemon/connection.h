#ifndef FL_CLIENTD_CONNECTION_H
#define FL_CLIENTD_CONNECTION_H

/*
 * The connection to the server: a channel, the control stream (Attend) on it, and what the server
 * said of them in Welcome. The control stream is opened as soon as the channel is up; when it ends,
 * so does the channel.
 *
 * Threading: everything on the loop. Callbacks never run inside the function that caused them.
 */

#include "client/conf/client_conf.h"
#include "libfl/base/log.h"
#include "libfl/grpc/endpoint.h"
#include "libfl/wire/messages.h"

struct fl_connection;

struct fl_connection_cbs {
    /* The channel stands. False: it is for other calls than Attend, and the caller closes it. */
    bool (*on_channel)(void *ctx);
    /* The control stream is open: say hello. */
    void (*on_up)(void *ctx);
    /* A command on it. */
    void (*on_message)(void *ctx, const uint8_t *data, size_t len);
    /* There is room again on it. */
    void (*on_writable)(void *ctx);
    /* It ended; on_down follows. */
    void (*on_ended)(void *ctx, enum fl_grpc_status status, const char *message);
    /* The last: connecting failed, or the connection is gone. Refused: one side does not take the
       certificate of the other. */
    void (*on_down)(void *ctx, bool refused, const char *why);
};

/* Keeps all but `cbs`, which is copied. `filter`: over each connection; NULL: nothing. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_connection_create(struct fl_loop *loop, const struct fl_log *log,
                                       const char *server, const struct fl_stream_filter *filter,
                                       uint32_t timeout_ms, const struct fl_client_limits *limits,
                                       const struct fl_connection_cbs *cbs, void *ctx,
                                       struct fl_connection **ret);
/* Closes and runs the loop until that is done, without a callback. NULL is allowed. */
void fl_connection_free(struct fl_connection *connection);

/* Begin to connect, unless there is a connection. An error is in the log already. */
FL_MUST_CHECK int fl_connection_open(struct fl_connection *connection, struct fl_err *err);
/* on_down follows, when there is one. */
void fl_connection_close(struct fl_connection *connection);

/* What Welcome says: the token of transfers and the longest chunk. */
void fl_connection_welcomed(struct fl_connection *connection, struct fl_wire_session token,
                            uint32_t chunk_bytes);
struct fl_wire_session fl_connection_token(const struct fl_connection *connection);
size_t fl_connection_chunk(const struct fl_connection *connection);

/* On the control stream; without one nothing happens. A stream that takes nothing is given up. */
void fl_connection_send(struct fl_connection *connection, const struct fl_wire_event *event);
/* Is less than half of its queue used? Bulk on it leaves room for reports and heartbeats. */
bool fl_connection_has_room(const struct fl_connection *connection);
/* Nothing more is sent on it: what was, goes out before it ends. */
void fl_connection_end(struct fl_connection *connection);
/* It is given up; on_ended and on_down follow. */
void fl_connection_give_up(struct fl_connection *connection);

/* Another call, see fl_grpc_call(). FL_ECLOSED: there is no connection. */
FL_MUST_CHECK int fl_connection_call(struct fl_connection *connection, const char *path,
                                     uint64_t timeout_ms, const struct fl_call_handler *handler,
                                     void *ctx, struct fl_call **ret);

#endif
