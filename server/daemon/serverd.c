/*
 * Assembles the daemon: creates the runtime, authentication, worker threads and front end in order,
 * runs the network loop (the main thread), handles signals, and stops everything within a time
 * limit. Does not handle calls or rounds: the front end and the coordinator do.
 */

#include "server/daemon/serverd.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/clock.h"
#include "libfl/base/descriptors.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/notify.h"
#include "libfl/net/stop_limit.h"
#include "libfl/net/watchdog.h"
#include "libfl/num/gemm.h"
#include "server/admin/admin.h"
#include "server/auth/auth.h"
#include "server/daemon/descriptor_limit.h"
#include "server/daemon/hints.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_preflight.h"
#include "server/daemon/serverd_reload.h"
#include "server/network/frontend.h"
#include "server/network/no_memory.h"
#include "server/runtime/runtime.h"
#include "server/runtime/stall.h"

/*
 * Calls get this long to finish, which costs peers that do not read their last messages the most.
 */
#define STOP_GRACE_MS 250
/*
 * Before that the coordinator gets this long to finish pending writes. They take milliseconds
 * except for the commit of a large model on a slow disk.
 */
#define STOP_WAIT_MS 5000
/*
 * Limit of the whole stop, below TimeoutStopSec= of the unit: a thread that waits for a disk that
 * does not answer cannot be joined. The next start continues from what is on disk.
 */
#define STOP_LIMIT_MS 25000

/* What main wires together. Rooms below name what they need of it in a setup of their own. */
struct serverd {
    const struct fl_server_conf *conf;
    const struct fl_serverd_conf *own; /* the part for the daemon only */
    struct fl_log *log;                /* changed by serverd_reload.c only */
    struct fl_log_out *log_out;        /* destination of `log`; NULL: not ours */
    struct fl_loop *net;
    struct fl_stall_watch disk; /* the worker threads, the state folder and authentication */
    struct fl_frontend *frontend;
    struct fl_admin *admin;
    struct fl_runtime *runtime;
    uint64_t started_ms;
    uint64_t max_connections;         /* limits.clients, or fewer if descriptors are short */
    bool restart, stopping;           /* restart after the stop; network loop only */
    struct fl_timer *stop_timer;      /* limits the time for the coordinator's stop */
    struct fl_stop_limit *stop_limit; /* NULL: not stopping */
    _Atomic(const char *) stop_waits_for;
};

struct stop {
    struct serverd *srv;
    bool done;
};

/*
 * Stops with writes pending: the worker threads finish them, and the next start continues from
 * there.
 */
static void stop_now(struct serverd *srv)
{
    fl_control_stream_drain(srv->frontend, FL_EVERYBODY, "the server is stopping", FL_RESTART_MS);
    fl_loop_stop(srv->net);
}

static void serverd_on_stop_timeout(void *arg)
{
    struct serverd *srv = arg;

    fl_log(srv->log, FL_LOG_WARNING, "server",
           "pending writes not finished after %d s, disconnecting clients", STOP_WAIT_MS / 1000);
    stop_now(srv);
}

static void serverd_stop_text(void *ctx, char *out, size_t size)
{
    struct serverd *srv = ctx;

    (void)snprintf(out, size, "%s has not finished; the disk of '%s' may not answer",
                   atomic_load(&srv->stop_waits_for), srv->disk.state_dir);
}

static void limit_stop(struct serverd *srv)
{
    struct fl_err err = {0};
    int rv;

    if (srv->stop_limit != NULL) {
        return;
    }
    atomic_store(&srv->stop_waits_for, "the coordinator");
    rv = fl_stop_limit_begin(STOP_LIMIT_MS, srv->log, "server", FL_EXIT_FAILURE, serverd_stop_text,
                             srv, &srv->stop_limit, &err);
    if (rv != FL_OK) { /* The stop continues without a time limit. */
        fl_log(srv->log, FL_LOG_WARNING, "server", "%s", fl_err_text(&err, rv));
    }
}

/* The coordinator finishes the stop when no write is pending. */
static void begin_stop(struct serverd *srv, const char *why)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_STOP);

    srv->stopping = true;
    limit_stop(srv);
    if (up != NULL) {
        up->text = fl_str_dup(why);
    }
    if (up == NULL || up->text == NULL) {
        fl_serverd_no_memory(srv->log, "stopping the server");
    }
    fl_runtime_post(srv->runtime, up);
    fl_timer_start(srv->stop_timer, STOP_WAIT_MS);
}

static void serverd_on_reload(void *arg, int signum)
{
    struct serverd *srv = arg;

    (void)signum;
    if (!srv->stopping) {
        fl_server_reload(&(struct fl_reload){
            .own = srv->own, .log = srv->log, .log_out = srv->log_out, .auth = srv->disk.auth});
    }
}

static void serverd_on_signal(void *arg, int signum)
{
    struct serverd *srv = arg;

    srv->restart = false;
    if (srv->stopping) {
        fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping at once on signal %d", signum);
        stop_now(srv);
        return;
    }
    fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping on signal %d", signum);
    begin_stop(srv, "the server is stopping");
}

/* Stop as on a signal, tell clients to reconnect soon, and restart. */
static void serverd_restart(void *ctx, const char *why)
{
    struct serverd *srv = ctx;

    if (srv->stopping) {
        return; /* Stopping already; the next start covers this request. */
    }
    srv->restart = true;
    fl_log(srv->log, FL_LOG_NOTICE, "server", "restarting: %s", why);
    begin_stop(srv, why);
}

/* The coordinator has stopped. */
static void serverd_stopped(void *ctx)
{
    struct serverd *srv = ctx;

    if (!srv->stopping) {
        srv->stopping = true;
        fl_log(srv->log, FL_LOG_NOTICE, "server", "stopping: the operator drained the server");
        limit_stop(srv);
    }
    fl_loop_stop(srv->net);
}

static void serverd_on_frontend_closed(void *arg)
{
    struct stop *stop = arg;

    stop->done = true;
    fl_loop_stop(stop->srv->net);
}

/* Limit the connections to those that the descriptors allow. */
static int limit_connections(struct serverd *srv, struct fl_err *err)
{
    char fewer[FL_ERR_BUF_SIZE] = "";
    int rv = fl_preflight_connections(srv->conf, fl_descriptors_raise(NULL), &srv->max_connections,
                                      fewer, sizeof(fewer), err);

    if (fewer[0] != '\0') {
        fl_log(srv->log, FL_LOG_NOTICE, "server", "%s", fewer);
    }
    return rv;
}

static int serverd_open_threads(struct serverd *srv, struct fl_err *err)
{
    int rv = fl_worker_thread_create("fl-io", &srv->disk.io, err);

    if (rv == FL_OK) {
        rv = fl_worker_thread_create("fl-db", &srv->disk.db, err);
    }
    if (rv == FL_OK) {
        rv = fl_worker_thread_create("fl-work", &srv->disk.work, err);
    }
    return rv;
}

/* Peers may be revoked or no longer trusted. */
static void serverd_on_auth_changed(void *arg)
{
    struct serverd *srv = arg;

    if (srv->frontend != NULL) {
        fl_frontend_review(srv->frontend);
    }
}

static int serverd_exclude(void *ctx, const char *name, enum fl_revoked_keeps keeps)
{
    const struct serverd *srv = ctx;

    return fl_frontend_exclude(srv->frontend, name, keeps);
}

/* --- operations of the front end and of the admin calls --- */

static void serverd_post(void *ctx, struct fl_coord_msg *up)
{
    struct serverd *srv = ctx;

    if (srv->runtime == NULL)
    { /* During shutdown the remaining messages of the coordinator are handled here. */
        fl_coord_msg_free(up);
        return;
    }
    fl_runtime_post(srv->runtime, up);
}

static void serverd_answered(void *ctx, struct fl_admin_request *request)
{
    (void)ctx;
    fl_admin_answered(request);
}

static bool serverd_stalled(void *ctx, char *text, size_t size)
{
    struct serverd *srv = ctx;
    struct fl_stall stall = fl_stall_find(&srv->disk);

    (void)fl_stall_text(&srv->disk, stall, text, size);
    return stall.for_ms >= FL_STALL_REPORT_MS;
}

static void serverd_send(void *ctx, struct fl_net_msg *down)
{
    const struct serverd *srv = ctx;

    fl_frontend_post(srv->frontend, down);
}

/* The state of the federation, and what evaluates its models. */
static int open_runtime(struct serverd *srv, int *ret_exit, struct fl_err *err)
{
    struct fl_runtime_setup setup = {.conf = srv->conf,
                                     .state_dir = srv->disk.state_dir,
                                     .log = srv->log,
                                     .started_ms = srv->started_ms,
                                     .db = srv->disk.db,
                                     .work = srv->disk.work,
                                     .watch = &srv->disk,
                                     .send = serverd_send,
                                     .ctx = srv};
    bool no_model = false;
    int rv;

    *ret_exit = FL_EXIT_DATA;
    rv = fl_preflight_evaluation(srv->conf, srv->log, &setup.evaluator, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_runtime_create(&setup, &srv->runtime, &no_model, err);
    if (rv != FL_OK) {
        fl_evaluator_free(setup.evaluator);
        *ret_exit = no_model ? FL_EXIT_DATA : FL_EXIT_STATE;
    }
    return rv;
}

/* The front end, and the calls that it serves. */
static int open_frontend(struct serverd *srv, struct fl_err *err)
{
    static const struct fl_frontend_ops frontend_ops = {
        .post = serverd_post, .answered = serverd_answered, .stopped = serverd_stopped};
    static const struct fl_admin_ops admin_ops = {.restart = serverd_restart,
                                                  .stalled = serverd_stalled};
    const struct fl_serverd_conf *own = srv->own;
    const struct fl_frontend_setup setup = {.conf = srv->conf,
                                            .state_dir = srv->disk.state_dir,
                                            .admin = own->admin,
                                            .rpc = own->rpc,
                                            .memory = own->memory,
                                            .chunk_bytes = own->chunk_bytes,
                                            .max_connections = (uint32_t)srv->max_connections,
                                            .admin_connections = FL_SERVERD_ADMIN_CONNECTIONS,
                                            .line = fl_runtime_generation(srv->runtime),
                                            .log = srv->log,
                                            .net = srv->net,
                                            .io = srv->disk.io,
                                            .auth = srv->disk.auth,
                                            .ops = &frontend_ops,
                                            .ctx = srv};
    int rv = fl_frontend_create(&setup, &srv->frontend, err);

    if (rv == FL_OK) {
        rv = fl_admin_create(&(struct fl_admin_setup){.conf = srv->conf,
                                                      .state_dir = srv->disk.state_dir,
                                                      .log = srv->log,
                                                      .net = srv->net,
                                                      .auth = srv->disk.auth,
                                                      .frontend = srv->frontend,
                                                      .ops = &admin_ops,
                                                      .ctx = srv},
                             &srv->admin);
    }
    return rv == FL_OK ? fl_frontend_serve(srv->frontend, fl_admin_client_methods(srv->admin),
                                           fl_admin_methods(srv->admin), err)
                       : rv;
}

static int serverd_start(struct serverd *srv, int *ret_exit, struct fl_err *err)
{
    const struct fl_auth_setup auth = {
        .conf = srv->conf, .state_dir = srv->disk.state_dir, .log = srv->log};
    int rv;

    rv = fl_preflight_places(srv->own, NULL, ret_exit, err);
    if (rv == FL_OK) {
        rv = fl_preflight_identity(srv->own, ret_exit, err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_FAILURE;
        rv = limit_connections(srv, err);
    }
    if (rv == FL_OK) {
        rv = fl_loop_create(&srv->net, err);
    }
    if (rv == FL_OK) {
        rv = serverd_open_threads(srv, err);
    }
    if (rv == FL_OK) {
        rv = open_runtime(srv, ret_exit, err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_IDENTITY;
        rv = fl_auth_create(&auth, srv->net, serverd_on_auth_changed, srv, &srv->disk.auth, err);
    }
    if (rv == FL_OK) {
        *ret_exit = FL_EXIT_FAILURE;
        rv = open_frontend(srv, err);
    }
    if (rv == FL_OK && srv->disk.auth != NULL) {
        *ret_exit = FL_EXIT_IDENTITY;
        rv = fl_auth_revoked(srv->disk.auth, serverd_exclude, srv, err);
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
 * Shutdown order: the network first, so that nothing new arrives; then the coordinator, so that no
 * effect starts new work; then the worker threads, which finish their jobs; then memory.
 */
static void stop_all(struct serverd *srv)
{
    struct stop stop = {.srv = srv};

    limit_stop(srv); /* Also runs after a failed start. */
    if (srv->frontend != NULL) {
        fl_frontend_close(srv->frontend, STOP_GRACE_MS, serverd_on_frontend_closed, &stop);
        while (!stop.done) {
            fl_loop_run(srv->net);
        }
    }
    if (srv->runtime != NULL) {
        fl_runtime_stop(srv->runtime);
    }
    atomic_store(&srv->stop_waits_for, "thread identity");
    fl_auth_close(srv->disk.auth);
    atomic_store(&srv->stop_waits_for, "thread io");
    fl_worker_thread_free(srv->disk.io);
    srv->disk.io = NULL;
    /* Its callbacks and the coordinator may submit further file requests until here. */
    fl_frontend_disk_closed(srv->frontend);
    atomic_store(&srv->stop_waits_for, "thread work");
    fl_worker_thread_free(srv->disk.work);
    atomic_store(&srv->stop_waits_for, "thread db");
    fl_worker_thread_free(srv->disk.db);
    fl_runtime_free(srv->runtime);
    srv->runtime = NULL;
    if (srv->net != NULL) {
        fl_loop_free(srv->net);
    }
    fl_frontend_free(srv->frontend);
    fl_admin_free(srv->admin);
    fl_auth_free(srv->disk.auth);
    fl_stop_limit_end(srv->stop_limit);
    srv->stop_limit = NULL;
}

/* Event sources of the network loop beside the network. */
struct listening {
    struct fl_signal *term, *interrupt, *reload;
    struct fl_watchdog *watchdog;
};

/*
 * The watchdog is fed unless a thread has waited for its disk so long that only a restart can help.
 */
static bool disk_answers(void *arg)
{
    const struct serverd *srv = arg;
    uint64_t periods_ms = FL_STALL_WATCHDOG_PERIODS * fl_notify_watchdog_ms();

    return fl_stall_find(&srv->disk).for_ms <
           (periods_ms < FL_STALL_WATCHDOG_MS ? periods_ms : FL_STALL_WATCHDOG_MS);
}

static int serverd_sources_open(struct serverd *srv, struct listening *to)
{
    int rv = fl_timer_create(srv->net, serverd_on_stop_timeout, srv, &srv->stop_timer);

    if (rv == FL_OK) {
        rv = fl_signal_create(srv->net, SIGTERM, serverd_on_signal, srv, &to->term);
    }
    if (rv == FL_OK) {
        rv = fl_signal_create(srv->net, SIGINT, serverd_on_signal, srv, &to->interrupt);
    }
    if (rv == FL_OK) {
        rv = fl_signal_create(srv->net, SIGHUP, serverd_on_reload, srv, &to->reload);
    }
    if (rv == FL_OK) {
        rv = fl_watchdog_create(srv->net, fl_runtime_loop(srv->runtime), &to->watchdog);
    }
    if (rv == FL_OK) {
        fl_watchdog_heed(to->watchdog, disk_answers, srv);
    }
    return rv;
}

static void serverd_sources_close(struct serverd *srv, struct listening *to)
{
    fl_watchdog_close(to->watchdog);
    fl_signal_close(to->term);
    fl_signal_close(to->interrupt);
    fl_signal_close(to->reload);
    fl_signal_ignore(SIGHUP);
    fl_timer_close(srv->stop_timer);
}

static int run_once(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out,
                    bool *ret_restart)
{
    const struct fl_server_conf *conf = own->conf;
    struct serverd srv = {.conf = conf,
                          .own = own,
                          .log = log,
                          .log_out = out,
                          .disk = {.state_dir = own->state_dir},
                          .started_ms = fl_clock_ms()};
    struct listening to = {NULL};
    struct fl_err err = {0};
    int exit_code = FL_EXIT_OK;
    int rv;

    rv = serverd_start(&srv, &exit_code, &err);
    rv = rv == FL_OK ? serverd_sources_open(&srv, &to) : rv;
    if (rv == FL_OK) {
        exit_code = FL_EXIT_OK;
        fl_log(log, FL_LOG_NOTICE, "server",
               "federation '%s' runs: algorithm=%s units=%zu parameters=%zu kernels=%s blas=%s",
               conf->main->federation, conf->strategy->algorithm, fl_layout_units(conf->layout),
               fl_layout_count(conf->layout), fl_kernels_name(conf->net.kernels), fl_gemm_kernel());
        fl_notify_ready();
        fl_start_succeeded();
        fl_loop_run(srv.net);
        srv.stopping = true;
        if (!srv.restart) {
            fl_notify_stopping();
        }
    } else {
        fl_log(log, FL_LOG_ERROR, "server", "cannot start: %s%s", fl_err_text(&err, rv),
               rv == FL_ENOSPC
                   ? ": disk full: free some space on that disk (df -h), then start it again"
                   : "");
    }
    serverd_sources_close(&srv, &to);
    stop_all(&srv);
    *ret_restart = srv.restart;
    if (exit_code == FL_EXIT_OK && !srv.restart) {
        fl_log(log, FL_LOG_NOTICE, "server", "stopped");
    }
    return exit_code;
}

int fl_server_run(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out)
{
    bool restart;
    int exit_code;

    fl_hints_log(own, log);
    do {
        restart = false;
        exit_code = run_once(own, log, out, &restart);
    } while (restart && exit_code == FL_EXIT_OK);
    return exit_code;
}
