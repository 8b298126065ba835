#include "client/daemon/client.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/daemon/exit_codes.h"
#include "client/daemon/preflight.h"
#include "client/train/trainer.h"
#include "libfl/base/clock.h"
#include "libfl/base/descriptors.h"
#include "libfl/base/fs.h"
#include "libfl/net/notify.h"
#include "libfl/num/gemm.h"

bool fl_clientd_holds(const struct fl_clientd *cli, struct fl_round_key key)
{
    return cli->result != NULL && cli->result->key.round == key.round &&
           cli->result->key.attempt == key.attempt;
}

uint64_t fl_clientd_seed(const struct fl_clientd *cli)
{
    const char *name = fl_options_str(cli->conf->main, "name");
    int64_t seed = fl_options_int(cli->conf->main, "seed");

    return seed != 0 ? (uint64_t)seed : fl_hash64(name, strlen(name));
}

const char *fl_clientd_state_dir(const struct fl_clientd *cli)
{
    return fl_options_str(cli->conf->main, "state_dir");
}

static void drop_result(struct fl_clientd *cli, struct fl_round_key key)
{
    struct fl_err err = {0};
    int rv;

    if (!fl_clientd_holds(cli, key)) {
        return;
    }
    fl_result_unref(cli->result);
    cli->result = NULL;
    rv = fl_result_remove(fl_clientd_state_dir(cli), &err);
    if (rv != FL_OK) {
        fl_log(cli->log, FL_LOG_WARNING, "client", "%s, ignoring", fl_err_text(&err, rv));
    }
}

static void leave(struct fl_clientd *cli, const struct fl_session_effect *e)
{
    cli->exit_code = e->code == 0 ? FL_EXIT_OK : FL_EXIT_REFUSED;
    cli->stopping = true;
    fl_log(cli->log, FL_LOG_NOTICE, "client", "leaving: %s", e->text != NULL ? e->text : "done");
    fl_loop_stop(cli->loop);
}

static void carry_out(struct fl_clientd *cli, const struct fl_session_effect *e)
{
    switch (e->type) {
    case FL_CEFF_CONNECT:
        fl_control_connect(cli);
        break;
    case FL_CEFF_DISCONNECT:
        if (e->text != NULL) {
            fl_log(cli->log, FL_LOG_WARNING, "client", "ending the session: %s", e->text);
        }
        fl_control_disconnect(cli);
        break;
    case FL_CEFF_HELLO:
        fl_control_hello(cli, e->key);
        break;
    case FL_CEFF_HEARTBEAT:
        fl_control_heartbeat(cli);
        break;
    case FL_CEFF_FETCH:
        fl_fetch_begin(cli, e->key);
        break;
    case FL_CEFF_TRAIN:
        fl_work_train(cli, e->key);
        break;
    case FL_CEFF_CANCEL_TRAIN:
        fl_work_cancel(cli);
        break;
    case FL_CEFF_REPORT:
        if (fl_clientd_holds(cli, e->key)) {
            fl_control_report(cli);
        } else { /* Kept for another model, see fl_worker_unfit(). */
            fl_control_failed(cli, e->key, "the kept result is gone", false);
        }
        break;
    case FL_CEFF_FAILED:
        fl_control_failed(cli, e->key, e->text, e->diverged);
        break;
    case FL_CEFF_PUSH:
        fl_push_begin(cli, e->key, e->units, e->n_units);
        break;
    case FL_CEFF_CANCEL_PUSH:
        fl_push_cancel(cli);
        break;
    case FL_CEFF_CANCEL_FETCH:
        fl_fetch_cancel(cli);
        break;
    case FL_CEFF_DROP:
        drop_result(cli, e->key);
        break;
    case FL_CEFF_EVALUATE:
        fl_fetch_evaluation(cli);
        break;
    case FL_CEFF_NO_EVALUATION:
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER, "%s", e->text);
        fl_control_evaluation(cli, e->key.round, &(struct fl_wire_evaluation){0}, NULL);
        break;
    case FL_CEFF_TRACE:
        fl_log(cli->log, FL_LOG_DEBUG, "session", "%s", e->text);
        break;
    case FL_CEFF_NOTICE:
        fl_log(cli->log, FL_LOG_NOTICE, "client", "%s", e->text);
        break;
    case FL_CEFF_EXIT:
        leave(cli, e);
        break;
    }
}

/* An event that came up while effects are being carried out waits for its turn. */
struct later {
    struct fl_clientd *cli;
    struct fl_session_event event;
};

static void step_later(void *arg)
{
    struct later *later = arg;

    fl_clientd_step(later->cli, &later->event);
    free(later);
}

static void postpone(struct fl_clientd *cli, const struct fl_session_event *event)
{
    struct later *later = calloc(1, sizeof(*later));

    FL_REQUIRE(event->type == FL_CEV_DISCONNECTED || event->type == FL_CEV_FETCH_FAILED ||
               event->type == FL_CEV_TRAIN_FAILED || event->type == FL_CEV_PUSH_FAILED ||
               event->type == FL_CEV_EVALUATE_FAILED || event->type == FL_CEV_FETCHED);
    if (later == NULL) {
        fl_log(cli->log, FL_LOG_ERROR, "client", "out of memory");
        abort();
    }
    later->cli = cli;
    later->event = *event;
    if (event->type != FL_CEV_FETCHED) {
        later->event.u.failed.reason = "could not be started"; /* The caller's text goes away. */
    }
    if (fl_loop_post(cli->loop, step_later, later) != FL_OK) {
        free(later);
    }
}

void fl_clientd_step(struct fl_clientd *cli, struct fl_session_event *event)
{
    struct fl_session_effects effects = {0};
    uint64_t deadline;
    size_t i;
    int rv;

    if (cli->stopping) {
        return;
    }
    if (cli->stepping) {
        postpone(cli, event);
        return;
    }
    cli->stepping = true;
    event->now_ms = fl_clock_ms();
    rv = fl_session_step(cli->session, event, &effects);
    if (rv != FL_OK) {
        fl_log(cli->log, FL_LOG_ERROR, "client", "the session cannot go on: %s", fl_strerror(rv));
        abort(); /* Out of memory: the result on disk is whole, systemd starts us again. */
    }
    for (i = 0; i < effects.n; i++) {
        carry_out(cli, &effects.list[i]);
    }
    cli->stepping = false;
    deadline = fl_session_deadline(cli->session);
    if (deadline == UINT64_MAX || cli->stopping) {
        fl_timer_stop(cli->timer);
    } else {
        uint64_t now = fl_clock_ms();

        fl_timer_start(cli->timer, deadline > now ? deadline - now : 0);
    }
}

void fl_clientd_step_key(struct fl_clientd *cli, enum fl_session_event_type type,
                         struct fl_round_key key)
{
    struct fl_session_event event = {.type = type};

    event.u.key = key;
    fl_clientd_step(cli, &event);
}

void fl_clientd_step_failed(struct fl_clientd *cli, enum fl_session_event_type type,
                            struct fl_round_key key, const char *reason, bool permanent)
{
    struct fl_session_event event = {.type = type};

    event.u.failed.key = key;
    event.u.failed.reason = reason;
    event.u.failed.permanent = permanent;
    fl_clientd_step(cli, &event);
}

void fl_clientd_step_diverged(struct fl_clientd *cli, enum fl_session_event_type type,
                              struct fl_round_key key, const char *reason)
{
    struct fl_session_event event = {.type = type};

    event.u.failed.key = key;
    event.u.failed.reason = reason;
    event.u.failed.permanent = true;
    event.u.failed.diverged = true;
    fl_clientd_step(cli, &event);
}

static void on_timer(void *arg)
{
    struct fl_session_event event = {.type = FL_CEV_TICK};

    fl_clientd_step(arg, &event);
}

static void on_signal(void *arg, int signum)
{
    struct fl_clientd *cli = arg;

    fl_log(cli->log, FL_LOG_NOTICE, "client", "stopping on signal %d", signum);
    cli->stopping = true;
    fl_loop_stop(cli->loop);
}

static int open_state(struct fl_clientd *cli, struct fl_err *err)
{
    const char *dir = fl_clientd_state_dir(cli);
    int rv = fl_fs_mkdirs(dir, err);

    if (rv == FL_OK) {
        rv = fl_fs_lock_dir(dir, &cli->lock_fd, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    cli->worker.state_dir = dir;
    cli->worker.log = cli->log;
    cli->worker.seed = fl_clientd_seed(cli);
    rv = fl_keeps_open(dir, cli->log, &cli->worker.keeps, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_result_load(dir, &cli->result, err);
    if (rv == FL_EFORMAT) {
        fl_log(cli->log, FL_LOG_WARNING, "client", "%s, ignoring it", err->msg);
    }
    return rv == FL_ENOENT || rv == FL_EFORMAT ? FL_OK : rv;
}

static int open_session(struct fl_clientd *cli)
{
    const struct fl_options *r = cli->conf->reconnect;
    struct fl_session_conf conf = {
        .seed = fl_clientd_seed(cli),
        .backoff_ms = fl_options_ms(r, "first"),
        .backoff_max_ms = fl_options_ms(r, "longest"),
        .refused_ms = fl_options_ms(r, "after_refusal"),
        .done_max_ms = fl_options_ms(r, "when_done"),
        .exit_when_done = fl_options_bool(cli->conf->main, "exit_when_done"),
    };

    return fl_session_create(&conf, &cli->session);
}

static int start(struct fl_clientd *cli, struct fl_err *err)
{
    int rv;

    rv = fl_client_preflight_places(cli->conf, &cli->exit_code, err);
    if (rv != FL_OK) {
        return rv;
    }
    cli->exit_code = FL_EXIT_FAILURE;
    rv = fl_loop_create(&cli->loop, err);
    if (rv == FL_OK) {
        rv = fl_timer_create(cli->loop, on_timer, cli, &cli->timer);
    }
    if (rv == FL_OK) {
        rv = open_session(cli);
    }
    if (rv == FL_OK) {
        cli->exit_code = FL_EXIT_STATE;
        rv = open_state(cli, err);
    }
    return rv == FL_OK ? fl_work_open(cli, &cli->exit_code, err) : rv;
}

static void finish(struct fl_clientd *cli)
{
    cli->stopping = true;
    if (cli->channel != NULL) { /* on_down ends the run. */
        fl_grpc_channel_close(cli->channel);
        fl_loop_run(cli->loop);
    }
    fl_work_close(cli);
    fl_timer_close(cli->timer);
    if (cli->loop != NULL) {
        fl_loop_free(cli->loop);
    }
    fl_fetch_free(cli);
    fl_session_free(cli->session);
    fl_work_forget(cli);
    fl_worker_done(&cli->worker);
    fl_dataset_free(cli->train);
    fl_dataset_free(cli->test);
    fl_result_unref(cli->result);
    if (cli->lock_fd >= 0) {
        (void)close(cli->lock_fd);
    }
}

int fl_client_run(const struct fl_client_conf *conf, const struct fl_log *log)
{
    struct fl_clientd cli = {.conf = conf, .log = log, .lock_fd = -1};
    struct fl_session_event event = {.type = FL_CEV_START};
    struct fl_signal *term = NULL;
    struct fl_signal *interrupt = NULL;
    struct fl_err err = {0};
    int rv;

    fl_gemm_init();
    (void)fl_descriptors_raise(&cli.descriptors);
    rv = start(&cli, &err);
    if (rv == FL_OK) {
        rv = fl_signal_create(cli.loop, SIGTERM, on_signal, &cli, &term);
    }
    if (rv == FL_OK) {
        rv = fl_signal_create(cli.loop, SIGINT, on_signal, &cli, &interrupt);
    }
    if (rv == FL_OK) {
        cli.exit_code = FL_EXIT_OK;
        fl_notify_ready("running");
        if (cli.result != NULL) {
            event.u.held = cli.result->key;
        }
        fl_clientd_step(&cli, &event);
        fl_loop_run(cli.loop);
        fl_notify_stopping();
    } else {
        fl_log(log, FL_LOG_ERROR, "client", "cannot start: %s", fl_err_text(&err, rv));
    }
    fl_signal_close(term);
    fl_signal_close(interrupt);
    finish(&cli);
    return cli.exit_code;
}
