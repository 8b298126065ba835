/*
 * The HTTP thread: waits for the sockets of all addresses, for functions that other threads post,
 * and for what is due. Does not know what is served.
 */

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/http/http_impl.h"

/* The loop looks at what is due this often. */
#define HTTP_TICK_MS 500

void fl_http_limits_default(struct fl_http_limits *ret)
{
    *ret = (struct fl_http_limits){.connections = FL_HTTP_CONNECTIONS,
                                   .per_address = FL_HTTP_CONNECTIONS - 64,
                                   .streams = 64,
                                   .header_bytes = 16384,
                                   .idle_s = 30,
                                   .answer_s = 20,
                                   .alive_s = 15,
                                   .unread_bytes = (size_t)32 << 20};
}

static void http_signal(const struct fl_http *http)
{
    uint64_t one = 1;
    ssize_t n = write(http->wake_fd, &one, sizeof(one)); /* A full counter wakes, too. */

    (void)n;
}

bool fl_http_post(struct fl_http *http, void (*fn)(void *arg), void *arg)
{
    struct fl__http_post *post = malloc(sizeof(*post));
    bool taken = false;

    if (post == NULL) {
        return false;
    }
    *post = (struct fl__http_post){.fn = fn, .arg = arg};
    (void)pthread_mutex_lock(&http->lock);
    if (!http->closed) {
        if (http->last != NULL) {
            http->last->next = post;
        } else {
            http->first = post;
        }
        http->last = post;
        taken = true;
    }
    (void)pthread_mutex_unlock(&http->lock);
    if (!taken) {
        free(post);
        return false;
    }
    http_signal(http);
    return true;
}

void fl_http_wake(struct fl_http *http)
{
    if (!atomic_exchange(&http->woken, true)) {
        http_signal(http);
    }
}

/* `close`: nothing can be posted from here on. */
static void http_run_posts(struct fl_http *http, bool close)
{
    struct fl__http_post *post;

    do {
        (void)pthread_mutex_lock(&http->lock);
        post = http->first;
        if (post != NULL) {
            http->first = post->next;
            http->last = http->first != NULL ? http->last : NULL;
        } else if (close) {
            http->closed = true;
        }
        (void)pthread_mutex_unlock(&http->lock);
        if (post != NULL) {
            post->fn(post->arg);
            free(post);
        }
    } while (post != NULL);
}

static void http_wait(struct fl_http *http)
{
    struct pollfd fds[FL__HTTP_ADDRESSES + 1] = {{.fd = http->wake_fd, .events = POLLIN}};
    int wait_ms = HTTP_TICK_MS;
    uint64_t count;
    size_t i;

    for (i = 0; i < http->n_listeners; i++) {
        MHD_UNSIGNED_LONG_LONG due;

        fds[i + 1] = (struct pollfd){.fd = http->listeners[i].poll_fd, .events = POLLIN};
        if (MHD_get_timeout(http->listeners[i].daemon, &due) == MHD_YES && due < (unsigned)wait_ms)
        {
            wait_ms = (int)due;
        }
    }
    if (poll(fds, (nfds_t)(http->n_listeners + 1), wait_ms) > 0 && fds[0].revents != 0) {
        ssize_t n = read(http->wake_fd, &count, sizeof(count));

        (void)n;
    }
}

static void http_run(struct fl_http *http)
{
    size_t i;

    for (i = 0; i < http->n_listeners; i++) {
        (void)MHD_run(http->listeners[i].daemon);
    }
}

static void http_thread_main(void *arg)
{
    struct fl_http *http = arg;

    while (!atomic_load(&http->stop)) {
        http_wait(http);
        http_run_posts(http, false);
        fl__http_expire(http, fl_clock_ms(), false);
        fl__http_streams_resume(http, fl_clock_ms(), atomic_exchange(&http->woken, false));
        http_run(http);
    }
    /* libmicrohttpd cannot be stopped while connections are suspended. Whoever owes an answer
       learns that it is gone before posts are refused. */
    fl__http_expire(http, fl_clock_ms(), true);
    fl__http_streams_resume(http, fl_clock_ms(), true);
    http_run(http);
    http_run_posts(http, true);
}

static void http_log_addresses(const struct fl_http *http)
{
    size_t i;

    for (i = 0; i < http->n_listeners; i++) {
        fl_log(http->setup.log, FL_LOG_NOTICE, http->setup.component,
               "HTTP port on '%s', %s http_port=%u", http->listeners[i].text,
               http->token.text[0] != '\0' ? "for readers with the token"
                                           : "for every reader without a token",
               fl_http_port(http, i));
    }
}

int fl_http_create(const struct fl_http_setup *setup, struct fl_http **ret, struct fl_err *err)
{
    struct fl_http *http = calloc(1, sizeof(*http));
    const struct fl_opt_texts *listen = &setup->conf->listen;
    size_t i;
    int rv;

    if (http == NULL) {
        return FL_ENOMEM;
    }
    http->setup = *setup;
    http->setup.conf = NULL;
    (void)pthread_mutex_init(&http->lock, NULL);
    http->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (http->wake_fd < 0) {
        rv = fl_err_set(err, FL_ELIMIT, "http: out of descriptors: raise LimitNOFILE= of the unit");
        goto fail;
    }
    if (listen->n > FL__HTTP_ADDRESSES) {
        rv = fl_err_set(err, FL_ECONF, "http.listen: %zu addresses: expected at most %d", listen->n,
                        FL__HTTP_ADDRESSES);
        goto fail;
    }
    rv = fl_http_token_read(setup->conf->token_file, &http->token, err);
    if (rv != FL_OK) {
        goto fail;
    }
    for (i = 0; i < listen->n; i++) {
        rv = fl__http_listen(http, listen->list[i], err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    http_log_addresses(http);
    *ret = http;
    return FL_OK;
fail:
    fl_http_free(http);
    return rv;
}

int fl_http_start(struct fl_http *http, struct fl_err *err)
{
    return fl_thread_create("fl-http", http_thread_main, http, &http->thread, err);
}

void fl_http_stop(struct fl_http *http)
{
    if (http->thread == NULL) {
        return;
    }
    atomic_store(&http->stop, true);
    http_signal(http);
    fl_thread_join(http->thread);
    http->thread = NULL;
}

void fl_http_free(struct fl_http *http)
{
    size_t i;

    if (http == NULL) {
        return;
    }
    fl_http_stop(http);
    for (i = 0; i < http->n_listeners; i++) {
        fl__http_listener_close(&http->listeners[i]);
    }
    if (http->wake_fd >= 0) {
        (void)close(http->wake_fd);
    }
    (void)pthread_mutex_destroy(&http->lock);
    free(http);
}

uint16_t fl_http_port(const struct fl_http *http, size_t n)
{
    return n < http->n_listeners ? http->listeners[n].port : 0;
}

struct fl_http_counts fl_http_counts(const struct fl_http *http)
{
    return (struct fl_http_counts){.requests = atomic_load(&http->n_requests),
                                   .refused = atomic_load(&http->n_refused),
                                   .connections_refused = atomic_load(&http->n_connections_refused),
                                   .streams = atomic_load(&http->n_open_streams)};
}
