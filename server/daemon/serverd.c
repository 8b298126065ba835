/*
 * Runs the daemon: the network loop (the main thread) with its signals, reload and the watchdog,
 * again after a restart. Does not handle calls or rounds: the front end and the coordinator do.
 */

#include <signal.h>

#include "libfl/base/clock.h"
#include "libfl/base/log_out.h"
#include "libfl/conf/differ.h"
#include "libfl/model/safetensors.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/notify.h"
#include "libfl/net/watchdog.h"
#include "libfl/num/gemm.h"
#include "server/admin/audit_note.h"
#include "server/daemon/serverd_exit.h"
#include "server/daemon/serverd_impl.h"

/* Keys, and whole sections, that a reload applies. */
static const char *const live[] = {"log_level", "log_format", NULL};

/*
 * SIGHUP (`systemctl reload`): reads the file again and applies the keys that a running server can
 * change. This is the only place where settings are reloaded: a component with reloadable settings
 * gets a call here and its keys in `live`.
 *
 * An invalid file changes nothing, and the log has the error; keys that need a restart are named in
 * the log. docs/operating.md#reloading lists both.
 */
static void serverd_on_reload(void *arg, int signum)
{
    struct fl_serverd *srv = arg;
    struct fl_serverd_conf *fresh = NULL;
    const struct fl_server_main *m;
    const char *result = "ok";
    struct fl_err err = {0};
    char keys[1024];
    int rv;

    (void)signum;
    if (srv->stopping) {
        return;
    }
    fl_notify_reloading();
    rv = fl_serverd_conf_load(srv->own->path, NULL, &fresh, &err);
    if (rv != FL_OK) {
        result = fl_err_text(&err, rv);
        fl_log(srv->log, FL_LOG_ERROR, "server", "reload failed, nothing is changed: %s", result);
        goto done;
    }
    m = fresh->conf->main;
    atomic_store(&srv->log->level, (int)m->log_level);
    atomic_store(&srv->log_out->format, (int)m->log_format);
    if (srv->disk.auth != NULL) {
        fl_auth_look(srv->disk.auth,
                     /* all= */ true); /* Certificates, keys, roots, revocation lists. */
    }
    fl_log(srv->log, FL_LOG_NOTICE, "server", "reloaded '%s' log_level=%s log_format=%s",
           fresh->path, fl_log_names[m->log_level], fl_log_formats[m->log_format]);
    if (fl_conf_differ(fl_conf_file_map(srv->own->conf->file), fl_conf_file_map(fresh->conf->file),
                       live, keys, sizeof(keys)) > 0)
    {
        fl_log(srv->log, FL_LOG_WARNING, "server",
               "changed in the file, takes effect at the next restart: %s", keys);
    }
done:
    fl_audit_note(
        srv->disk.auth, srv->log,
        &(struct fl_audit_note){
            .peer = "signal SIGHUP", .what = "reload", .object = srv->own->path, .result = result},
        NULL, NULL);
    fl_serverd_conf_free(fresh);
    fl_notify_ready();
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

/* Configurations with effects that users may not expect: logged once, at the start. */
static void serverd_log_hints(const struct fl_serverd_conf *own, const struct fl_log *log)
{
    const struct fl_server_conf *conf = own->conf;
    bool file = conf->net.n_layers == 0;
    bool local = conf->model->norm == FL_NORM_LOCAL;
    char names[512];
    struct fl_err err;
    size_t n = 0;

    /* For a model from a file: its tensors that are not transferred. */
    if (file && fl_st_constants(conf->model->file, names, sizeof(names), &n, &err) == FL_OK &&
        n > 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.file: %s hold%s whole numbers: constants of the program, which stay with it "
               "and are not transferred",
               names, n == 1 ? "s" : "");
    }
    if (file && own->state_units) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "the state folder was created with another division into layers than today's "
               "default: its %zu layers stay in use (set model.units for a new state_dir)",
               fl_layout_units(conf->layout));
    }
    if (local && fl_layout_local(conf->layout) == 0) {
        fl_log(log, FL_LOG_NOTICE, "server",
               "model.norm is local, but the model has no batch-norm: the setting has no effect");
    } else if (local && conf->evaluation->data[0] != '\0') {
        fl_log(
            log, FL_LOG_WARNING, "server",
            "model.norm is local: evaluation.data is measured with the server's batch-norms, which "
            "are not trained; 'evaluation: {clients: yes}' measures with the clients' own");
    }
    if (conf->strategy->personal->head && conf->evaluation->data[0] != '\0') {
        fl_log(log, FL_LOG_WARNING, "server",
               "personal '%s': evaluation.data is measured with the server's head, which is not "
               "trained; 'evaluation: {clients: yes}' measures with the clients' own",
               conf->strategy->personal->policy.name);
    }
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
    fl_log_out_fields(out, FL_LOG_JOURNAL);
    fl_log_noted(log, FL_LOG_NOTICE, "server", NULL,
                 FL_LOG_NOTE(SERVER_STARTED, FL_LOG_WORD("federation", conf->main->federation)),
                 "federation '%s' runs: algorithm=%s units=%zu parameters=%zu kernels=%s blas=%s",
                 conf->main->federation, conf->strategy->algorithm, fl_layout_units(conf->layout),
                 fl_layout_count(conf->layout), fl_kernels_name(conf->net.kernels),
                 fl_gemm_kernel());
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
        fl_log_noted(log, FL_LOG_NOTICE, "server", NULL,
                     FL_LOG_NOTE(SERVER_STOPPED, FL_LOG_WORD("federation", conf->main->federation)),
                     "stopped");
    }
    return exit_code;
}

int fl_server_run(const struct fl_serverd_conf *own, struct fl_log *log, struct fl_log_out *out)
{
    bool restart;
    int exit_code;

    serverd_log_hints(own, log);
    do {
        restart = false;
        exit_code = run_once(own, log, out, &restart);
    } while (restart && exit_code == FL_EXIT_OK);
    return exit_code;
}
