#ifndef FL_RPC_CALL_H
#define FL_RPC_CALL_H

/*
 * One gRPC call, on either side, without I/O: length-prefixed messages, status,
 * deadlines, flow control by consumption. The transport below (libfl/h2) drives it through
 * transport.h.
 *
 * Callbacks never run inside the function that caused them; they run from the transport's receive,
 * tick or dispatch step. on_closed is the last one; the call is freed after it returns.
 *
 * Limits: one message has at most fl_rpc_limits.message_bytes (RESOURCE_EXHAUSTED and the call
 * ends); at most queue_bytes are queued for sending (FL_ELIMIT, nothing is queued). Threading: a
 * call belongs to the loop of its connection.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/identity.h"

enum fl_grpc_status {
    FL_GRPC_OK = 0,
    FL_GRPC_CANCELLED = 1,
    FL_GRPC_UNKNOWN = 2,
    FL_GRPC_INVALID_ARGUMENT = 3,
    FL_GRPC_DEADLINE_EXCEEDED = 4,
    FL_GRPC_NOT_FOUND = 5,
    FL_GRPC_ALREADY_EXISTS = 6,
    FL_GRPC_PERMISSION_DENIED = 7,
    FL_GRPC_RESOURCE_EXHAUSTED = 8,
    FL_GRPC_FAILED_PRECONDITION = 9,
    FL_GRPC_ABORTED = 10,
    FL_GRPC_OUT_OF_RANGE = 11,
    FL_GRPC_UNIMPLEMENTED = 12,
    FL_GRPC_INTERNAL = 13,
    FL_GRPC_UNAVAILABLE = 14,
    FL_GRPC_DATA_LOSS = 15,
    FL_GRPC_UNAUTHENTICATED = 16
};

const char *fl_grpc_status_name(enum fl_grpc_status status);
/* The only mapping of our codes to a status. */
enum fl_grpc_status fl_grpc_status_from_err(int code);

struct fl_call;

struct fl_call_handler {
    /*
     * A whole message. `data` is borrowed unless fl_call_take() is called. Return true when it was
     * processed; false to hold its window credit until fl_call_consume().
     */
    bool (*on_message)(struct fl_call *call, void *ctx, const uint8_t *data, size_t len);
    /* The peer sends no more messages. May be NULL. */
    void (*on_end)(struct fl_call *call, void *ctx);
    /* The send queue fell below half its limit after having been above. May be NULL. */
    void (*on_writable)(struct fl_call *call, void *ctx);
    /* Always the last callback, exactly once. Client: the server's status. Server: OK when
       the trailers were sent, CANCELLED when the peer reset, UNAVAILABLE when the
       connection broke, DEADLINE_EXCEEDED. */
    void (*on_closed)(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message);
};

/* Handler and context of a call; the server's start callback sets them. */
void fl_call_set_handler(struct fl_call *call, const struct fl_call_handler *handler, void *ctx);

/*
 * Part of a message: copied when `blob` is NULL, otherwise data[0..len) is in `blob` and a
 * reference is kept until it was sent. `own`: no other reference to the blob will remain, so its
 * bytes count as held for this peer, as copied ones do.
 */
struct fl_piece {
    const void *data;
    size_t len;
    struct fl_blob *blob;
    bool own;
    bool secret; /* the copy is wiped after sending */
};

/*
 * Queues one message. FL_ELIMIT: the queue is full; FL_ECLOSED: finished or closed, also when the
 * connection's account is exhausted and the call has ended for that; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_call_send(struct fl_call *call, const struct fl_piece *pieces, size_t n);
/*
 * Sets a smaller queue than fl_rpc_limits.queue_bytes for this call, before its first message: for
 * senders whose messages are not in memory anyway.
 */
void fl_call_set_queue(struct fl_call *call, size_t bytes);
/* Bytes queued and not yet handed to the socket. */
size_t fl_call_queued(const struct fl_call *call);
/*
 * Inside on_message: takes the message in its own memory (free with free()); NULL: out of memory. A
 * short message is copied, so the address may differ from `data`.
 */
uint8_t *fl_call_take(struct fl_call *call);
/* Returns window credit of `n` message bytes that on_message held. */
void fl_call_consume(struct fl_call *call, size_t n);

/* Server: ends the call after the queued messages. `message` is copied, may be NULL. */
void fl_call_finish(struct fl_call *call, enum fl_grpc_status status, const char *message);
/* Client: no more messages from this side. */
void fl_call_end(struct fl_call *call);
/* Either side: resets now, drops queued messages; on_closed follows. */
void fl_call_cancel(struct fl_call *call);

/*
 * Charges the connection's account (libfl/base/budget.h), to which the call's messages, queue and
 * headers are charged, with other memory that its handler holds for the peer. What is not returned
 * is returned with the end of the call. fl_call_charge() fails as fl_account_take() does, and
 * leaves ending the call to the caller.
 */
FL_MUST_CHECK int fl_call_charge(struct fl_call *call, size_t n);
void fl_call_discharge(struct fl_call *call, size_t n);
/*
 * Marks the call as authenticated: while it lives, its connection is evicted after unauthenticated
 * ones. `name` is the client's name; connections of one name share one allowance
 * (libfl/base/budget.h). The name in a certificate takes precedence; NULL: none.
 */
void fl_call_vouch(struct fl_call *call, const char *name);
/*
 * Server: a call that waits for its peer ends after one to two times fl_rpc_limits.idle_ms: with
 * DEADLINE_EXCEEDED when the peer has to send something, with a reset when it takes no byte of what
 * is queued. Patient: the peer may be silent without limit, because the call waits for us or
 * because another timer covers it; it still has to read.
 */
void fl_call_set_patient(struct fl_call *call, bool patient);

enum fl_call_bulk { FL_CALL_NO_BULK, FL_CALL_SENDS_BULK, FL_CALL_TAKES_BULK };
/*
 * Client, right after the call was begun: what it sends, or receives, is bulk data, limited to
 * fl_rpc_limits.send_rate or take_rate. All sending calls share the one rate, all receiving calls
 * the other. A receiving call gets its credit as bytes arrive and time passes, whatever its handler
 * holds.
 */
void fl_call_set_bulk(struct fl_call *call, enum fl_call_bulk bulk);

/* "127.0.0.1:50312" or "unix"; for logs. */
const char *fl_call_peer(const struct fl_call *call);
const char *fl_call_path(const struct fl_call *call);
/* Bytes that the peer has sent in this call, including those of an incomplete message. */
uint64_t fl_call_received(const struct fl_call *call);

/*
 * The class of a connection's peer for a server's methods (docs/security.md), in bits. The listener
 * classifies each peer that it accepts (libfl/grpc/endpoint.h).
 */
enum fl_who {
    FL_WHO_PLAIN = 1,           /* without TLS: trusted by the name that it sends */
    FL_WHO_UNAUTHENTICATED = 2, /* over TLS, without a certificate */
    FL_WHO_LAPSED = 4,  /* with a client's certificate that has expired, within the grace period */
    FL_WHO_CLIENT = 8,  /* with a client's certificate */
    FL_WHO_ADMIN = 16,  /* with an admin's certificate */
    FL_WHO_LOCAL = 32,  /* at the admin socket, with all rights */
    FL_WHO_VIEWER = 64, /* at the admin socket, may only read */
    FL_WHO_ANYBODY = 127,
    /* With a certificate that is not trusted any more; no method accepts it: UNAUTHENTICATED */
    FL_WHO_DISOWNED = 128
};

/* The verified identity of the call's peer; NULL: unknown. Valid until the call is closed. */
const struct fl_identity *fl_call_identity(const struct fl_call *call);
/* The peer's bits of enum fl_who. */
uint32_t fl_call_who(const struct fl_call *call);
/*
 * Replaces the identity after a renewal of the certificate; the peer is the same. Copied, for the
 * whole connection. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_call_set_identity(struct fl_call *call, const struct fl_identity *identity);

/* A method that a server offers: "/fl.v1.Federation/Attend". */
struct fl_rpc_method {
    const char *path;
    uint32_t who; /* peers that may call it, bits of enum fl_who; 0: none */
    /* A call has begun: set its handler. `ctx` is the service's. */
    void (*start)(struct fl_call *call, void *ctx);
    void *ctx;
};

/*
 * For a message that arrives in parts, memory for the whole is allocated when more than this much
 * has arrived, and this much until then: when a window leaves less room beyond whole messages, a
 * sender that waits for credit costs no further message.
 */
#define FL_CALL_BEGUN ((size_t)8 * 1024)

/* Every limit of a connection in one table; all are configurable and sent to peers in Welcome. */
struct fl_rpc_limits {
    uint32_t streams;       /* concurrent calls of a connection (endpoint.h: of a client) */
    uint32_t header_bytes;  /* header list of a call */
    size_t message_bytes;   /* one message */
    size_t queue_bytes;     /* queued for sending, per call */
    uint32_t stream_window; /* bytes in flight per call; raised to 2 * message_bytes */
    uint32_t conn_window;   /* bytes in flight per connection */
    size_t memory;          /* held for a connection: unfinished and unread bytes, see budget.h */
    uint32_t frame_bytes;   /* largest DATA frame either way */
    uint32_t handshake_ms;  /* from accept to HTTP/2 settings */
    uint32_t
        idle_ms; /* limit of a connection without any call, and of a call that waits for its peer */
    uint32_t resets;    /* streams a peer may reset per second (rapid reset) */
    uint64_t send_rate; /* client: rate of calls that send bulk data, in bytes of DATA per second;
                           0: unlimited */
    uint64_t take_rate; /* client: rate of calls that receive bulk data, likewise */
};

/* The defaults, each with its reason in the source. */
void fl_rpc_limits_default(struct fl_rpc_limits *limits);

#endif
