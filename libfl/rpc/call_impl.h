#ifndef FL_RPC_CALL_IMPL_H
#define FL_RPC_CALL_IMPL_H

/* The private state of a call; private to libfl/rpc. */

#include "libfl/base/sm.h"
#include "libfl/rpc/frame.h"
#include "libfl/rpc/headers.h"
#include "libfl/rpc/transport.h"

#define FL_CALL_MAGIC 0x466c4361u /* "FlCa" */

enum fl_call_state { FL_CALL_HEADERS, FL_CALL_OPEN, FL_CALL_ENDING, FL_CALL_CLOSED, FL_CALL_DONE };

/* What the peer's header blocks contained. */
struct fl_call_peer_headers {
    size_t bytes;
    bool oversized;
    bool is_post;
    bool te_trailers;
    bool grpc_type;
    bool bad_timeout;
    bool have_status; /* grpc-status was present */
    bool responded;   /* client: the final response headers have arrived */
    unsigned http_status;
    enum fl_grpc_status status;
    char *message;
};

struct fl_call {
    uint32_t magic;
    bool server;
    bool remote_end;
    bool local_end;  /* client: fl_call_end() */
    bool in_message; /* inside on_message */
    bool writable;   /* on_writable is due */
    bool was_full;   /* the queue was above half its limit, or refused a message */
    bool has_timeout;
    bool anchored; /* `deadline` is set */
    struct fl_sm sm;
    struct fl_rpc_conn *conn;
    void *stream;
    const struct fl_call_handler *handler;
    void *ctx;
    char *path;
    struct fl_call_peer_headers peer;
    uint64_t timeout_ms;
    uint64_t deadline;
    uint64_t idle_at;  /* when the peer's time limit passes; 0: not started */
    bool progressed;   /* bytes moved since the last tick */
    uint64_t received; /* bytes of messages that the peer has sent, incomplete ones included */
    bool patient;      /* the peer may be silent */
    bool vouched;
    bool counted; /* in the account's open calls */
    enum fl_call_bulk bulk;

    struct fl_frame frame;
    uint8_t *msg;   /* memory for messages that arrive in parts; reused for the next one */
    size_t msg_cap; /* charged to the account, as are held, queue_cost and extra */
    size_t msg_len;
    const uint8_t *direct; /* a message that is complete in the transport's input */
    size_t held;
    size_t early; /* consumed inside on_message, before it was held */

    struct fl_segq out;
    size_t queue_bytes;         /* limit of `queued` */
    size_t queued;              /* bytes in `out` and taken by the transport */
    size_t queue_cost;          /* memory of the queued bytes */
    size_t extra;               /* memory of headers, and what the handler holds */
    enum fl_grpc_status status; /* set by the handler */
    char *status_message;       /* percent-encoded */

    enum fl_grpc_status outcome; /* for on_closed */
    char *outcome_text;
};

/* Sets the outcome: nothing more is sent or received, on_closed is due. */
void fl__call_close(struct fl_call *call, enum fl_grpc_status status, const char *text);
/* Ends the call from this side because of what the peer did (or failed to do in time). */
FL_PRINTF(3, 4)
void fl__call_fail(struct fl_call *call, enum fl_grpc_status status, const char *fmt, ...);

/* The account refused (`code`) memory for `what`: ends the call. */
void fl__call_over(struct fl_call *call, int code, const char *what);

#endif
