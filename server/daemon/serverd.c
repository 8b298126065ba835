/*
 * Runs the daemon: the network loop (the main thread) with its signals and the watchdog, again
 * after a restart. Does not handle calls or rounds: the front end and the coordinator do.
 */

#include <signal.h>

#include "libfl/base/clock.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/notify.h"
#include "libfl/net/watchdog.h"
#include "libfl/num/gemm.h"
#include "server/daemon/hints.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_impl.h"
#include "server/daemon/serverd_reload.h"

static void serverd_on_reload(void *arg, int signum)
{
    struct fl_serverd *srv = arg;

    (void)signum;
    if (!srv->stopping) {
        fl_server_reload(&(struct fl_reload){
            .own = srv->own, .log = srv->log, .log_out = srv->log_out, .auth = srv->disk.auth});
    }
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
    const struct fl_serverd *srv = arg;
    uint64_t periods_ms = FL_STALL_WATCHDOG_PERIODS * fl_notify_watchdog_ms();

    return fl_stall_find(&srv->disk).for_ms <
           (periods_ms < FL_STALL_WATCHDOG_MS ? periods_ms : FL_STALL_WATCHDOG_MS);
}

static int serverd_sources_open(struct fl_serverd *srv, struct listening *to)
{
    int rv = fl_timer_create(srv->net, fl_serverd_on_stop_timeout, srv, &srv->stop_timer);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_signal_create(srv->net, SIGTERM, fl_serverd_on_signal, srv, &to->term);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_signal_create(srv->net, SIGINT, fl_serverd_on_signal, srv, &to->interrupt);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_signal_create(srv->net, SIGHUP, serverd_on_reload, srv, &to->reload);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_watchdog_create(srv->net, fl_runtime_loop(srv->runtime), &to->watchdog);
    if (rv != FL_OK) {
        return rv;
    }
    fl_watchdog_heed(to->watchdog, disk_answers, srv);
    return FL_OK;
}

static int run_once(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out,
                    bool *ret_restart)
{
    const struct fl_server_conf *conf = own->conf;
    struct fl_serverd srv = {.conf = conf,
                             .own = own,
                             .log = log,
                             .log_out = out,
                             .disk = {.state_dir = own->state_dir},
                             .started_ms = fl_clock_ms()};
    struct listening to = {NULL};
    struct fl_err err = {0};
    int exit_code = FL_EXIT_OK;
    int rv;

    rv = fl_serverd_open(&srv, &exit_code, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = serverd_sources_open(&srv, &to);
    if (rv != FL_OK) {
        goto done;
    }
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
done:
    if (rv != FL_OK) {
        fl_log(log, FL_LOG_ERROR, "server", "cannot start: %s%s", fl_err_text(&err, rv),
               rv == FL_ENOSPC
                   ? ": disk full: free some space on that disk (df -h), then start it again"
                   : "");
    }
    fl_watchdog_close(to.watchdog);
    fl_signal_close(to.term);
    fl_signal_close(to.interrupt);
    fl_signal_close(to.reload);
    fl_signal_ignore(SIGHUP);
    fl_timer_close(srv.stop_timer);
    fl_serverd_close(&srv);
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
