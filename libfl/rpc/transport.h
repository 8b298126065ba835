#ifndef FL_RPC_TRANSPORT_H
#define FL_RPC_TRANSPORT_H

/*
 * Interface between a call and its transport (libfl/h2). The transport drives the call with the
 * fl_call_recv_*, fl_call_out_* … functions below; the call requests actions of its transport
 * through struct fl_rpc_transport. Users of calls include call.h only.
 *
 *      client   OPEN ----------------------> CLOSED -> DONE
 *      server   HEADERS -> OPEN -> ENDING -> CLOSED -> DONE
 *
 *   HEADERS  the request's header block is arriving
 *   OPEN     messages both ways
 *   ENDING   the server's handler has set the status; queue, then trailers
 *   CLOSED   the outcome is known; on_closed is due
 *   DONE     on_closed has run; the transport frees the call
 *
 * User callbacks run only inside fl_call_start(), fl_call_recv_data(), fl_call_recv_end() and
 * fl_call_dispatch().
 *
 * Credit: connection credit is returned as bytes arrive, because otherwise unfinished messages of
 * several streams could fill the connection's window and none would ever become complete. A
 * stream's credit is returned when its message was processed. What users hold is debited from the
 * connection too (hold, release). All memory that a peer makes us keep is charged to its
 * connection's account: unfinished messages, queued ones with their overhead, headers.
 *
 * Threading: one loop.
 */

#include "libfl/base/budget.h"
#include "libfl/rpc/call.h"
#include "libfl/rpc/segq.h"

struct fl_rpc_transport {
    /* Bytes, an end or a status wait to be sent: see fl_call_out_*(). */
    void (*output)(void *stream);
    /* The connection may receive `conn`, the stream `window` more bytes. */
    void (*credit)(void *stream, size_t conn, size_t window);
    /* The user holds, or returns, credit of `n` bytes. */
    void (*hold)(void *stream, size_t n);
    void (*release)(void *stream, size_t n);
    /* Resets the stream, with CANCEL or without an error; no more fl_call_recv_*. */
    void (*reset)(void *stream, bool cancel);
    /*
     * Server: sends this status next and nothing more; no more fl_call_recv_*. `message` is
     * percent-encoded, may be NULL, and is borrowed.
     */
    void (*reject)(void *stream, enum fl_grpc_status status, const char *message);
    /* Run fl_call_dispatch() soon, not from here. */
    void (*due)(void *stream);
};

/* State that all calls of a connection share; it must outlive them. */
struct fl_rpc_conn {
    const struct fl_rpc_transport *ops;
    struct fl_rpc_limits limits;
    const char *peer;
    uint32_t who;                 /* class of the peer, bits of enum fl_who */
    char *why;                    /* why the peer was rejected; owned, NULL: no reason was given */
    struct fl_identity *identity; /* owned; NULL: unknown */
    struct fl_account account;
    /*
     * A call ended because of what its peer does or fails to do; `text` has the details, `reason`
     * is a literal, the same for events of one kind. May be NULL.
     */
    void (*notice)(void *ctx, const struct fl_call *call, const char *reason, const char *text);
    void *notice_ctx;
};

/* Keeps references to `conn` and `stream`. FL_ENOMEM. */
FL_MUST_CHECK int fl_call_create(struct fl_rpc_conn *conn, void *stream, bool server,
                                 const char *path, struct fl_call **ret);
void fl_call_free(struct fl_call *call);

/*
 * One header field (borrows). Exceeding the limit is recorded and rejected later; FL_ELIMIT: far
 * beyond the limit, close the connection. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_call_recv_header(struct fl_call *call, const void *name, size_t name_len,
                                      const void *value, size_t value_len);
/*
 * Server: the request's headers are complete. A status other than FL_GRPC_OK must be sent at once,
 * with `*ret_http` as the HTTP status and the text in `text`.
 */
enum fl_grpc_status fl_call_check_request(struct fl_call *call, unsigned *ret_http, char *text,
                                          size_t size);
/* Server: FL_GRPC_OK when the peer may call it, else the status, with the text. */
enum fl_grpc_status fl_call_check_peer(const struct fl_call *call,
                                       const struct fl_rpc_method *method, char *text, size_t size);
/* Server: the peer has lost its rights: ends the call; `why` is copied. */
void fl_call_expel(struct fl_call *call, const char *why);
/* Sets the class and identity of the connection's peer; copied. FL_ENOMEM: nothing has changed. */
FL_MUST_CHECK int fl_rpc_conn_identify(struct fl_rpc_conn *conn, uint32_t who, const char *why,
                                       const struct fl_identity *identity);
void fl_rpc_conn_done(struct fl_rpc_conn *conn);
/* Server: passes the call to its method. */
void fl_call_start(struct fl_call *call, const struct fl_rpc_method *method);
/* Client: a header block (response or trailers) is complete. */
void fl_call_recv_response(struct fl_call *call, bool end);
void fl_call_recv_data(struct fl_call *call, const uint8_t *data, size_t len);
/* The peer ended its side normally. */
void fl_call_recv_end(struct fl_call *call);
/*
 * The stream has ended: reset by the peer, or the connection was lost. Ignored when the outcome is
 * known already. `text` is copied.
 */
void fl_call_closed(struct fl_call *call, enum fl_grpc_status status, const char *text);

/* Bytes waiting for the transport. */
size_t fl_call_out_bytes(const struct fl_call *call);
/* After these bytes follows the end (client) or the status (server). */
bool fl_call_out_end(const struct fl_call *call);
/* Move `n` bytes to `to` under `tag`. FL_ENOMEM. */
FL_MUST_CHECK int fl_call_out_take(struct fl_call *call, struct fl_segq *to, size_t n,
                                   uint32_t tag);
/* `n` of the taken bytes were handed to the socket. */
void fl_call_out_sent(struct fl_call *call, size_t n);
/* Server, when ending: status and percent-encoded message (or NULL). */
enum fl_grpc_status fl_call_out_status(const struct fl_call *call, const char **ret_message);
/* Server: the status was sent. */
void fl_call_out_status_sent(struct fl_call *call);

/* Deadlines: the client's timeout, and on a server the limit of waiting for the peer. */
/* Client: the call ends with DEADLINE_EXCEEDED `timeout_ms` after `now_ms`. */
void fl_call_set_timeout(struct fl_call *call, uint64_t now_ms, uint64_t timeout_ms);
/* UINT64_MAX: none. 0: at once; the timeout starts to count at the next tick. */
uint64_t fl_call_deadline(const struct fl_call *call);
void fl_call_tick(struct fl_call *call, uint64_t now_ms);

/* Runs the callbacks that are due. True: the call has ended, free it. */
bool fl_call_dispatch(struct fl_call *call);
enum fl_call_bulk fl_call_bulk(const struct fl_call *call);
/* Credit that the user still holds. */
size_t fl_call_held(const struct fl_call *call);

#endif
