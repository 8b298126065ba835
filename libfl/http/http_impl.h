#ifndef FL_HTTP_HTTP_IMPL_H
#define FL_HTTP_HTTP_IMPL_H

/* Private to the files of this room. */

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "libfl/base/list.h"
#include "libfl/http/http.h"
#include "libfl/http/token.h"
#include "libfl/net/loop.h"

/* Most addresses of one port. */
#define FL__HTTP_ADDRESSES 8
/* Bytes that an event stream prepares at once. */
#define FL__HTTP_STREAM_BYTES 8192

struct fl__http_listener {
    struct fl_http *http;
    struct MHD_Daemon *daemon;
    int fd; /* -1: libmicrohttpd owns it */
    int poll_fd;
    uint16_t port;
    char text[128]; /* as configured */
};

/* One connection, for the limits. */
struct fl__http_peer {
    struct fl_list link;
    char address[64];
};

struct fl__http_post {
    struct fl__http_post *next;
    void (*fn)(void *arg);
    void *arg;
};

struct fl__http_stream {
    struct fl_list link;
    struct fl_http *http;
    struct MHD_Connection *connection;
    fl_http_read_cb read;
    void *ctx;
    uint64_t at;
    struct fl_buf ready; /* read, and not sent yet */
    uint64_t sent_ms;
    bool suspended;
};

struct fl_http {
    struct fl_http_setup setup;
    struct fl_http_token token;
    struct fl__http_listener listeners[FL__HTTP_ADDRESSES];
    size_t n_listeners;
    struct fl_thread *thread;
    int wake_fd;
    atomic_bool stop, woken;
    pthread_mutex_t lock; /* posts, closed */
    struct fl__http_post *first, *last;
    bool closed;
    /* HTTP thread only. */
    struct fl_list peers; /* fl__http_peer */
    unsigned n_peers;
    struct fl_list later; /* fl_http_request, the oldest first */
    struct fl_list streams;
    unsigned n_streams;
    atomic_size_t unread;
    atomic_uint_fast64_t n_requests, n_refused, n_connections_refused, n_open_streams;
};

enum fl__http_state {
    FL__HTTP_NEW = 0, /* not handled yet */
    FL__HTTP_LATER,   /* suspended */
    FL__HTTP_READY,   /* `response` is to be queued */
    FL__HTTP_QUEUED
};

struct fl_http_request {
    struct fl_http *http;
    struct MHD_Connection *connection;
    enum fl__http_state state;
    bool suspended;
    const char *rest;
    struct MHD_Response *response; /* owned until it is queued */
    unsigned status;
    struct fl_list link; /* in fl_http.later */
    uint64_t due_ms;
    void (*dropped)(void *ctx);
    void *dropped_ctx;
    size_t body;        /* bytes of the request's body, which are discarded */
    char *path;         /* owned */
    const char *policy; /* NULL: none */
};

/* http_answer.c */
enum MHD_Result fl__http_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *upload,
                                    size_t *upload_size, void **con_cls);
void fl__http_on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                           enum MHD_RequestTerminationCode why);
/* Answer those that are due, or all with `stop`. */
void fl__http_expire(struct fl_http *http, uint64_t now_ms, bool stop);
/* Takes `response`; NULL: out of memory, the connection is closed. */
void fl__http_respond(struct fl_http_request *request, unsigned status,
                      struct MHD_Response *response);
void fl__http_add_header(struct MHD_Response *response, const char *name, const char *value);

/* http_stream.c */
/* Resume those that have to read or to send a comment; `all`: every one. */
void fl__http_streams_resume(struct fl_http *http, uint64_t now_ms, bool all);

/* http_listen.c: bind, and start libmicrohttpd on the socket. */
FL_MUST_CHECK int fl__http_listen(struct fl_http *http, const char *address, struct fl_err *err);
void fl__http_listener_close(struct fl__http_listener *listener);

#endif
