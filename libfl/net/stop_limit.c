#include "libfl/net/stop_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libfl/net/net_impl.h"

struct fl_stop_limit {
    pthread_t thread;
    int ended_fd; /* eventfd: readable when the stop has ended */
    struct fl_stop_limit_setup setup;
};

static void *stop_limit_main(void *arg)
{
    struct fl_stop_limit *limit = arg;
    const struct fl_stop_limit_setup *setup = &limit->setup;
    struct pollfd ended = {.fd = limit->ended_fd, .events = POLLIN};
    char text[FL_ERR_BUF_SIZE] = "";
    int n;

    /* All signals are blocked in this thread: it is not interrupted. */
    n = poll(&ended, 1, (int)setup->limit_ms);
    if (n == 0) {
        setup->last_words(setup->ctx, text, sizeof(text));
        fl_log(setup->log, FL_LOG_ERROR, setup->component,
               "stop timed out after %" PRIu64 " s: %s; exiting now, as if killed",
               setup->limit_ms / 1000, text);
        _exit(setup->exit_code);
    }
    return NULL;
}

int fl_stop_limit_begin(const struct fl_stop_limit_setup *setup, struct fl_stop_limit **ret,
                        struct fl_err *err)
{
    struct fl_stop_limit *limit = calloc(1, sizeof(*limit));
    int rv;

    if (limit == NULL) {
        return fl_err_set(err, FL_ENOMEM, "stop time limit: out of memory");
    }
    *limit = (struct fl_stop_limit){.setup = *setup, .ended_fd = eventfd(0, EFD_CLOEXEC)};
    rv = limit->ended_fd >= 0
             ? fl__thread_start(&limit->thread, "fl-stop", false, stop_limit_main, limit)
             : fl_err_from_errno(errno);
    if (rv != FL_OK) {
        if (limit->ended_fd >= 0) {
            (void)close(limit->ended_fd);
        }
        free(limit);
        return fl_err_set(err, rv, "stop time limit: %s", fl_strerror(rv));
    }
    *ret = limit;
    return FL_OK;
}

void fl_stop_limit_end(struct fl_stop_limit *limit)
{
    if (limit == NULL) {
        return;
    }
    FL_REQUIRE(eventfd_write(limit->ended_fd, 1) == 0);
    FL_REQUIRE(pthread_join(limit->thread, NULL) == 0);
    (void)close(limit->ended_fd);
    free(limit);
}
