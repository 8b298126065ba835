/*
 * The client daemon: creates its parts, starts the session, and shuts everything down again. Runs
 * on the loop; jobs run on the training thread. The operations of the session are in
 * clientd_session.c.
 */

#include "client/daemon/clientd.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/clientd_exit.h"
#include "client/daemon/clientd_impl.h"
#include "client/daemon/clientd_preflight.h"
#include "client/daemon/enrol.h"
#include "libfl/base/descriptors.h"
#include "libfl/base/fs.h"
#include "libfl/net/failed_start.h"
#include "libfl/net/notify.h"
#include "libfl/net/stop_limit.h"
#include "libfl/net/watchdog.h"

static uint64_t seed_of(const struct fl_clientd *cli)
{
    return fl_worker_seed(fl__clientd_name(cli), (uint64_t)cli->conf->main->seed);
}

static void clientd_on_reload(void *arg, int signum)
{
    const struct fl_clientd *cli = arg;

    (void)signum;
    fl_client_reload(&cli->reload);
}

static void clientd_on_signal(void *arg, int signum)
{
    struct fl_clientd *cli = arg;

    fl_log(cli->log, FL_LOG_NOTICE, "client", "stopping on signal %d", signum);
    fl__clientd_stop(cli);
}

/* --- life --- */

static int clientd_lock_state(struct fl_clientd *cli, struct fl_err *err)
{
    const char *dir = cli->conf->main->state_dir;
    int rv = fl_fs_mkdirs(dir, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_lock_dir(dir, &cli->lock_fd, err);
}

static struct fl_worker_terms terms_of(const struct fl_client_conf *conf)
{
    const struct fl_client_limits *limits = conf->limits;

    return (struct fl_worker_terms){.summaries = conf->main->summaries,
                                    .least_group = (uint64_t)conf->main->least_group,
                                    .least_samples = (uint64_t)limits->least_samples,
                                    .least_steps = (uint64_t)limits->least_steps,
                                    .largest_model = limits->largest_model};
}

static int clientd_open_state(struct fl_clientd *cli, struct fl_err *err)
{
    const char *dir = cli->conf->main->state_dir;
    int rv;

    cli->worker.state_dir = dir;
    cli->worker.log = cli->log;
    cli->worker.seed = seed_of(cli);
    cli->worker.release = true;
    cli->worker.terms = terms_of(cli->conf);
    rv = fl_client_state_open(dir, cli->log, &cli->worker.keeps, err);
    if (rv != FL_OK) {
        return rv;
    }
    fl__clientd_history_load(cli);
    cli->pending.state_dir = dir;
    cli->pending.log = cli->log;
    return fl_pending_result_load(&cli->pending, err);
}

static int open_session(struct fl_clientd *cli)
{
    const struct fl_client_reconnect *r = cli->conf->reconnect;
    struct fl_session_conf conf = {
        .seed = seed_of(cli),
        .backoff_ms = r->first_ms,
        .backoff_max_ms = r->longest_ms,
        .refused_ms = r->after_refusal_ms,
        .done_max_ms = r->when_done_ms,
        .exit_when_done = cli->conf->main->exit_when_done,
    };

    int rv = fl_session_shell_create(&conf, &fl__clientd_ops, cli, &cli->jobs.shell);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_timer_create(cli->jobs.loop, fl__clientd_on_timer, cli, &cli->timer);
}

/* Creates the parts and connects them to each other. */
static int clientd_create_parts(struct fl_clientd *cli)
{
    struct fl_jobs *jobs = &cli->jobs;
    struct fl_worker *worker = &cli->worker;
    struct fl_connection *c;
    const struct fl_connection_conf conf = {
        .loop = jobs->loop,
        .log = cli->log,
        .traffic = &cli->traffic,
        .servers = cli->conf->main->server.list,
        .n_servers = cli->conf->main->server.n,
        .filters = cli->credentials != NULL ? fl_credentials_filters(cli->credentials) : NULL,
        .seed = seed_of(cli),
        .pause_ms = cli->conf->reconnect->first_ms,
        .proxy = &cli->proxy,
        .timeout_ms = (uint32_t)cli->conf->reconnect->connect_timeout_ms,
        .ping_after_ms = (uint32_t)cli->conf->reconnect->ping_after_ms,
        .ping_limit_ms = (uint32_t)cli->conf->reconnect->ping_limit_ms,
        .limits = &cli->limits,
        .cbs = fl_commands_cbs,
        .ctx = &cli->commands};
    int rv = fl_connection_create(&conf, &cli->connection);

    if (rv != FL_OK) {
        return rv;
    }
    c = cli->connection;
    rv = fl_renewal_create(jobs->loop, cli->log, cli->credentials, c, jobs->shell, &cli->renewal);
    if (rv != FL_OK) {
        return rv;
    }
    cli->reload.renewal = cli->renewal;
    rv = fl_availability_create(cli->conf, jobs->loop, cli->log, fl__clientd_on_availability, cli,
                                &cli->availability);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_central_open(cli->conf, &cli->jobs, cli->availability, &cli->limits, &cli->central);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_timer_create(jobs->loop, fl__clientd_on_central, cli, &cli->central_timer);
    if (rv != FL_OK) {
        return rv;
    }
    cli->trainings = (struct fl_trainings){jobs, worker, &cli->pending, NULL};
    cli->evaluations = (struct fl_evaluations){jobs, worker, NULL};
    fl_summary_upload_init(&cli->summary_upload, jobs, worker, c);
    cli->downloads = (struct fl_downloads){.jobs = jobs,
                                           .connection = c,
                                           .worker = worker,
                                           .wanted = &cli->wanted,
                                           .evaluations = &cli->evaluations};
    cli->deliveries = (struct fl_deliveries){
        .jobs = jobs, .connection = c, .worker = worker, .pending = &cli->pending};
    cli->watch = (struct fl_data_watch){
        .conf = cli->conf, .jobs = jobs, .worker = worker, .data = &cli->data};
    cli->joining = (struct fl_join_job){.jobs = jobs,
                                        .watch = &cli->watch,
                                        .connection = c,
                                        .availability = cli->availability,
                                        .worker = worker,
                                        .pending = &cli->pending,
                                        .trainings = &cli->trainings,
                                        .evaluations = &cli->evaluations,
                                        .downloads = &cli->downloads,
                                        .summary_upload = &cli->summary_upload,
                                        .limits = &cli->limits};
    cli->commands = (struct fl_commands){.log = cli->log,
                                         .shell = jobs->shell,
                                         .connection = c,
                                         .wanted = &cli->wanted,
                                         .joining = &cli->joining,
                                         .central = cli->central,
                                         .central_timer = cli->central_timer,
                                         .renewal = cli->renewal};
    return FL_OK;
}

/*
 * Opens the certificate of this client. Without one, an invitation passed as a credential is used
 * first.
 */
static int open_credentials(struct fl_clientd *cli, struct fl_err *err)
{
    int rv;

    if (cli->conf->main->insecure) {
        return FL_OK;
    }
    rv = fl_enrol_by_credential(cli->conf, cli->jobs.loop, cli->log, &cli->exit_code, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_credentials_open(cli->conf, cli->log, &cli->credentials, &cli->exit_code, err);
}

static int clientd_start(struct fl_clientd *cli, uint64_t descriptors, struct fl_err *err)
{
    int rv;

    rv = fl_client_preflight_places(cli->conf, NULL, &cli->exit_code, err);
    if (rv != FL_OK) {
        return rv;
    }
    cli->exit_code = FL_EXIT_STATE;
    rv = clientd_lock_state(cli, err);
    if (rv != FL_OK) {
        return rv;
    }
    cli->exit_code = FL_EXIT_FAILURE;
    rv = fl_loop_create(&cli->jobs.loop, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = open_credentials(cli, err);
    if (rv != FL_OK) {
        return rv;
    }
    cli->exit_code = FL_EXIT_FAILURE;
    rv = open_session(cli);
    if (rv != FL_OK) {
        return rv;
    }
    rv = clientd_create_parts(cli);
    if (rv != FL_OK) {
        return rv;
    }
    cli->exit_code = FL_EXIT_STATE;
    rv = clientd_open_state(cli, err);
    if (rv != FL_OK) {
        return rv;
    }
    cli->exit_code = FL_EXIT_DATA;
    rv = fl_local_data_open(cli->conf, fl__clientd_name(cli), descriptors, cli->log, &cli->data,
                            &cli->worker.trainer, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_worker_thread_create("fl-train", &cli->jobs.thread, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_resting_start(&cli->resting, &cli->jobs, &cli->worker,
                          cli->conf->command->persistent ? cli->conf->command->idle_exit_ms : 0);
    if (rv != FL_OK) {
        return rv;
    }
    cli->exit_code = FL_EXIT_FAILURE;
    rv = fl_status_socket_create(
        &(struct fl_status_socket_setup){.loop = cli->jobs.loop,
                                         .log = cli->log,
                                         .state_dir = cli->conf->main->state_dir,
                                         .describe = fl__clientd_describe,
                                         .ctx = cli},
        &cli->status_socket);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_client_http_create(
        &(struct fl_client_http_setup){.conf = cli->conf->http,
                                       .state_dir = cli->conf->main->state_dir,
                                       .log = cli->log,
                                       .loop = cli->jobs.loop,
                                       .fill = fl__clientd_shown,
                                       .describe = fl__clientd_describe,
                                       .ctx = cli},
        &cli->http, err);
}

/* Below TimeoutStopSec= of the unit. A thread that waits for a hung disk cannot be joined. */
#define STOP_LIMIT_MS 25000

static void clientd_stop_message(void *ctx, char *out, size_t size)
{
    const struct fl_clientd *cli = ctx;

    (void)snprintf(out, size,
                   "the current step of the task has not finished; the disk of '%s' or of the data "
                   "may not respond",
                   cli->conf->main->state_dir);
}

static void clientd_free_parts(struct fl_clientd *cli)
{
    fl_client_http_stop(cli->http);
    fl_status_socket_stop(cli->status_socket);
    if (cli->status_socket != NULL) { /* With the task that runs now. */
        fl__clientd_history_save(cli);
    }
    fl__clientd_stop_session(cli);
    fl_renewal_stop(cli->renewal);
    fl_timer_close(cli->central_timer);
    fl_availability_free(cli->availability);
    cli->availability = NULL;
    fl_connection_free(cli->connection);
    fl_trainings_cancel(&cli->trainings);
    fl_evaluations_leave(&cli->evaluations);
    fl_trainer_starting_stop(&cli->starting);
    fl_resting_stop(&cli->resting);
    fl_resting_end(&cli->jobs, &cli->worker);
    fl_worker_thread_free(cli->jobs.thread);
    cli->jobs.thread = NULL;
    if (cli->jobs.loop != NULL) { /* Runs the callbacks of finished jobs, which do nothing. */
        fl_loop_free(cli->jobs.loop);
    }
    fl_saved_file_end(&cli->history_file);
    fl_client_http_free(cli->http);
    fl_status_socket_free(cli->status_socket);
    fl_renewal_free(cli->renewal);
    fl_credentials_free(cli->credentials);
    fl_downloads_cancel_task(&cli->downloads);
    fl_summary_upload_forget(&cli->summary_upload);
    fl_session_shell_free(cli->jobs.shell);
    fl_wanted_done(&cli->wanted);
    fl_central_close(cli->central);
    fl_worker_done(&cli->worker);
    fl_local_data_done(&cli->data);
    fl_pending_result_done(&cli->pending);
    if (cli->lock_fd >= 0) {
        (void)close(cli->lock_fd);
    }
}

static void clientd_finish(struct fl_clientd *cli)
{
    const struct fl_stop_limit_setup setup = {.limit_ms = STOP_LIMIT_MS,
                                              .log = cli->log,
                                              .component = "client",
                                              .exit_code = FL_EXIT_FAILURE,
                                              .last_words = clientd_stop_message,
                                              .ctx = cli};
    struct fl_stop_limit *limit = NULL;
    struct fl_err err = {0};
    int rv = fl_stop_limit_begin(&setup, &limit, &err);

    if (rv != FL_OK) { /* The shutdown continues without a time limit. */
        fl_log(cli->log, FL_LOG_WARNING, "client", "%s", fl_err_text(&err, rv));
    }
    clientd_free_parts(cli);
    fl_stop_limit_end(limit);
}

/* Event sources of the loop other than the network. */
struct clientd_signals {
    struct fl_signal *term, *interrupt, *reload;
    struct fl_watchdog *watchdog;
};

static int clientd_open_signals(struct fl_clientd *cli, struct clientd_signals *to)
{
    struct fl_loop *loop = cli->jobs.loop;
    int rv = fl_signal_create(loop, SIGTERM, clientd_on_signal, cli, &to->term);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_signal_create(loop, SIGINT, clientd_on_signal, cli, &to->interrupt);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_signal_create(loop, SIGHUP, clientd_on_reload, cli, &to->reload);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_watchdog_create(loop, NULL, &to->watchdog);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_status_create(loop, fl__clientd_status, cli, &cli->status);
}

static void clientd_close_signals(struct fl_clientd *cli, struct clientd_signals *to)
{
    fl_status_close(cli->status);
    cli->status = NULL;
    fl_watchdog_close(to->watchdog);
    fl_signal_close(to->term);
    fl_signal_close(to->interrupt);
    fl_signal_close(to->reload);
    fl_signal_ignore(SIGHUP);
}

/* Starts the session; the number of samples is known by now. */
static void clientd_join(struct fl_clientd *cli)
{
    fl_session_shell_key(cli->jobs.shell, FL_CEV_START, fl_pending_result_key(&cli->pending));
}

static void on_trainer(void *arg)
{
    struct fl_clientd *cli = arg;

    fl_status_changed(cli->status);
    if (cli->starting.ready) {
        clientd_join(cli);
    }
}

static int start_trainer(struct fl_clientd *cli)
{
    if (!cli->data.trainer_counts) {
        return FL_OK;
    }
    cli->starting = (struct fl_trainer_starting){.jobs = &cli->jobs,
                                                 .trainer = cli->worker.trainer,
                                                 .data = &cli->data,
                                                 .changed = on_trainer,
                                                 .arg = cli};
    fl_log(cli->log, FL_LOG_INFO, "client", "starting '%s'", cli->conf->command->program.list[0]);
    return fl_trainer_starting_begin(&cli->starting);
}

int fl_client_run(const struct fl_client_conf *conf, const char *path, struct fl_log *log,
                  struct fl_log_out *out)
{
    struct fl_clientd cli = {.conf = conf,
                             .log = log,
                             .reload = {path, conf, log, out, NULL},
                             .lock_fd = -1,
                             .jobs = {.log = log},
                             .proxy = fl_clientd_proxy(conf)};
    struct clientd_signals to = {NULL};
    struct fl_err err = {0};
    uint64_t descriptors = 0;
    int rv;

    (void)fl_descriptors_raise(&descriptors);
    rv = clientd_start(&cli, descriptors, &err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = clientd_open_signals(&cli, &to);
    if (rv != FL_OK) {
        goto done;
    }
    rv = start_trainer(&cli);
    if (rv != FL_OK) {
        goto done;
    }
    cli.exit_code = FL_EXIT_OK;
    fl_log_out_fields(out, FL_LOG_JOURNAL);
    fl_notify_ready();
    fl_start_succeeded();
    if (!cli.data.trainer_counts) {
        clientd_join(&cli);
    }
    fl_loop_run(cli.jobs.loop);
    fl_notify_stopping();
done:
    if (rv == FL_ECANCELED) { /* Stopped by a signal while joining. */
        fl_log(log, FL_LOG_NOTICE, "client", "%s", fl_err_text(&err, rv));
    } else if (rv != FL_OK) {
        fl_log(log, FL_LOG_ERROR, "client", "cannot start: %s%s", fl_err_text(&err, rv),
               rv == FL_ENOSPC ? ": disk full; free some space (df -h), then start the client again"
                               : "");
    }
    clientd_close_signals(&cli, &to);
    clientd_finish(&cli);
    return cli.exit_code;
}
