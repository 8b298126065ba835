/*
 * The HTTP port: routes, methods, queries, token, tags, answers that come later, event streams, and
 * what readers do that are slow, many or hostile. Each test has a port of its own; clients are
 * blocking sockets on this thread.
 */

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/http/http.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

/* More than the buffers of a connection take (tcp_wmem: 4 MB). */
#define BIG_BYTES ((size_t)6 << 20)

static struct fl_http *http;
static struct fl_http_limits limits;
static char http_folder[FOLDER_PATH];
static char reply[65536];
static struct fl_http_request *waiting; /* HTTP thread, until it is gone */
static atomic_uint n_waiting, n_gone;
static atomic_ullong n_events;
static char logged[65536];
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void answer_text(struct fl_http_request *request, const char *content)
{
    struct fl_buf body;

    fl_buf_init(&body, 4096);
    ck_assert_int_eq(fl_buf_add(&body, content, strlen(content)), FL_OK);
    fl_http_answer(request, "text/plain", &body, true);
}

static void on_hello(void *ctx, struct fl_http_request *request)
{
    uint64_t n = 7;
    size_t word = 0;
    char line[64];
    static const char *const words[] = {"all", "some", NULL};

    (void)ctx;
    if (fl_http_query_whole(request, "n", 1, 100, &n) &&
        fl_http_query_word(request, "which", words, &word))
    {
        (void)snprintf(line, sizeof(line), "hello %llu %s", (unsigned long long)n, words[word]);
        answer_text(request, line);
    }
}

static void on_below(void *ctx, struct fl_http_request *request)
{
    (void)ctx;
    if (strcmp(fl_http_rest(request), "none") == 0) {
        fl_http_fail_code(request, FL_ENOENT, NULL);
    } else {
        answer_text(request, fl_http_rest(request));
    }
}

static void on_gone(void *ctx)
{
    (void)ctx;
    waiting = NULL;
    atomic_fetch_add(&n_gone, 1);
}

static void on_later(void *ctx, struct fl_http_request *request)
{
    (void)ctx;
    fl_http_later(request, on_gone, NULL);
    waiting = request;
    atomic_fetch_add(&n_waiting, 1);
}

static void finish_later(void *arg)
{
    (void)arg;
    if (waiting != NULL) {
        answer_text(waiting, "late");
        waiting = NULL;
    }
}

static void on_big(void *ctx, struct fl_http_request *request)
{
    struct fl_buf body;

    (void)ctx;
    fl_buf_init(&body, BIG_BYTES);
    ck_assert_int_eq(fl_buf_reserve(&body, BIG_BYTES), FL_OK);
    memset(body.data, 'x', BIG_BYTES);
    body.len = BIG_BYTES;
    fl_http_answer(request, "text/plain", &body, false);
}

static int read_events(void *ctx, uint64_t *at, struct fl_buf *out, size_t max)
{
    int rv = FL_OK;

    (void)ctx;
    while (*at < atomic_load(&n_events) && out->len < max && rv == FL_OK) {
        (*at)++;
        rv = fl_buf_printf(out, "id: %llu\ndata: x\n\n", (unsigned long long)*at);
    }
    return rv;
}

static void on_events(void *ctx, struct fl_http_request *request)
{
    fl_http_stream(request, 0, read_events, ctx);
}

static const char *const hello_query[] = {"n", "which", NULL};
static const struct fl_http_route routes[] = {
    {.path = "/", .handle = on_hello},
    {.path = "/hello", .handle = on_hello, .query = hello_query},
    {.path = "/open", .handle = on_hello, .open = true},
    {.path = "/below/", .handle = on_below},
    {.path = "/later", .handle = on_later},
    {.path = "/big", .handle = on_big},
    {.path = "/events", .handle = on_events},
    {.path = NULL}};

static void log_line(void *ctx, enum fl_log_level level, const char *component, const char *text)
{
    size_t used;

    (void)ctx;
    (void)level;
    (void)pthread_mutex_lock(&log_lock);
    used = strlen(logged);
    (void)snprintf(logged + used, sizeof(logged) - used, "%s: %s\n", component, text);
    (void)pthread_mutex_unlock(&log_lock);
}

static const struct fl_log http_log = {.level = FL_LOG_INFO, .sink = log_line};

static int create(const char *address, const char *token_file, struct fl_err *err)
{
    const char *list[] = {address, NULL};
    const struct fl_http_conf conf = {.listen = {.list = list, .n = 1}, .token_file = token_file};

    *err = (struct fl_err){0};
    return fl_http_create(&(struct fl_http_setup){.conf = &conf,
                                                  .routes = routes,
                                                  .log = &http_log,
                                                  .component = "server",
                                                  .limits = limits},
                          &http, err);
}

static void begin(const char *token_file)
{
    struct fl_err err;

    ck_assert_msg(create("127.0.0.1:0", token_file, &err) == FL_OK, "%s", err.msg);
    ck_assert_int_eq(fl_http_start(http, &err), FL_OK);
}

static void http_setup(void)
{
    ck_assert(folder_make("http", http_folder));
    fl_http_limits_default(&limits);
    atomic_store(&n_waiting, 0);
    atomic_store(&n_gone, 0);
    atomic_store(&n_events, 0);
    waiting = NULL;
    logged[0] = '\0';
}

static void http_tear_down(void)
{
    fl_http_free(http);
    http = NULL;
    folder_remove(http_folder);
}

static int dial(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(fl_http_port(http, 0)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int few = 4096;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
    return fd;
}

static void put(int fd, const char *what)
{
    size_t left = strlen(what);

    while (left > 0) {
        ssize_t n = send(fd, what, left, MSG_NOSIGNAL);

        if (n <= 0) {
            return; /* The port has closed it: what it answered is read. */
        }
        what += n;
        left -= (size_t)n;
    }
}

/* Until the port closes the connection, or `until` (may be NULL) has come. */
static const char *rest_of(int fd, const char *until)
{
    size_t used = 0;
    ssize_t n;

    reply[0] = '\0';
    while ((until == NULL || strstr(reply, until) == NULL) && used < sizeof(reply) - 1 &&
           (n = recv(fd, reply + used, sizeof(reply) - 1 - used, 0)) > 0)
    {
        used += (size_t)n;
        reply[used] = '\0';
    }
    return reply;
}

/* The whole answer to a request of these lines. */
static const char *asked(const char *method, const char *path, const char *fields)
{
    char request[4096];
    int fd = dial();

    (void)snprintf(request, sizeof(request),
                   "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s\r\n", method, path,
                   fields);
    put(fd, request);
    (void)rest_of(fd, NULL);
    (void)close(fd);
    return reply;
}

static void answers(const char *path, const char *status, const char *part)
{
    const char *got = asked("GET", path, "");

    ck_assert_msg(strncmp(got, "HTTP/1.1 ", 9) == 0 && strncmp(got + 9, status, 3) == 0 &&
                      strstr(got, part) != NULL,
                  "%s: expected %s with \"%s\", got:\n%s", path, status, part, got);
}

TEST_CASE("http", http_setup, http_tear_down);

TEST(a_path_is_answered_by_its_route)
{
    begin("");
    answers("/", "200", "hello 7 all");
    answers("/hello?n=5&which=some", "200", "hello 5 some");
    answers("/below/a%3Cb%3E", "200", "\r\n\r\na<b>");
    answers("/below/", "404", "nothing is at '/below/'");
    answers("/nowhere", "404", "expected one of /, /hello");
    answers("/below/none", "404", "not found");
}

TEST(answers_are_text_that_no_browser_takes_for_a_page)
{
    begin("");
    answers("/%3Cscript%3E", "404", "Content-Type: text/plain");
    ck_assert_ptr_nonnull(strstr(reply, "X-Content-Type-Options: nosniff"));
    answers("/a%0d%0aSet-Cookie:%20x", "404", "'/a??Set-Cookie: x'");
}

TEST(a_bad_query_is_named_with_what_is_expected)
{
    begin("");
    answers("/hello?n=0", "400", "parameter n: expected a number from 1 to 100, found '0'");
    answers("/hello?n=1x", "400", "found '1x'");
    answers("/hello?which=none", "400", "parameter which: expected one of all, some");
    answers("/hello?other=1", "400", "parameter 'other' is not known at /hello");
    answers("/?n=1", "400", "parameter 'n' is not known");
}

TEST(only_get_and_head_are_allowed)
{
    static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
    size_t i;

    begin("");
    for (i = 0; i < ARRAY_LEN(methods); i++) {
        ck_assert_ptr_nonnull(strstr(asked(methods[i], "/", "Content-Length: 0\r\n"), " 405 "));
        ck_assert_ptr_nonnull(strstr(reply, "Allow: GET, HEAD"));
    }
    ck_assert_ptr_nonnull(strstr(asked("HEAD", "/", ""), "Content-Length: 11\r\n"));
    ck_assert_ptr_null(strstr(reply, "hello"));
}

TEST(a_reader_without_the_token_gets_open_routes_only)
{
    char path[FOLDER_PATH + 8];

    (void)snprintf(path, sizeof(path), "%s/token", http_folder);
    ck_assert_int_eq(fl_fs_replace(path, "0123456789abcdef\n", 17, false, NULL), FL_OK);
    begin(path);
    answers("/hello", "401", "expected the header 'Authorization: Bearer TOKEN'");
    ck_assert_ptr_nonnull(strstr(reply, "WWW-Authenticate: Bearer"));
    answers("/nowhere", "401", "");
    answers("/open", "200", "hello");
    ck_assert_ptr_nonnull(
        strstr(asked("GET", "/hello", "Authorization: Bearer 0123456789abcdef\r\n"), " 200 "));
}

TEST(an_unchanged_answer_is_not_sent_again)
{
    char field[128];
    const char *tag;

    begin("");
    answers("/hello", "200", "ETag: \"");
    tag = strstr(reply, "ETag: ") + 6;
    (void)snprintf(field, sizeof(field), "If-None-Match: %.18s\r\n", tag);
    ck_assert_ptr_nonnull(strstr(asked("GET", "/hello", field), " 304 "));
    ck_assert_ptr_null(strstr(reply, "hello 7"));
    ck_assert_ptr_nonnull(strstr(asked("GET", "/hello?n=8", field), " 200 "));
}

/* Until another thread has counted so far. */
static void until_count(const atomic_uint *count, unsigned n)
{
    while (atomic_load(count) < n) {
        (void)sched_yield();
    }
}

TEST(an_answer_may_come_later_and_others_do_not_wait_for_it)
{
    int fd;

    begin("");
    fd = dial();
    put(fd, "GET /later HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    until_count(&n_waiting, 1);
    answers("/hello", "200", "hello");
    ck_assert(fl_http_post(http, finish_later, NULL));
    ck_assert_ptr_nonnull(strstr(rest_of(fd, NULL), "\r\n\r\nlate"));
    ck_assert_uint_eq(atomic_load(&n_gone), 0);
    (void)close(fd);
}

TEST(an_answer_that_does_not_come_is_replaced)
{
    limits.answer_s = 0;
    begin("");
    answers("/later", "503", "no answer within 0 s: the daemon is waiting");
    ck_assert_uint_eq(atomic_load(&n_gone), 1);
}

TEST(a_stop_answers_what_is_due_and_takes_no_further_function)
{
    int fd;

    begin("");
    fd = dial();
    put(fd, "GET /later HTTP/1.1\r\nHost: localhost\r\n\r\n");
    until_count(&n_waiting, 1);
    fl_http_stop(http);
    ck_assert_uint_eq(atomic_load(&n_gone), 1);
    ck_assert(!fl_http_post(http, finish_later, NULL));
    fl_http_free(http);
    http = NULL;
    (void)rest_of(fd, NULL); /* It is closed. */
    (void)close(fd);
}

TEST(a_huge_header_is_refused_and_others_are_answered)
{
    char *field = calloc(1, 100001);
    int fd;

    begin("");
    memset(field, 'a', 100000);
    fd = dial();
    put(fd, "GET / HTTP/1.1\r\nHost: localhost\r\nCookie: ");
    put(fd, field);
    put(fd, "\r\n\r\n");
    (void)rest_of(fd, NULL);
    ck_assert_ptr_null(strstr(reply, "hello"));
    (void)close(fd);
    free(field);
    answers("/", "200", "hello");
}

TEST(readers_that_read_nothing_block_no_other_and_hold_limited_memory)
{
    int fds[8];
    size_t i;

    limits.unread_bytes = 3 * BIG_BYTES;
    begin("");
    for (i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial();
        put(fds[i], "GET /big HTTP/1.1\r\nHost: localhost\r\n\r\n");
        ck_assert_int_gt(recv(fds[i], reply, 20, MSG_WAITALL), 0);
        reply[20] = '\0';
        ck_assert_ptr_nonnull(strstr(reply, i < 3 ? " 200 " : " 503 "));
        answers("/hello", "200", "hello");
    }
    for (i = 0; i < ARRAY_LEN(fds); i++) {
        (void)close(fds[i]);
    }
}

TEST(connections_beyond_the_limits_are_closed_with_a_line)
{
    int fds[4];
    size_t i;

    limits.per_address = 4;
    begin("");
    for (i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial();
        put(fds[i], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
        (void)rest_of(fds[i], "hello 7 all");
    }
    ck_assert_str_eq(asked("GET", "/hello", ""), "");
    ck_assert_uint_eq(fl_http_counts(http).connections_refused, 1);
    (void)pthread_mutex_lock(&log_lock);
    ck_assert_ptr_nonnull(strstr(logged, "HTTP connection from '127.0.0.1' closed: 4 connections"));
    (void)pthread_mutex_unlock(&log_lock);
    put(fds[0], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(rest_of(fds[0], "hello 7 all"), " 200 "));
    for (i = 0; i < ARRAY_LEN(fds); i++) {
        (void)close(fds[i]);
    }
}

TEST(a_stream_sends_what_is_there_and_then_what_comes)
{
    int fd;

    begin("");
    atomic_store(&n_events, 2);
    fd = dial();
    put(fd, "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
    (void)rest_of(fd, "id: 2\ndata: x\n\n");
    ck_assert_ptr_nonnull(strstr(reply, "Content-Type: text/event-stream"));
    atomic_store(&n_events, 3);
    fl_http_wake(http);
    (void)rest_of(fd, "id: 3\ndata: x\n\n");
    ck_assert_ptr_null(strstr(reply, "id: 2\n"));
    fl_http_stop(http); /* The stream ends. */
    fl_http_free(http);
    http = NULL;
    (void)rest_of(fd, NULL);
    (void)close(fd);
}

TEST(streams_beyond_the_limit_are_refused_and_a_closed_one_frees_its_place)
{
    int fds[3];
    size_t i;

    limits.streams = 3;
    limits.alive_s = 0;
    begin("");
    for (i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial();
        put(fds[i], "GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
        (void)rest_of(fds[i], ": no news");
    }
    ck_assert_uint_eq(fl_http_counts(http).streams, 3);
    answers("/events", "503", "3 event streams are open, the limit");
    (void)close(fds[0]);
    while (fl_http_counts(http).streams == 3) { /* Its next comment finds that it is closed. */
        (void)sched_yield();
    }
    for (i = 1; i < ARRAY_LEN(fds); i++) {
        (void)close(fds[i]);
    }
}

TEST(an_address_in_use_and_an_unreadable_token_are_errors_that_say_so)
{
    char address[32];
    struct fl_http *first;
    struct fl_err err;

    begin("");
    first = http;
    (void)snprintf(address, sizeof(address), "127.0.0.1:%u", fl_http_port(first, 0));
    ck_assert_int_eq(create(address, "", &err), FL_EINUSE);
    ck_assert_ptr_nonnull(strstr(err.msg, address));
    ck_assert_ptr_nonnull(strstr(err.msg, "is used by another process"));
    ck_assert_int_eq(create("127.0.0.1:0", "/nowhere/token", &err), FL_ECONF);
    http = first;
    answers("/", "200", "hello");
}
