#include "server/daemon/serverd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/clock.h"
#include "libfl/base/descriptors.h"
#include "libfl/base/fs.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/notify.h"
#include "libfl/net/stop_limit.h"
#include "libfl/net/watchdog.h"
#include "libfl/num/gemm.h"
#include "server/daemon/auth.h"
#include "server/daemon/frontend.h"
#include "server/daemon/frontend_impl.h"
#include "server/daemon/hints.h"
#include "server/daemon/runtime.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_preflight.h"
#include "server/daemon/serverd_reload.h"
#include "server/daemon/stall.h"

/*
 * Calls get this long to end; a peer that reads nothing then costs the link's second for
 * last words.
 */
#define STOP_GRACE_MS 250
/*
 * Before that the coordinator has this long for what is being written. It takes milliseconds but
 * for the commit of a large model on a slow disk.
 */
#define STOP_PATIENCE_MS 5000
/*
 * And the whole stop this long, below TimeoutStopSec= of the unit: a thread that waits for a disk
 * which does not answer cannot be joined. The next start goes on from what is on disk.
 */
#define STOP_LIMIT_MS 25000

struct stop {
    struct fl_serverd *srv;
    bool done;
};

/* Whatever is being written: the lanes finish it, and the next start goes on from what is there. */
static void stop_now(struct fl_serverd *srv)
{
    fl_control_stream_drain(srv->frontend, FL_EVERYBODY, "the server stops", FL_RESTART_MS);
    fl_loop_stop(srv->net);
}

static void on_straggler_timeout(void *arg)
{
    struct fl_serverd *srv = arg;

    fl_log(srv->log, FL_LOG_WARNING, "server",
           "what is being written is not on disk after %d s, clients are not kept any longer",
           STOP_PATIENCE_MS / 1000);
    stop_now(srv);
}

static void stop_last_words(void *ctx, char *out, size_t size)
{
    struct fl_serverd *srv = ctx;

    (void)snprintf(out, size, "%s has not finished; the disk of '%s' may not answer",
                   atomic_load(&srv->stop_waits_for), srv->state_dir);
}

static void limit_stop(struct fl_serverd *srv)
{
    struct fl_err err = {0};
    int rv;

    if (srv->stop_limit != NULL) {
        return;
    }
    atomic_store(&srv->stop_waits_for, "the coordinator");
    rv = fl_stop_limit_begin(STOP_LIMIT_MS, srv->log, "server", FL_EXIT_FAILURE, stop_last_words,
                             srv, &srv->stop_limit, &err);
    if (rv != FL_OK) { /* The stop goes on without. */
        fl_log(srv->log, FL_LOG_WARNING, "server", "%s", fl_err_text(&err, rv));
    }
}

/* The coordinator ends it as soon as nothing is being written. */
static void begin_stop(struct fl_serverd *srv, const char *why)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_STOP);

    srv->stopping = true;
    limit_stop(srv);
    if (up != NULL) {
        up->text = fl_str_dup(why);
    }
    if (up == NULL || up->text == NULL) {
        fl_serverd_no_memory(srv, "the end");
    }
    fl_runtime_post(srv->runtime, up);
    fl_timer_start(srv->straggler_factor, STOP_PATIENCE_MS);
}

static void on_reload(void *arg, int signum)
{
    struct fl_serverd *srv = arg;

    (void)signum;
    if (!srv->stopping) {
        fl_server_reload(srv);
    }
}

static void on_signal(void *arg, int signum)
{
    struct fl_serverd *srv = arg;

    srv->again = false;
    if (srv->stopping) {
        fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping at once on signal %d", signum);
        stop_now(srv);
        return;
    }
    fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping on signal %d", signum);
    begin_stop(srv, "the server stops");
}

void fl_server_again(struct fl_serverd *srv, const char *why)
{
    if (srv->stopping) {
        return; /* The next start does what this one was for. */
    }
    srv->again = true;
    fl_log(srv->log, FL_LOG_NOTICE, "server", "starting again: %s", why);
    begin_stop(srv, why);
}

void fl_server_stopped(struct fl_serverd *srv)
{
    if (!srv->stopping) {
        srv->stopping = true;
        fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping: the operator drained the server");
        limit_stop(srv);
    }
    fl_loop_stop(srv->net);
}

static void on_front_closed(void *arg)
{
    struct stop *stop = arg;

    stop->done = true;
    fl_loop_stop(stop->srv->net);
}

/* Connections that the descriptors allow. */
static int limit_connections(struct fl_serverd *srv, struct fl_err *err)
{
    char fewer[FL_ERR_BUF_SIZE] = "";
    int rv = fl_preflight_connections(srv->conf, fl_descriptors_raise(NULL), &srv->max_connections,
                                      fewer, sizeof(fewer), err);

    if (fewer[0] != '\0') {
        fl_log(srv->log, FL_LOG_NOTICE, "server", "%s", fewer);
    }
    return rv;
}

static int open_lanes(struct fl_serverd *srv, struct fl_err *err)
{
    int rv = fl_worker_thread_create("fl-io", &srv->io, err);

    if (rv == FL_OK) {
        rv = fl_worker_thread_create("fl-db", &srv->db, err);
    }
    if (rv == FL_OK) {
        rv = fl_worker_thread_create("fl-work", &srv->work, err);
    }
    return rv;
}

/* Somebody may be denied by now, or not believed any more. */
static void on_guard_changed(void *arg)
{
    struct fl_serverd *srv = arg;

    if (srv->frontend != NULL) {
        fl_frontend_review(srv->frontend);
    }
}

static int exclude(void *ctx, const char *name, enum fl_denied_keeps keeps)
{
    const struct fl_serverd *srv = ctx;

    return fl_frontend_exclude(srv->frontend, name, keeps);
}

static int start(struct fl_serverd *srv, int *ret_exit, struct fl_err *err)
{
    int rv;

    rv = fl_preflight_places(srv->own, NULL, ret_exit, err);
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_FAILURE;
        rv = limit_connections(srv, err);
    }
    if (rv == FL_OK) {
        rv = fl_loop_create(&srv->net, err);
    }
    if (rv == FL_OK) {
        rv = open_lanes(srv, err);
    }
    if (rv == FL_OK) {
        rv = fl_runtime_create(srv, &srv->runtime, ret_exit, err);
    }
    if (rv == FL_OK) {
        rv = fl_auth_create(srv, on_guard_changed, srv, &srv->auth, ret_exit, err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_FAILURE;
        rv = fl_frontend_create(srv, &srv->frontend, err);
    }
    if (rv == FL_OK && srv->auth != NULL) {
        *ret_exit = FL_EXIT_IDENTITY;
        rv = fl_auth_revoked(srv->auth, exclude, srv, err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_LISTEN;
        rv = fl_frontend_listen(srv->frontend, err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_FAILURE;
        rv = fl_runtime_start(srv->runtime, err);
    }
    return rv;
}

/*
 * The order of going: network first, so that nothing new comes in; the coordinator, so
 * that no effect starts new work; the lanes finish what they have; then memory.
 */
static void stop_all(struct fl_serverd *srv)
{
    struct stop stop = {.srv = srv};

    limit_stop(srv); /* A start that failed stops too. */
    if (srv->frontend != NULL) {
        fl_frontend_close(srv->frontend, STOP_GRACE_MS, on_front_closed, &stop);
        while (!stop.done) {
            fl_loop_run(srv->net);
        }
    }
    if (srv->runtime != NULL) {
        fl_runtime_stop(srv->runtime);
    }
    atomic_store(&srv->stop_waits_for, "thread identity");
    fl_auth_close(srv->auth);
    atomic_store(&srv->stop_waits_for, "thread io");
    fl_worker_thread_free(srv->io);
    srv->io = NULL; /* What comes back from it, or from the coordinator, may ask for more. */
    atomic_store(&srv->stop_waits_for, "thread work");
    fl_worker_thread_free(srv->work);
    atomic_store(&srv->stop_waits_for, "thread db");
    fl_worker_thread_free(srv->db);
    fl_runtime_free(srv->runtime);
    srv->runtime = NULL;
    if (srv->net != NULL) {
        fl_loop_free(srv->net);
    }
    fl_frontend_free(srv->frontend);
    fl_auth_free(srv->auth);
    fl_stop_limit_end(srv->stop_limit);
    srv->stop_limit = NULL;
}

/* What the network loop hears beside the network. */
struct listening {
    struct fl_signal *term, *interrupt, *reload;
    struct fl_watchdog *watchdog;
};

/* Fed while no thread waits so long for its disk that only another process can help. */
static bool disk_answers(void *arg)
{
    return fl_stall_find(arg).for_ms < FL_STALL_WATCHDOG_MS;
}

static int listen_to(struct fl_serverd *srv, struct listening *to)
{
    int rv = fl_timer_create(srv->net, on_straggler_timeout, srv, &srv->straggler_factor);

    if (rv == FL_OK) {
        rv = fl_signal_create(srv->net, SIGTERM, on_signal, srv, &to->term);
    }
    if (rv == FL_OK) {
        rv = fl_signal_create(srv->net, SIGINT, on_signal, srv, &to->interrupt);
    }
    if (rv == FL_OK) {
        rv = fl_signal_create(srv->net, SIGHUP, on_reload, srv, &to->reload);
    }
    if (rv == FL_OK) {
        rv = fl_watchdog_create(srv->net, fl_runtime_loop(srv->runtime), &to->watchdog);
    }
    if (rv == FL_OK) {
        fl_watchdog_heed(to->watchdog, disk_answers, srv);
    }
    return rv;
}

static void listen_no_more(struct fl_serverd *srv, struct listening *to)
{
    fl_watchdog_close(to->watchdog);
    fl_signal_close(to->term);
    fl_signal_close(to->interrupt);
    fl_signal_close(to->reload);
    fl_signal_ignore(SIGHUP);
    fl_timer_close(srv->straggler_factor);
}

static int run_once(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out,
                    bool *ret_again)
{
    const struct fl_server_conf *conf = own->conf;
    struct fl_serverd srv = {.conf = conf,
                             .own = own,
                             .log = log,
                             .log_out = out,
                             .state_dir = own->state_dir,
                             .federation = conf->main->federation,
                             .started_ms = fl_clock_ms()};
    struct listening to = {NULL};
    struct fl_err err = {0};
    int exit_code = FL_EXIT_OK;
    int rv;

    rv = start(&srv, &exit_code, &err);
    rv = rv == FL_OK ? listen_to(&srv, &to) : rv;
    if (rv == FL_OK) {
        exit_code = FL_EXIT_OK;
        fl_log(log, FL_LOG_NOTICE, "server",
               "federation '%s' runs: algorithm=%s units=%zu parameters=%zu kernels=%s blas=%s",
               srv.federation, conf->strategy->algorithm, fl_layout_units(conf->layout),
               fl_layout_count(conf->layout), fl_kernels_name(conf->net.kernels), fl_gemm_kernel());
        fl_notify_ready();
        fl_start_succeeded();
        fl_loop_run(srv.net);
        srv.stopping = true;
        if (!srv.again) {
            fl_notify_stopping();
        }
    } else {
        fl_log(log, FL_LOG_ERROR, "server", "cannot start: %s%s", fl_err_text(&err, rv),
               rv == FL_ENOSPC ? ": make room on that disk (df -h), then start it again" : "");
    }
    listen_no_more(&srv, &to);
    stop_all(&srv);
    *ret_again = srv.again;
    if (exit_code == FL_EXIT_OK && !srv.again) {
        fl_log(log, FL_LOG_NOTICE, "server", "stopped");
    }
    return exit_code;
}

int fl_server_run(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out)
{
    bool again;
    int exit_code;

    fl_hints_log(own, log);
    do {
        again = false;
        exit_code = run_once(own, log, out, &again);
    } while (again && exit_code == FL_EXIT_OK);
    return exit_code;
}
