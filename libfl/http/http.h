#ifndef FL_HTTP_HTTP_H
#define FL_HTTP_HTTP_H

/*
 * A read-only HTTP/1.1 port: GET and HEAD by a table of routes, on a thread of its own, so that no
 * reader can block another loop. The only user of libmicrohttpd.
 *
 * Limits (fl_http_limits): connections in all and of one address, bytes of a request's header,
 * seconds without progress, event streams, bytes of answers that are not read yet. What exceeds one
 * of them is refused with a status and a text, or closed, with a log line that is rate limited.
 *
 * Threading: handlers, and all functions on a request, run on the HTTP thread; fl_http_post() and
 * fl_http_wake() may be called from any thread; the others belong to the thread that creates.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/buf.h"
#include "libfl/base/log.h"
#include "libfl/conf/http_options.h"

struct fl_http;
struct fl_http_request;

/*
 * Check addresses and token file: FL_ECONF, and `*ret_field` is the field of `conf` that is meant,
 * for fl_conf_blame(). An address that is not on loopback needs a token file.
 */
FL_MUST_CHECK int fl_http_conf_check(const struct fl_http_conf *conf, const void **ret_field,
                                     struct fl_err *err);

/* How the answer to a path is made. A table of them ends with a NULL path. */
struct fl_http_route {
    const char *path; /* "/metrics"; with a "/" at its end: everything below it */
    bool open;        /* answered without the token: probes of a service manager */
    /* On the HTTP thread: answers, fails, or calls fl_http_later() or fl_http_stream(). */
    void (*handle)(void *ctx, struct fl_http_request *request);
    /* Names of the allowed query parameters, NULL terminated; NULL: none. */
    const char *const *query;
    /* For the reference: what follows a path that ends with "/", and what is answered, in Markdown.
     */
    const char *rest, *help;
};

/* Append a table of the routes (Markdown); docs/http.md has it. */
FL_MUST_CHECK int fl_http_reference(struct fl_buf *out, const struct fl_http_route *routes);

struct fl_http_limits {
    unsigned connections; /* in all */
    unsigned per_address; /* from one address; 0: as in all */
    unsigned streams;     /* event streams */
    size_t header_bytes;  /* of a request, and of the memory of a connection */
    unsigned idle_s;      /* a connection without progress is closed */
    unsigned answer_s;    /* an answer that comes later is replaced by 503 */
    unsigned alive_s;     /* a silent event stream gets a comment */
    size_t unread_bytes;  /* of all long answers that are not read yet */
};

/* The descriptors that the limits of fl_http_limits_default() need. */
#define FL_HTTP_CONNECTIONS 320
#define FL_HTTP_DESCRIPTORS (FL_HTTP_CONNECTIONS + 16)

void fl_http_limits_default(struct fl_http_limits *ret);

/* What has happened since the start. */
struct fl_http_counts {
    uint64_t requests, refused; /* answered with a status below 400, and with 400 or more */
    uint64_t connections_refused;
    uint64_t streams; /* open now */
};

struct fl_http_setup {
    const struct fl_http_conf *conf;    /* read during fl_http_create() only */
    const struct fl_http_route *routes; /* borrowed */
    void *ctx;                          /* of the handlers */
    const struct fl_log *log;           /* borrowed */
    const char *component;              /* of log lines; borrowed */
    struct fl_http_limits limits;
};

/*
 * Read the token and bind the addresses; logs them. Copies `setup`. FL_EINUSE and others with the
 * address and what to do, FL_ECONF for the token file.
 */
FL_MUST_CHECK int fl_http_create(const struct fl_http_setup *setup, struct fl_http **ret,
                                 struct fl_err *err);
/* Start the thread: from here on requests are answered. */
FL_MUST_CHECK int fl_http_start(struct fl_http *http, struct fl_err *err);
/* Close all connections and join the thread: answers that are still due are dropped with `dropped`.
 */
void fl_http_stop(struct fl_http *http);
/* Stops first. NULL is allowed. */
void fl_http_free(struct fl_http *http);
/* The port of the n-th address, 0: there is none. Constant after fl_http_create(). */
uint16_t fl_http_port(const struct fl_http *http, size_t n);
/* Any thread. */
struct fl_http_counts fl_http_counts(const struct fl_http *http);

/*
 * Run fn(arg) on the HTTP thread. False: it has stopped, or memory is short, and `fn` never runs.
 */
FL_MUST_CHECK bool fl_http_post(struct fl_http *http, void (*fn)(void *arg), void *arg);
/* Event streams read again. */
void fl_http_wake(struct fl_http *http);

/* --- a request, on the HTTP thread --- */

/* What follows a route's path that ends with "/", unescaped: "edge-01" of "/api/v1/clients/". */
const char *fl_http_rest(const struct fl_http_request *request);
/* The value of a query parameter, unescaped, or NULL. */
const char *fl_http_query(const struct fl_http_request *request, const char *name);
/* The value of a header field, or NULL. */
const char *fl_http_header(const struct fl_http_request *request, const char *name);
/*
 * Read a number of the query: absent leaves `*ret`. Else it is answered with 400, which names the
 * parameter, its value and the range, and the result is false.
 */
FL_MUST_CHECK bool fl_http_query_whole(struct fl_http_request *request, const char *name,
                                       uint64_t min, uint64_t max, uint64_t *ret);
/* The same for a word of a list, NULL terminated; `*ret`: its index. */
FL_MUST_CHECK bool fl_http_query_word(struct fl_http_request *request, const char *name,
                                      const char *const *words, size_t *ret);

/*
 * Answer with 200 and `body`, which is taken and left empty. With `tag` the answer carries an ETag
 * of its bytes, and 304 goes to a request that has it (If-None-Match).
 */
void fl_http_answer(struct fl_http_request *request, const char *type, struct fl_buf *body,
                    bool tag);
/* The answer gets this Content-Security-Policy; before fl_http_answer(). Borrowed until then. */
void fl_http_policy(struct fl_http_request *request, const char *policy);
/* One line of plain text; control characters are replaced. */
FL_PRINTF(3, 4)
void fl_http_fail(struct fl_http_request *request, unsigned status, const char *fmt, ...);
/* The status for an error of libfl, and its text. */
void fl_http_fail_code(struct fl_http_request *request, int code, const struct fl_err *err);
/*
 * The answer comes later, by fl_http_answer() or fl_http_fail() on the HTTP thread. `dropped(ctx)`:
 * the request was answered in another way (too late, or the port stops) and must not be used again.
 * Again for a request that was put off before: `gone` and `ctx` are replaced, its time goes on.
 */
void fl_http_later(struct fl_http_request *request, void (*dropped)(void *ctx), void *ctx);

/*
 * What an event stream sends next: append at most about `max` bytes after `*at` to `out` and
 * advance `*at`. Nothing: read again after fl_http_wake(). FL_OK, or the stream ends.
 */
typedef int (*fl_http_read_cb)(void *ctx, uint64_t *at, struct fl_buf *out, size_t max);
/* Answer with server-sent events that follow `at`, until the reader leaves. */
void fl_http_stream(struct fl_http_request *request, uint64_t at, fl_http_read_cb read, void *ctx);

#endif
