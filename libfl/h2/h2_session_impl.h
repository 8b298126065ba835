#ifndef FL_H2_SESSION_IMPL_H
#define FL_H2_SESSION_IMPL_H

/*
 * The private types of an HTTP/2 session; private to libfl/h2.
 *
 *   h2_session.c   life cycle, receiving, ticks, delivery of callbacks
 *   callbacks.c    nghttp2's callbacks while it receives
 *   h2_stream.c    a stream and its call, the transport that calls see, credit
 *   bulk.c         transfers at a limited rate
 *   h2_output.c    which stream sends next, and the queue of bytes to the socket
 *   h2_server.c, h2_client.c  what only one side does
 *   h2_memory.c    the allocator of nghttp2
 *
 * nghttp2_session_mem_recv() is called in fl_h2_recv() only, nghttp2_session_mem_send() in
 * fl__h2_pump() only; neither runs inside an nghttp2 callback. User callbacks may run inside
 * nghttp2's receiving callbacks; what they send is only submitted there.
 */

#include <nghttp2/nghttp2.h>

#include "libfl/base/list.h"
#include "libfl/base/rate.h"
#include "libfl/h2/h2.h"
#include "libfl/rpc/transport.h"

/* RFC 9113 sections 4.1, 4.2, 6.9.2. */
#define FL_H2_FRAME_HEAD 9
#define FL_H2_FRAME_MIN  16384u
#define FL_H2_FRAME_MAX  16777215u
#define FL_H2_WINDOW_MIN 65535u
#define FL_H2_WINDOW_MAX 2147483647u

struct h2_stream {
    struct fl_list all;
    struct fl_list ready; /* something to send */
    struct fl_list due;   /* callbacks to run */
    struct fl_h2 *h2;
    struct fl_call *call;
    int32_t id;
    bool counted;   /* included in fl_h2_calls(): its request is complete */
    bool attached;  /* the stream's user data in nghttp2 is this struct */
    bool submitted; /* server: response headers were submitted */
    bool deferred;  /* nghttp2 waits until we resume the stream's data */
    bool granted;   /* it may send one DATA frame */
};

/* Rate limit of bulk data in one direction. */
struct fl__bulk {
    uint64_t rate;    /* bytes of DATA per second */
    uint64_t portion; /* bytes at a time */
    bool running;     /* a transfer runs: the next three fields are valid */
    struct fl_bucket bucket;
    uint64_t ready;  /* bytes of the bucket that may be sent until the next tick */
    uint64_t due_ms; /* the next tick */
};

struct fl_h2 {
    nghttp2_session *session;
    bool server;
    bool secure;            /* client: https */
    bool settings_received; /* the peer's SETTINGS have arrived */
    bool going_away;        /* no new calls: GOAWAY was sent or received */
    bool freeing;
    enum { FL_H2_SERVING, FL_H2_NOTICED, FL_H2_DRAINED } drain;
    uint64_t received; /* bytes */
    int code;          /* FL_OK, or why the connection has failed */
    unsigned depth;    /* inside a function that runs callbacks */
    struct fl_rpc_conn conn;
    char *peer;
    char *authority;
    const struct fl_rpc_method *methods;
    fl_h2_wake_cb wake;
    void *ctx;
    bool woken_output;
    bool woken_dispatch;

    struct fl_list all;
    struct fl_list ready;
    struct fl_list due;
    size_t n_calls;

    size_t pace;          /* bytes in `out` beyond which nothing more is granted */
    struct fl_segq out;   /* bytes for the socket */
    struct fl_blob *page; /* where copied bytes of `out` lie */
    uint8_t *page_next;
    size_t page_left;
    unsigned small_run; /* frames of small calls since the last frame of a bulk call */

    size_t debt;     /* connection credit to withhold because users hold messages */
    size_t withheld; /* credit that was withheld */

    struct fl__bulk *sends, *takes; /* owned; NULL: no rate limit, the usual case */

    bool rate_anchored; /* abuse is counted per second from `rate_end` - 1 s */
    uint64_t rate_end;
    uint32_t resets;
    uint32_t idle_frames; /* frames that cause work and carry no data */
};

/* h2_state.c */
/* Records the first fatal error, a code of ours. Returns it. */
int fl__h2_fail(struct fl_h2 *h2, int code);
/* Translates nghttp2's code; a fatal one fails the connection. */
int fl__h2_check(struct fl_h2 *h2, int nghttp2_code);
void fl__h2_wake_output(struct fl_h2 *h2);
void fl__h2_wake_dispatch(struct fl_h2 *h2);
/* Counts abuse; FL_ELIMIT when the limit per second is exceeded. */
int fl__h2_count_reset(struct fl_h2 *h2);
int fl__h2_count_idle(struct fl_h2 *h2);
nghttp2_nv fl__h2_nv(const char *name, const char *value);
/* Submits a status as trailers, or as the whole reply when headers were not sent. */
int fl__h2_submit_status(struct fl_h2 *h2, const struct h2_stream *s, unsigned http_status,
                         enum fl_grpc_status status, const char *message);

/* callbacks.c */
void fl__h2_set_callbacks(nghttp2_session_callbacks *cbs);

/* h2_stream.c */
extern const struct fl_rpc_transport fl__h2_transport;
FL_MUST_CHECK int fl__h2_stream_create(struct fl_h2 *h2, const char *path, struct h2_stream **ret);
void fl__h2_stream_free(struct h2_stream *s);
void fl__h2_stream_count(struct h2_stream *s);
/* Detaches the stream from nghttp2. */
void fl__h2_stream_detach(struct h2_stream *s);
struct h2_stream *fl__h2_stream_get(struct fl_h2 *h2, int32_t id);

/* bulk.c */
/* `rate` 0: none, which is FL_OK. FL_ENOMEM. */
FL_MUST_CHECK int fl__h2_bulk_new(uint64_t rate, struct fl__bulk **ret);
/* The rate limit of the stream's outgoing, and incoming, bytes; NULL: none. */
struct fl__bulk *fl__h2_bulk_sends(const struct h2_stream *s);
struct fl__bulk *fl__h2_bulk_takes(const struct h2_stream *s);
uint64_t fl__h2_bulk_deadline(const struct fl_h2 *h2);
void fl__h2_bulk_tick(struct fl_h2 *h2, uint64_t now_ms);
/* True when a portion of its queued bytes, or all of them, may be sent now. */
bool fl__h2_bulk_may_send(const struct h2_stream *s);
void fl__h2_bulk_sent(struct h2_stream *s, size_t n);
/* The request was sent: streams without a rate limit get their window. */
int fl__h2_bulk_opened(struct h2_stream *s);
void fl__h2_bulk_ended(const struct h2_stream *s);

/* h2_memory.c */
nghttp2_mem fl__h2_mem(void);

/* h2_output.c */
void fl__h2_set_output_callbacks(nghttp2_session_callbacks *cbs);
/* Fills the queue of bytes; with `data` also from calls. */
void fl__h2_pump(struct fl_h2 *h2, bool data);
void fl__h2_output_done(struct fl_h2 *h2);
ssize_t fl__h2_read_cb(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length,
                       uint32_t *data_flags, nghttp2_data_source *source, void *user_data);

/* h2_server.c */
/* The headers of a request are complete. */
int fl__h2_server_request(struct fl_h2 *h2, struct h2_stream *s, bool end);

#endif
