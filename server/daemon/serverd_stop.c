/*
 * Begins the stop of the daemon: on a signal, for a restart, or because the operator drained it.
 * The coordinator finishes it when no write is pending; both are limited in time. Network loop.
 */

#include <stdio.h>

#include "libfl/net/stop_limit.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_impl.h"
#include "server/network/no_memory.h"

/*
 * The coordinator gets this long to finish pending writes, before calls are ended. They take
 * milliseconds except for the commit of a large model on a slow disk.
 */
#define STOP_WAIT_MS 5000
/*
 * Limit of the whole stop, below TimeoutStopSec= of the unit: a thread that waits for a disk that
 * does not answer cannot be joined. The next start continues from what is on disk.
 */
#define STOP_LIMIT_MS 25000

/*
 * Stops with writes pending: the worker threads finish them, and the next start continues from
 * there.
 */
static void stop_now(struct fl_serverd *srv)
{
    fl_control_stream_drain(srv->frontend, FL_EVERYBODY, "the server is stopping", FL_RESTART_MS);
    fl_loop_stop(srv->net);
}

void fl_serverd_on_stop_timeout(void *arg)
{
    struct fl_serverd *srv = arg;

    fl_log(srv->log, FL_LOG_WARNING, "server",
           "pending writes not finished after %d s, disconnecting clients", STOP_WAIT_MS / 1000);
    stop_now(srv);
}

static void serverd_stop_text(void *ctx, char *out, size_t size)
{
    struct fl_serverd *srv = ctx;

    (void)snprintf(out, size, "%s has not finished; the disk of '%s' may not answer",
                   atomic_load(&srv->stop_waits_for), srv->disk.state_dir);
}

void fl_serverd_limit_stop(struct fl_serverd *srv)
{
    const struct fl_stop_limit_setup setup = {.limit_ms = STOP_LIMIT_MS,
                                              .log = srv->log,
                                              .component = "server",
                                              .exit_code = FL_EXIT_FAILURE,
                                              .last_words = serverd_stop_text,
                                              .ctx = srv};
    struct fl_err err = {0};
    int rv;

    if (srv->stop_limit != NULL) {
        return;
    }
    atomic_store(&srv->stop_waits_for, "the coordinator");
    rv = fl_stop_limit_begin(&setup, &srv->stop_limit, &err);
    if (rv != FL_OK) { /* The stop continues without a time limit. */
        fl_log(srv->log, FL_LOG_WARNING, "server", "%s", fl_err_text(&err, rv));
    }
}

/* The coordinator finishes the stop when no write is pending. */
static void begin_stop(struct fl_serverd *srv, const char *why)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_STOP);

    srv->stopping = true;
    fl_serverd_limit_stop(srv);
    if (up != NULL) {
        up->text = fl_str_dup(why);
    }
    if (up == NULL || up->text == NULL) {
        fl_serverd_no_memory(srv->log, "stopping the server");
    }
    fl_runtime_post(srv->runtime, up);
    fl_timer_start(srv->stop_timer, STOP_WAIT_MS);
}

void fl_serverd_on_signal(void *arg, int signum)
{
    struct fl_serverd *srv = arg;

    srv->restart = false;
    if (srv->stopping) {
        fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping at once on signal %d", signum);
        stop_now(srv);
        return;
    }
    fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping on signal %d", signum);
    begin_stop(srv, "the server is stopping");
}

void fl_serverd_restart(void *ctx, const char *why)
{
    struct fl_serverd *srv = ctx;

    if (srv->stopping) {
        return; /* Stopping already; the next start covers this request. */
    }
    srv->restart = true;
    fl_log(srv->log, FL_LOG_NOTICE, "server", "restarting: %s", why);
    begin_stop(srv, why);
}

void fl_serverd_stopped(void *ctx)
{
    struct fl_serverd *srv = ctx;

    if (!srv->stopping) {
        srv->stopping = true;
        fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping: the operator drained the server");
        fl_serverd_limit_stop(srv);
    }
    fl_loop_stop(srv->net);
}
