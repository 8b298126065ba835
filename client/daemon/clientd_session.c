/*
 * The operations of the session (client/shell/session_shell.h) in the daemon: time and timer of the
 * loop, work on the training thread and over the connection, messages on the control stream, the
 * pending result in the state folder. Runs on the loop. What the session does is decided in
 * client/core, what a task means in client/work.
 */

#include <math.h>
#include <stdio.h>

#include "client/daemon/clientd_exit.h"
#include "client/daemon/clientd_impl.h"
#include "libfl/base/clock.h"

const char *fl__clientd_name(const struct fl_clientd *cli)
{
    const char *name = cli->conf->main->name;

    return name[0] != '\0' ? name : fl_credentials_identity(cli->credentials)->who.name;
}

void fl__clientd_stop_session(struct fl_clientd *cli)
{
    fl_session_shell_stop(cli->jobs.shell);
    fl_timer_close(cli->timer);
    cli->timer = NULL;
}

void fl__clientd_stop(struct fl_clientd *cli)
{
    fl__clientd_stop_session(cli);
    fl_loop_stop(cli->jobs.loop);
}

/* The data is ready for the next Hello; `why` is not NULL: it cannot be trained on. */
static void clientd_on_data(void *ctx, const char *why)
{
    struct fl_clientd *cli = ctx;
    struct fl_err err = {0};
    int rv;

    (void)snprintf(cli->data_trouble, sizeof(cli->data_trouble), "%s", why != NULL ? why : "");
    if (why == NULL) {
        (void)fl_availability_evaluate(cli->availability);
        why = fl_availability_disconnects(cli->availability)
                  ? fl_availability_why(cli->availability)
                  : NULL;
    }
    if (why == NULL) {
        rv = fl_connection_open(cli->connection, &err);
        if (rv != FL_OK) {
            why = fl_err_text(&err, rv);
        }
    }
    if (why != NULL) {
        fl_session_shell_failed(cli->jobs.shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0},
                                FL_FAULT_PASSING, why);
    }
}

/* Between two rounds the next Hello tells the server; a round is finished before. */
void fl__clientd_on_availability(void *arg)
{
    struct fl_clientd *cli = arg;
    enum fl_session_state state = fl_session_state(fl_session_shell_session(cli->jobs.shell));

    if (state == FL_SESSION_READY || state == FL_SESSION_DONE) {
        fl_log(cli->log, FL_LOG_INFO, "client", "reconnecting, so that the server knows");
        fl_connection_close(cli->connection);
    } else if (state == FL_SESSION_OFFLINE && fl_availability_why(cli->availability)[0] == '\0') {
        fl_session_shell_key(cli->jobs.shell, FL_CEV_RETRY, (struct fl_round_key){0});
    }
}

/* A round is finished before, as above; the step after it starts the timer again. */
void fl__clientd_on_central(void *arg)
{
    struct fl_clientd *cli = arg;
    enum fl_session_state state = fl_session_state(fl_session_shell_session(cli->jobs.shell));
    bool in_round = state >= FL_SESSION_FETCHING && state <= FL_SESSION_PUSHING;

    if (in_round || !fl_central_waiting(cli->central)) {
        return;
    }
    fl_central_apply(cli->central);
    fl_status_changed(cli->status);
    if (state != FL_SESSION_OFFLINE && state != FL_SESSION_STOPPED) {
        fl_log(cli->log, FL_LOG_INFO, "client", "reconnecting, so that the server knows");
        fl_connection_close(cli->connection);
    }
}

static uint64_t clientd_now_ms(void *ctx)
{
    (void)ctx;
    return fl_clock_ms();
}

static void clientd_set_timer(void *ctx, uint64_t at_ms)
{
    const struct fl_clientd *cli = ctx;
    uint64_t now = fl_clock_ms();

    if (at_ms == UINT64_MAX) {
        fl_timer_stop(cli->timer);
    } else {
        fl_timer_start(cli->timer, at_ms > now ? at_ms - now : 0);
    }
}

static int clientd_train(struct fl_clientd *cli, struct fl_round_key key, struct fl_err *err)
{
    struct fl_inputs inputs;

    fl_joining_count_round(&cli->joining);
    fl_evaluations_leave(&cli->evaluations);
    fl_downloads_take(&cli->downloads, &inputs);
    return fl_trainings_begin(&cli->trainings, &cli->wanted.task, key, &inputs, err);
}

static enum fl_client_work clientd_work_of(enum fl_activity activity)
{
    switch (activity) {
    case FL_ACTIVITY_CONNECTION:
        return FL_CLIENT_WORK_CONNECT;
    case FL_ACTIVITY_FETCH:
        return FL_CLIENT_WORK_FETCH;
    case FL_ACTIVITY_TRAINING:
        return FL_CLIENT_WORK_TRAIN;
    case FL_ACTIVITY_PUSH:
        return FL_CLIENT_WORK_PUSH;
    case FL_ACTIVITY_EVALUATION:
        break;
    }
    return FL_CLIENT_WORK_EVALUATE;
}

static void clientd_stepped(void *ctx, const struct fl_session_event *event)
{
    struct fl_clientd *cli = ctx;

    fl_client_shown_event(&cli->shown, event, fl_clock_ns(), fl_clock_wall_ms());
    if (fl_central_waiting(cli->central)) { /* Not inside of the step. */
        fl_timer_start(cli->central_timer, 0);
    }
    fl__clientd_history_event(cli, event);
}

void fl__clientd_shown(void *ctx, struct fl_client_shown *ret)
{
    const struct fl_clientd *cli = ctx;
    enum fl_session_state state = fl_session_state(fl_session_shell_session(cli->jobs.shell));
    const struct fl_result *result = cli->pending.result;
    struct fl_cert_info info = {.not_after = 0};

    *ret = cli->shown;
    ret->state[state] = 1;
    ret->connected = state >= FL_SESSION_READY && state <= FL_SESSION_DONE;
    ret->round = cli->wanted.task.key.round;
    ret->samples = cli->data.samples;
    ret->pending = result != NULL;
    ret->train_loss = result != NULL ? result->train_loss : (double)NAN;
    ret->wire[0] = atomic_load(&cli->traffic.out);
    ret->wire[1] = atomic_load(&cli->traffic.in);
    (void)snprintf(ret->name, sizeof(ret->name), "%s", fl__clientd_name(cli));
    if (cli->credentials != NULL) {
        fl_chain_info(fl_credentials_identity(cli->credentials)->chain, 0, &info);
        ret->certificate_ms = info.not_after > 0 ? 1000 * (uint64_t)info.not_after : 0;
    }
}

static int clientd_begin(void *ctx, enum fl_activity activity, const struct fl_session_effect *e,
                         struct fl_err *err)
{
    struct fl_clientd *cli = ctx;

    fl_client_shown_begin(&cli->shown, clientd_work_of(activity), fl_clock_ns());
    switch (activity) {
    case FL_ACTIVITY_CONNECTION:
        if (fl_renewal_may_connect(cli->renewal)) {
            fl_data_watch_refresh(&cli->watch, clientd_on_data, cli);
        }
        break;
    case FL_ACTIVITY_FETCH:
        return fl_downloads_begin_task(&cli->downloads, e->key, err);
    case FL_ACTIVITY_TRAINING:
        return clientd_train(cli, e->key, err);
    case FL_ACTIVITY_PUSH:
        return fl_deliveries_begin(&cli->deliveries, e->key, e->units, e->n_units);
    case FL_ACTIVITY_EVALUATION:
        return fl_downloads_begin_model(&cli->downloads, err);
    }
    return FL_OK;
}

static void clientd_cancel(void *ctx, enum fl_activity activity, const char *why)
{
    struct fl_clientd *cli = ctx;

    switch (activity) {
    case FL_ACTIVITY_CONNECTION:
        if (why != NULL) {
            fl_log(cli->log, FL_LOG_WARNING, "client", "ending the session: %s", why);
        }
        fl_connection_close(cli->connection);
        break;
    case FL_ACTIVITY_FETCH:
        fl_downloads_cancel_task(&cli->downloads);
        break;
    case FL_ACTIVITY_TRAINING:
        fl_trainings_cancel(&cli->trainings);
        break;
    case FL_ACTIVITY_PUSH:
        fl_deliveries_cancel(&cli->deliveries);
        break;
    case FL_ACTIVITY_EVALUATION:
        break;
    }
}

/* `labels` has 2 * FL_WIRE_MAX_PAIRS places. */
static void clientd_describe(struct fl_clientd *cli, struct fl_pair *labels,
                             struct fl_wire_hello *hello)
{
    fl_central_describe(cli->central, labels, hello);
    hello->client = fl_wire_lend(fl__clientd_name(cli));
    hello->samples = cli->data.samples;
    hello->evaluation_samples = cli->data.evaluation_samples;
    hello->agent = fl_wire_lend("fl-clientd " PACKAGE_VERSION);
    hello->unavailable = (char *)(uintptr_t)fl_availability_announce(cli->availability);
}

static void clientd_send(void *ctx, struct fl_wire_event *message)
{
    struct fl_pair labels[2 * FL_WIRE_MAX_PAIRS];
    struct fl_clientd *cli = ctx;

    if (message->type == FL_WIRE_HELLO) {
        clientd_describe(cli, labels, &message->u.hello);
    } else if (message->type == FL_WIRE_HEARTBEAT_EVENT) {
        message->u.heartbeat = ++cli->heartbeats;
    } else if (message->type == FL_WIRE_REPORT) {
        *message = fl_session_report(cli->pending.result);
    }
    fl_connection_send(cli->connection, message);
}

static bool clientd_take(void *ctx, struct fl_session_event *command, void *message)
{
    struct fl_clientd *cli = ctx;

    return fl_commands_take(&cli->commands, command, message);
}

static bool clientd_has_result(void *ctx, struct fl_round_key key)
{
    const struct fl_clientd *cli = ctx;

    return fl_pending_result_is(&cli->pending, key);
}

static void clientd_drop_result(void *ctx, struct fl_round_key key)
{
    struct fl_clientd *cli = ctx;

    fl_pending_result_drop(&cli->pending, key);
}

static void clientd_log(void *ctx, enum fl_log_level level, const char *text)
{
    const struct fl_clientd *cli = ctx;

    if (level == FL_LOG_DEBUG) { /* A change of the state. */
        fl_status_changed(cli->status);
    }
    if (level == FL_LOG_WARNING) {
        fl_log_peer(cli->log, level, "client", FL_WORK_SERVER, "%s", text);
        return;
    }
    fl_log(cli->log, level, level == FL_LOG_DEBUG ? "session" : "client", "%s", text);
}

static void clientd_leave(void *ctx, int code, const char *why)
{
    struct fl_clientd *cli = ctx;

    cli->exit_code = code == 0 ? FL_EXIT_OK : FL_EXIT_REFUSED;
    fl_log(cli->log, FL_LOG_NOTICE, "client", "leaving: %s", why != NULL ? why : "done");
    fl__clientd_stop(cli);
}

const struct fl_session_ops fl__clientd_ops = {.now_ms = clientd_now_ms,
                                               .set_timer = clientd_set_timer,
                                               .begin = clientd_begin,
                                               .cancel = clientd_cancel,
                                               .send = clientd_send,
                                               .take = clientd_take,
                                               .has_result = clientd_has_result,
                                               .drop_result = clientd_drop_result,
                                               .log = clientd_log,
                                               .leave = clientd_leave,
                                               .stepped = clientd_stepped};

void fl__clientd_on_timer(void *arg)
{
    const struct fl_clientd *cli = arg;

    fl_session_shell_tick(cli->jobs.shell);
}
