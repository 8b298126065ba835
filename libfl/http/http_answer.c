/*
 * Requests: checks method, path, token and query, calls the handler of the route, and queues the
 * answer, at once or when it is there. HTTP thread.
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libfl/base/checksum.h"
#include "libfl/base/clock.h"
#include "libfl/base/str.h"
#include "libfl/http/http_impl.h"

/* Answers up to this size are sent whatever other readers leave unread. */
#define HTTP_SMALL_BYTES 65536
/* A body that is sent with a request is discarded up to this size. */
#define HTTP_BODY_MAX 65536

void fl__http_add_header(struct MHD_Response *response, const char *name, const char *value)
{
    /* Without memory for a field the answer goes without it. */
    (void)MHD_add_response_header(response, name, value);
}

void fl__http_respond(struct fl_http_request *r, unsigned status, struct MHD_Response *response)
{
    struct fl_http *http = r->http;

    if (r->state == FL__HTTP_READY || r->state == FL__HTTP_QUEUED) {
        MHD_destroy_response(response);
        return;
    }
    if (response != NULL) {
        fl__http_add_header(response, "X-Content-Type-Options", "nosniff");
        fl__http_add_header(response, "Cache-Control", "no-cache");
        fl__http_add_header(response, "Referrer-Policy", "no-referrer");
        fl__http_add_header(response, "X-Frame-Options", "DENY");
    }
    atomic_fetch_add(status < 400 ? &http->n_requests : &http->n_refused, 1);
    fl_list_remove(&r->link);
    r->response = response;
    r->status = status;
    r->state = FL__HTTP_READY;
    if (r->suspended) {
        r->suspended = false;
        MHD_resume_connection(r->connection);
    }
}

/* The bytes of an answer, until they are sent. */
struct unread {
    struct fl_http *http;
    struct fl_blob *blob;
};

static void unread_done(void *cls)
{
    struct unread *u = cls;

    atomic_fetch_sub(&u->http->unread, fl_blob_len(u->blob));
    fl_blob_unref(u->blob);
    free(u);
}

/* Takes `body`. NULL: out of memory. */
static struct MHD_Response *response_of(struct fl_http *http, struct fl_buf *body)
{
    struct unread *u = calloc(1, sizeof(*u));
    struct MHD_Response *response;

    if (u == NULL || fl_blob_from_buf(body, &u->blob) != FL_OK) {
        free(u);
        fl_buf_done(body);
        return NULL;
    }
    u->http = http;
    atomic_fetch_add(&http->unread, fl_blob_len(u->blob));
    response = MHD_create_response_from_buffer_with_free_callback_cls(
        fl_blob_len(u->blob), (void *)(uintptr_t)fl_blob_data(u->blob), unread_done, u);
    if (response == NULL) {
        unread_done(u);
    }
    return response;
}

void fl_http_policy(struct fl_http_request *r, const char *policy)
{
    r->policy = policy;
}

/* Is `tag` in a list of If-None-Match ("\"a\", W/\"b\"", or "*")? */
static bool http_tag_matches(const char *list, const char *tag)
{
    return list != NULL && (strcmp(list, "*") == 0 || strstr(list, tag) != NULL);
}

void fl_http_answer(struct fl_http_request *r, const char *type, struct fl_buf *body, bool tag)
{
    struct fl_http *http = r->http;
    char etag[FL_CHECKSUM_TEXT + 2] = "";
    char sum[FL_CHECKSUM_TEXT];
    struct MHD_Response *response;
    unsigned status = MHD_HTTP_OK;

    if (body->len > HTTP_SMALL_BYTES &&
        atomic_load(&http->unread) + body->len > http->setup.limits.unread_bytes)
    {
        fl_buf_done(body);
        fl_http_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE,
                     "readers have left %zu MB of answers unread, the limit: retry in %u s",
                     http->setup.limits.unread_bytes >> 20, http->setup.limits.idle_s);
        return;
    }
    if (tag) {
        (void)snprintf(etag, sizeof(etag), "\"%s\"",
                       fl_checksum_text(fl_checksum(body->data, body->len), sum));
        if (http_tag_matches(fl_http_header(r, "If-None-Match"), etag)) {
            fl_buf_clear(body);
            status = MHD_HTTP_NOT_MODIFIED;
        }
    }
    response = response_of(http, body);
    if (response != NULL) {
        fl__http_add_header(response, "Content-Type", type);
        if (r->policy != NULL) {
            fl__http_add_header(response, "Content-Security-Policy", r->policy);
        }
        if (tag) {
            fl__http_add_header(response, "ETag", etag);
        }
    }
    fl__http_respond(r, status, response);
}

void fl_http_fail(struct fl_http_request *r, unsigned status, const char *fmt, ...)
{
    struct MHD_Response *response;
    char text[1024];
    va_list ap;
    size_t n;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text) - 1, fmt, ap);
    va_end(ap);
    (void)fl_str_clean(text);
    n = strlen(text);
    text[n++] = '\n';
    response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_COPY);
    if (response != NULL) {
        fl__http_add_header(response, "Content-Type", "text/plain; charset=utf-8");
        if (status == MHD_HTTP_UNAUTHORIZED) {
            fl__http_add_header(response, "WWW-Authenticate", "Bearer");
        } else if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
            fl__http_add_header(response, "Allow", "GET, HEAD");
        }
    }
    fl__http_respond(r, status, response);
}

void fl_http_fail_code(struct fl_http_request *r, int code, const struct fl_err *err)
{
    fl_http_fail(r,
                 code == FL_ENOENT   ? MHD_HTTP_NOT_FOUND
                 : code == FL_EINVAL ? MHD_HTTP_BAD_REQUEST
                                     : MHD_HTTP_SERVICE_UNAVAILABLE,
                 "%s", fl_err_text(err, code));
}

void fl_http_later(struct fl_http_request *r, void (*dropped)(void *ctx), void *ctx)
{
    r->dropped = dropped;
    r->dropped_ctx = ctx;
    if (r->state == FL__HTTP_LATER) {
        return;
    }
    r->state = FL__HTTP_LATER;
    r->due_ms = fl_clock_ms() + 1000u * r->http->setup.limits.answer_s;
    fl_list_append(&r->http->later, &r->link);
}

void fl__http_expire(struct fl_http *http, uint64_t now_ms, bool stop)
{
    struct fl_http_request *r;

    while ((r = FL_LIST_FIRST(&http->later, struct fl_http_request, link)) != NULL &&
           (stop || now_ms >= r->due_ms))
    {
        r->dropped(r->dropped_ctx);
        fl_http_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE,
                     stop ? "the daemon is stopping"
                          : "no answer within %u s: the daemon is waiting, perhaps for its disk: "
                            "see flctl why and its log",
                     http->setup.limits.answer_s);
    }
}

/* --- the request --- */

const char *fl_http_rest(const struct fl_http_request *r)
{
    return r->rest;
}

const char *fl_http_query(const struct fl_http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *fl_http_header(const struct fl_http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->connection, MHD_HEADER_KIND, name);
}

bool fl_http_query_whole(struct fl_http_request *r, const char *name, uint64_t min, uint64_t max,
                         uint64_t *ret)
{
    const char *text = fl_http_query(r, name);
    uint64_t value = 0;

    if (text == NULL) {
        return true;
    }
    if (fl_str_to_u64(text, &value) != FL_OK || value < min || value > max) {
        fl_http_fail(r, MHD_HTTP_BAD_REQUEST,
                     "query parameter %s: expected a number from %llu to %llu, found '%.64s'", name,
                     (unsigned long long)min, (unsigned long long)max, text);
        return false;
    }
    *ret = value;
    return true;
}

bool fl_http_query_word(struct fl_http_request *r, const char *name, const char *const *words,
                        size_t *ret)
{
    const char *text = fl_http_query(r, name);
    char list[512] = "";
    size_t i;

    if (text == NULL) {
        return true;
    }
    for (i = 0; words[i] != NULL; i++) {
        size_t used = strlen(list);

        if (strcmp(words[i], text) == 0) {
            *ret = i;
            return true;
        }
        (void)snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", words[i]);
    }
    fl_http_fail(r, MHD_HTTP_BAD_REQUEST, "query parameter %s: expected one of %s, found '%.64s'",
                 name, list, text);
    return false;
}

/* --- dispatch --- */

static enum MHD_Result http_check_parameter(void *cls, enum MHD_ValueKind kind, const char *key,
                                            const char *value)
{
    const void **args = cls; /* the allowed names, and the first unknown one */
    const char *const *allowed = args[0];

    (void)kind;
    (void)value;
    for (; allowed != NULL && *allowed != NULL; allowed++) {
        if (strcmp(*allowed, key) == 0) {
            return MHD_YES;
        }
    }
    args[1] = key;
    return MHD_NO;
}

static const struct fl_http_route *http_find(const struct fl_http *http, const char *path,
                                             const char **ret_rest)
{
    const struct fl_http_route *route;

    for (route = http->setup.routes; route->path != NULL; route++) {
        size_t n = strlen(route->path);
        bool below = n > 1 && route->path[n - 1] == '/';

        if (below ? strncmp(route->path, path, n) == 0 && path[n] != '\0'
                  : strcmp(route->path, path) == 0) {
            *ret_rest = path + n;
            return route;
        }
    }
    return NULL;
}

static void http_fail_path(struct fl_http_request *r)
{
    const struct fl_http_route *route;
    char list[512] = "";

    for (route = r->http->setup.routes; route->path != NULL; route++) {
        size_t used = strlen(list);

        (void)snprintf(list + used, sizeof(list) - used, "%s%s", used > 0 ? ", " : "", route->path);
    }
    fl_http_fail(r, MHD_HTTP_NOT_FOUND, "nothing is at '%.100s': expected one of %s", r->path,
                 list);
}

/*
 * Is this the name of a loopback address, or an address? Without a token, a page of another site in
 * a browser of this host could read the port through a name of its own that it lets resolve to it.
 */
static bool http_host_is_own(const char *host)
{
    struct in_addr address;
    char name[64];
    size_t n;

    if (host == NULL || host[0] == '[') {
        return true;
    }
    n = strcspn(host, ":");
    if (n >= sizeof(name)) {
        return false;
    }
    memcpy(name, host, n);
    name[n] = '\0';
    return strcasecmp(name, "localhost") == 0 || inet_pton(AF_INET, name, &address) == 1;
}

static void http_dispatch(struct fl_http_request *r, const char *method)
{
    struct fl_http *http = r->http;
    const struct fl_http_route *route = http_find(http, r->path, &r->rest);
    const void *args[2] = {NULL, NULL};

    if (atomic_load(&http->stop)) {
        fl_http_fail(r, MHD_HTTP_SERVICE_UNAVAILABLE, "the daemon is stopping");
        return;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        fl_http_fail(r, MHD_HTTP_METHOD_NOT_ALLOWED,
                     "method %.16s: this port is read-only, expected GET or HEAD", method);
        return;
    }
    if (http->token.text[0] == '\0' && !http_host_is_own(fl_http_header(r, "Host"))) {
        fl_http_fail(r, MHD_HTTP_FORBIDDEN,
                     "host '%.128s': without http.token_file this port answers to localhost and to "
                     "addresses only",
                     fl_http_header(r, "Host"));
        return;
    }
    if ((route == NULL || !route->open) &&
        !fl_http_token_shown(&http->token, fl_http_header(r, "Authorization")))
    {
        fl_http_fail(r, MHD_HTTP_UNAUTHORIZED,
                     "expected the header 'Authorization: Bearer TOKEN' with the token of "
                     "http.token_file");
        return;
    }
    if (route == NULL) {
        http_fail_path(r);
        return;
    }
    args[0] = route->query;
    (void)MHD_get_connection_values(r->connection, MHD_GET_ARGUMENT_KIND, http_check_parameter,
                                    args);
    if (args[1] != NULL) {
        fl_http_fail(r, MHD_HTTP_BAD_REQUEST,
                     "query parameter '%.64s' is not known at %s (docs/http.md)",
                     (const char *)args[1], route->path);
        return;
    }
    route->handle(http->setup.ctx, r);
}

static enum MHD_Result request_queue(struct fl_http_request *r)
{
    enum MHD_Result result;

    if (r->response == NULL) {
        return MHD_NO; /* Out of memory: the connection is closed. */
    }
    r->state = FL__HTTP_QUEUED;
    result = MHD_queue_response(r->connection, r->status, r->response);
    MHD_destroy_response(r->response);
    r->response = NULL;
    return result;
}

enum MHD_Result fl__http_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                    const char *method, const char *version, const char *upload,
                                    size_t *upload_size, void **con_cls)
{
    struct fl_http_request *r = *con_cls;

    (void)version;
    (void)upload;
    if (r == NULL) {
        r = calloc(1, sizeof(*r));
        if (r == NULL || (r->path = fl_str_dup(url)) == NULL) {
            free(r);
            return MHD_NO;
        }
        r->http = cls;
        r->connection = connection;
        r->rest = "";
        *con_cls = r;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        r->body += *upload_size;
        *upload_size = 0;
        return r->body <= HTTP_BODY_MAX ? MHD_YES : MHD_NO;
    }
    if (r->state == FL__HTTP_NEW) {
        http_dispatch(r, method);
    }
    if (r->state == FL__HTTP_LATER) {
        r->suspended = true;
        MHD_suspend_connection(connection);
        return MHD_YES;
    }
    return request_queue(r);
}

void fl__http_on_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                           enum MHD_RequestTerminationCode why)
{
    struct fl_http_request *r = *con_cls;

    (void)cls;
    (void)connection;
    (void)why;
    if (r == NULL) {
        return;
    }
    if (r->state == FL__HTTP_LATER) {
        fl_list_remove(&r->link);
        r->dropped(r->dropped_ctx);
    }
    if (r->response != NULL) {
        MHD_destroy_response(r->response);
    }
    free(r->path);
    free(r);
    *con_cls = NULL;
}
