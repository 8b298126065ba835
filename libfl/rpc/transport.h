#ifndef FL_RPC_TRANSPORT_H
#define FL_RPC_TRANSPORT_H

/*
 * Between a call and what carries it (libfl/h2). The transport drives the call with the
 * fl_call_recv_*, fl_call_out_* … functions below; the call asks its transport for
 * something through struct fl_rpc_transport. Users of calls include admin_call.h only.
 *
 *      client   OPEN ----------------------> CLOSED -> DONE
 *      server   HEADERS -> OPEN -> ENDING -> CLOSED -> DONE
 *
 *   HEADERS  the request's header block is arriving
 *   OPEN     messages both ways
 *   ENDING   the server's handler has given the status; queue, then trailers
 *   CLOSED   the outcome is known; on_closed is due
 *   DONE     on_closed has run; the transport frees the call
 *
 * User callbacks run only inside fl_call_start(), fl_call_recv_data(),
 * fl_call_recv_end() and fl_call_dispatch().
 *
 * Credit: connection credit goes back as bytes arrive, or unfinished messages of several
 * streams could fill the connection's window and none would ever become complete. A
 * stream's credit goes back when its message was dealt with. What users hold is debited
 * from the connection too (hold, release). All memory that a peer makes us keep is charged to its
 * connection's account: unfinished messages, queued ones with what keeping them costs, headers.
 *
 * Threading: one loop.
 */

#include "libfl/base/budget.h"
#include "libfl/rpc/call.h"
#include "libfl/rpc/segq.h"

struct fl_rpc_transport {
    /* Bytes, an end or a status are waiting: see fl_call_out_*(). */
    void (*output)(void *stream);
    /* The connection may receive `conn`, the stream `window` more bytes. */
    void (*credit)(void *stream, size_t conn, size_t window);
    /* The user keeps, or gives back, credit of `n` bytes. */
    void (*hold)(void *stream, size_t n);
    void (*release)(void *stream, size_t n);
    /* Reset the stream, with CANCEL or without an error; no more fl_call_recv_*. */
    void (*reset)(void *stream, bool cancel);
    /* Server: send this status next and nothing more; no more fl_call_recv_*. `message`
       is percent-encoded, may be NULL, and is borrowed. */
    void (*reject)(void *stream, enum fl_grpc_status status, const char *message);
    /* Run fl_call_dispatch() soon, not from here. */
    void (*due)(void *stream);
};

/* What all calls of a connection share; must outlive them. */
struct fl_rpc_conn {
    const struct fl_rpc_transport *ops;
    struct fl_rpc_limits limits;
    const char *peer;
    uint32_t who;                 /* what the peer is, bits of enum fl_who */
    char *why;                    /* it is nothing; owned, NULL: no reason was given */
    struct fl_identity *identity; /* owned; NULL: not known */
    struct fl_account account;
    /* A call ended because of what its peer does or fails to do; `text` says why, `reason` is a
       literal, the same for what is alike. May be NULL. */
    void (*notice)(void *ctx, const struct fl_call *call, const char *reason, const char *text);
    void *notice_ctx;
};

/* Keeps references to `conn` and `stream`. FL_ENOMEM. */
FL_MUST_CHECK int fl_call_create(struct fl_rpc_conn *conn, void *stream, bool server,
                                 const char *path, struct fl_call **ret);
void fl_call_free(struct fl_call *call);

/*
 * One header field (borrows). More than the limit is remembered and refused later;
 * FL_ELIMIT: so much more that the connection should go. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_call_recv_header(struct fl_call *call, const void *name, size_t name_len,
                                      const void *value, size_t value_len);
/*
 * Server: the request's headers are complete. Anything but FL_GRPC_OK is to be answered at
 * once, with `*ret_http` as the HTTP status and the text in `text`.
 */
enum fl_grpc_status fl_call_check_request(struct fl_call *call, unsigned *ret_http, char *text,
                                          size_t size);
/* Server: may the peer call it? Else the status, with the text. */
enum fl_grpc_status fl_call_check_peer(const struct fl_call *call,
                                       const struct fl_rpc_method *method, char *text, size_t size);
/* Server: what the peer was, it is no longer; `why` is copied. */
void fl_call_expel(struct fl_call *call, const char *why);
/* What the peer of the connection is; copied. FL_ENOMEM: nothing has changed. */
FL_MUST_CHECK int fl_rpc_conn_identify(struct fl_rpc_conn *conn, uint32_t who, const char *why,
                                       const struct fl_identity *identity);
void fl_rpc_conn_done(struct fl_rpc_conn *conn);
/* Server: hand the call to its method. */
void fl_call_start(struct fl_call *call, const struct fl_rpc_method *method);
/* Client: a header block (response or trailers) is complete. */
void fl_call_recv_response(struct fl_call *call, bool end);
void fl_call_recv_data(struct fl_call *call, const uint8_t *data, size_t len);
/* The peer ended its side in order. */
void fl_call_recv_end(struct fl_call *call);
/* The stream is gone: reset by the peer, or the connection broke. Ignored when the outcome
   is known already. `text` is copied. */
void fl_call_closed(struct fl_call *call, enum fl_grpc_status status, const char *text);

/* Bytes waiting to be taken. */
size_t fl_call_out_bytes(const struct fl_call *call);
/* After these bytes comes the end (client) or the status (server). */
bool fl_call_out_end(const struct fl_call *call);
/* Move `n` bytes to `to` under `tag`. FL_ENOMEM. */
FL_MUST_CHECK int fl_call_out_take(struct fl_call *call, struct fl_segq *to, size_t n,
                                   uint32_t tag);
/* `n` of the taken bytes were handed to the socket. */
void fl_call_out_sent(struct fl_call *call, size_t n);
/* Server, when ending: status and percent-encoded message (or NULL). */
enum fl_grpc_status fl_call_out_status(const struct fl_call *call, const char **ret_message);
/* Server: the status is on its way. */
void fl_call_out_status_sent(struct fl_call *call);

/* Deadlines: of the client's timeout, and server: of waiting for the peer. */
/* Client: give up `timeout_ms` after `now_ms`. */
void fl_call_set_timeout(struct fl_call *call, uint64_t now_ms, uint64_t timeout_ms);
/* UINT64_MAX: none. 0: at once; the timeout starts to count at the next tick. */
uint64_t fl_call_deadline(const struct fl_call *call);
void fl_call_tick(struct fl_call *call, uint64_t now_ms);

/* Run the callbacks that are due. True: the call is over, free it. */
bool fl_call_dispatch(struct fl_call *call);
enum fl_call_bulk fl_call_bulk(const struct fl_call *call);
/* Credit that the user still holds. */
size_t fl_call_held(const struct fl_call *call);

#endif
