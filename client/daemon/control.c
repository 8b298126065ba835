/*
 * The control stream. The happy path: the channel comes up, Attend is opened and the
 * session says hello; commands become session events, effects become client events.
 * Whatever breaks, on_down of the channel is the one place where the session learns of it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/daemon/client.h"

/* --- commands --- */

/*
 * Samples never leave this machine, but what some solvers tell of them does, and goes on to all
 * other clients: nothing that a server decides alone.
 */
static int check_offers(const struct fl_clientd *cli, bool wants_offer, struct fl_err *err)
{
    const struct fl_solver_ops *solver = cli->setup->solver;

    if ((!wants_offer && solver->offer == NULL) || fl_options_bool(cli->conf->main, "offers")) {
        return FL_OK;
    }
    return fl_err_set(err, FL_EPERM,
                      "with the solver '%s' means of this client's samples leave the machine, for "
                      "all other clients, and its configuration does not say 'offers: yes'",
                      solver->policy.name);
}

/*
 * The server's operator is told too. The session hears of it once that is out and the stream has
 * ended (on_down()); until then it waits for its Welcome, and no longer than for that.
 */
static void tell_unfit(struct fl_clientd *cli, const char *reason)
{
    (void)snprintf(cli->unfit, sizeof(cli->unfit), "%s", reason);
    fl_log(cli->log, FL_LOG_ERROR, "client", "this federation does not fit: %s", reason);
    fl_control_failed(cli, (struct fl_round_key){0}, reason, false);
    if (cli->attend != NULL) {
        fl_call_end(cli->attend);
    }
}

/* Another description than the one that is prepared. Takes the contents of `w`. */
static int take_description(struct fl_clientd *cli, struct fl_wire_welcome *w,
                            struct fl_session_event *event, struct fl_err *err)
{
    struct fl_setup *setup = NULL;
    int rv = fl_setup_create(w, &setup, err);

    if (rv == FL_OK) {
        rv = fl_work_prepare(cli, setup, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    event->u.welcome.held_unfit =
        cli->result != NULL ? fl_worker_unfit(&cli->worker, cli->setup, cli->result) : NULL;
    if (event->u.welcome.held_unfit != NULL) {
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "dropping the kept result of round %llu: %s",
                    (unsigned long long)cli->result->key.round, event->u.welcome.held_unfit);
    }
    return FL_OK;
}

static void on_welcome(struct fl_clientd *cli, struct fl_wire_welcome *w)
{
    struct fl_session_event event = {.type = FL_CEV_WELCOME};
    struct fl_err err = {0};
    /* After a reconnect the description is nearly always the one that is prepared already. */
    bool same = cli->setup != NULL && fl_setup_is(cli->setup, w);
    bool wants_offer = w->wants_offer; /* Asked anew in each session, so no part of what is same. */
    int rv = FL_OK;

    if (!same && fl_work_busy(cli)) {
        fl_log_peer(
            cli->log, FL_LOG_INFO, "client", FL_WORK_SERVER,
            "the server describes another federation than the one that is still worked for: "
            "ending that work, then coming again");
        fl_work_cancel(cli);
        fl_work_leave_evaluation(cli);
        fl_grpc_channel_close(cli->channel);
        return;
    }
    cli->token = w->session;
    cli->chunk_bytes =
        w->limits.chunk_bytes < FL_WIRE_CHUNK ? w->limits.chunk_bytes : FL_WIRE_CHUNK;
    event.u.welcome.heartbeat_ms = w->heartbeat_ms;
    if (!same) {
        rv = take_description(cli, w, &event, &err);
    }
    if (rv == FL_OK) {
        rv = check_offers(cli, wants_offer, &err);
    }
    if (rv != FL_OK) {
        tell_unfit(cli, fl_err_text(&err, rv));
        return;
    }
    event.u.welcome.model_fits = true;
    fl_log_peer(cli->log, FL_LOG_NOTICE, "client", FL_WORK_SERVER,
                "joined federation '%s' units=%zu parameters=%zu", cli->setup->welcome.federation,
                fl_layout_units(cli->setup->layout), fl_layout_count(cli->setup->layout));
    fl_clientd_step(cli, &event);
    if (wants_offer) {
        fl_offer_begin(cli);
    }
}

/* False: it grants what the model does not have, and the control stream is given up. */
static bool check_plan(struct fl_clientd *cli, const uint8_t *units, size_t n_units)
{
    size_t model_units = fl_layout_units(cli->setup->layout);

    if (fl_session_plan_fits(units, n_units, model_units)) {
        return true;
    }
    fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "bad command from the server: a plan grants units past the %zu of the model",
                model_units);
    fl_call_cancel(cli->attend);
    return false;
}

static void on_plan(struct fl_clientd *cli, const struct fl_wire_plan *plan)
{
    struct fl_session_event event = {.type = FL_CEV_PLAN};

    if (!check_plan(cli, plan->units, plan->n_units)) {
        return;
    }
    event.u.plan.key = (struct fl_round_key){plan->round, plan->attempt};
    event.u.plan.units = plan->units;
    event.u.plan.n_units = plan->n_units;
    fl_clientd_step(cli, &event);
}

static void on_task(struct fl_clientd *cli, const struct fl_wire_task *task)
{
    struct fl_session_event event = {.type = FL_CEV_TASK};
    struct fl_round_key key = {task->round, task->attempt};

    event.u.task.key = key;
    if (!fl_session_task_is_new(cli->session, key)) {
        fl_clientd_step(cli, &event); /* A sign of life, and nothing else. */
        return;
    }
    if (task->has_plan && !check_plan(cli, task->plan.units, task->plan.n_units)) {
        return;
    }
    cli->task = (struct fl_task){.key = key,
                                 .counted = {task->counted_round, task->counted_attempt},
                                 .learning_rate = task->learning_rate,
                                 .seed = task->seed,
                                 .order_seed = task->order_seed,
                                 .deadline_ms = task->deadline_ms,
                                 .n_selected = task->selected,
                                 .population = task->population};
    fl_inputs_list(&cli->listed, task);
    event.u.task.has_plan = task->has_plan;
    event.u.task.units = task->plan.units;
    event.u.task.n_units = task->plan.n_units;
    event.u.task.deadline_ms = task->deadline_ms;
    fl_clientd_step(cli, &event);
}

static void on_evaluate(struct fl_clientd *cli, const struct fl_wire_command *c)
{
    struct fl_session_event event = {.type = FL_CEV_EVALUATE};

    cli->evaluate_round = c->u.evaluate.round;
    cli->evaluate_rate = c->u.evaluate.learning_rate;
    cli->evaluate_bundle = (struct fl_input){.bytes = c->u.evaluate.bundle.bytes};
    if (fl_str_copy(cli->evaluate_bundle.name, sizeof(cli->evaluate_bundle.name),
                    c->u.evaluate.bundle.name) != FL_OK)
    {
        /* No bundle of this server's has such a name: there is nothing to fetch. */
        fl_control_evaluation(cli, cli->evaluate_round, &(struct fl_wire_evaluation){0}, NULL);
        return;
    }
    event.u.evaluate.round = c->u.evaluate.round;
    event.u.evaluate.deadline_ms = c->u.evaluate.deadline_ms;
    fl_clientd_step(cli, &event);
}

static void on_refused(struct fl_clientd *cli, uint32_t retry_ms, const char *reason)
{
    struct fl_session_event event = {.type = FL_CEV_REFUSED};

    fl_log_peer(cli->log, FL_LOG_ERROR, "client", FL_WORK_SERVER,
                "the server refused this client: %s", reason);
    event.u.refused.retry_after_ms = retry_ms;
    event.u.refused.reason = reason;
    fl_clientd_step(cli, &event);
}

static void on_verdict(struct fl_clientd *cli, const struct fl_wire_command *c)
{
    struct fl_round_key key = {c->u.verdict.round, c->u.verdict.attempt};

    if (c->type == FL_WIRE_REJECTED) {
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "round %llu: the server rejected us: %s", (unsigned long long)key.round,
                    c->u.verdict.reason);
        fl_clientd_step_failed(cli, FL_CEV_REJECTED, key, c->u.verdict.reason, true);
        return;
    }
    fl_clientd_step_key(cli, c->type == FL_WIRE_ACCEPTED ? FL_CEV_ACCEPTED : FL_CEV_DISMISSED, key);
}

static enum fl_session_event_type event_of(enum fl_wire_command_type type)
{
    static const enum fl_session_event_type events[] = {
        [FL_WIRE_WELCOME] = FL_CEV_WELCOME,     [FL_WIRE_REFUSED] = FL_CEV_REFUSED,
        [FL_WIRE_TASK] = FL_CEV_TASK,           [FL_WIRE_PLAN] = FL_CEV_PLAN,
        [FL_WIRE_ACCEPTED] = FL_CEV_ACCEPTED,   [FL_WIRE_REJECTED] = FL_CEV_REJECTED,
        [FL_WIRE_DISMISSED] = FL_CEV_DISMISSED, [FL_WIRE_EVALUATE] = FL_CEV_EVALUATE,
        [FL_WIRE_DRAIN] = FL_CEV_DRAIN,         [FL_WIRE_HEARTBEAT_COMMAND] = FL_CEV_HEARTBEAT,
    };

    return events[type];
}

/* Welcome's contents may be taken. */
static void on_command(struct fl_clientd *cli, struct fl_wire_command *c)
{
    struct fl_session_event event = {.type = event_of(c->type)};

    if (fl_session_answer(fl_session_state(cli->session), event.type) != FL_SESSION_TAKES) {
        fl_clientd_step(cli, &event);
        return;
    }
    switch (c->type) {
    case FL_WIRE_WELCOME:
        on_welcome(cli, &c->u.welcome);
        break;
    case FL_WIRE_REFUSED:
        on_refused(cli, c->u.refused.retry_after_ms, c->u.refused.message);
        break;
    case FL_WIRE_TASK:
        on_task(cli, &c->u.task);
        break;
    case FL_WIRE_PLAN:
        on_plan(cli, &c->u.plan);
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_REJECTED:
    case FL_WIRE_DISMISSED:
        on_verdict(cli, c);
        break;
    case FL_WIRE_HEARTBEAT_COMMAND:
        fl_clientd_step(cli, &event);
        break;
    case FL_WIRE_DRAIN:
        fl_log_peer(cli->log, FL_LOG_NOTICE, "client", FL_WORK_SERVER,
                    "the server says goodbye: %s", c->u.drain.reason);
        event.u.drain.reconnect_after_ms = c->u.drain.reconnect_after_ms;
        event.u.drain.reason = c->u.drain.reason;
        fl_clientd_step(cli, &event);
        break;
    case FL_WIRE_EVALUATE:
        on_evaluate(cli, c);
        break;
    }
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_clientd *cli = ctx;
    struct fl_wire_command command;
    struct fl_err err = {0};
    int rv;

    if (cli->unfit[0] != '\0') {
        return true; /* Leaving. */
    }
    rv = fl_wire_command_decode(data, len, &command, &err);
    if (rv != FL_OK) {
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "bad command from the server: %s", fl_err_text(&err, rv));
        fl_call_cancel(call);
        return true;
    }
    on_command(cli, &command);
    fl_wire_command_done(&command);
    return true;
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_clientd *cli = ctx;

    (void)call;
    cli->attend = NULL;
    fl_offer_stop(cli);
    if (cli->unfit[0] != '\0') {
        fl_log(cli->log, FL_LOG_DEBUG, "client", "the server was told");
    } else if (status == FL_GRPC_ABORTED) {
        on_refused(cli, 0, message != NULL ? message : "another session took over");
    } else if (status == FL_GRPC_INVALID_ARGUMENT || status == FL_GRPC_PERMISSION_DENIED ||
               status == FL_GRPC_UNIMPLEMENTED)
    {
        on_refused(cli, 0, message != NULL ? message : fl_grpc_status_name(status));
    } else if (status != FL_GRPC_OK && !cli->stopping) {
        fl_log_peer(cli->log, FL_LOG_INFO, "client", FL_WORK_SERVER, "control stream ended: %s%s%s",
                    fl_grpc_status_name(status), message != NULL && message[0] != '\0' ? ", " : "",
                    message != NULL ? message : "");
    }
    if (cli->channel != NULL) {
        fl_grpc_channel_close(cli->channel);
    }
}

static void on_writable(struct fl_call *call, void *ctx)
{
    (void)call;
    fl_offer_go_on(ctx);
}

static const struct fl_call_handler attend_handler = {
    .on_message = on_message, .on_writable = on_writable, .on_closed = on_closed};

/* --- channel --- */

static void on_up(void *ctx)
{
    struct fl_clientd *cli = ctx;
    struct fl_session_event event = {.type = FL_CEV_CONNECTED};
    int rv = fl_grpc_call(cli->channel, "/fl.v1.Federation/Attend", 0, &attend_handler, cli,
                          &cli->attend);

    if (rv != FL_OK) {
        fl_grpc_channel_close(cli->channel);
        return;
    }
    fl_clientd_step(cli, &event);
}

static void on_down(void *ctx, int code, const char *text)
{
    struct fl_clientd *cli = ctx;
    const char *server = fl_options_str(cli->conf->main, "server");

    cli->channel = NULL;
    if (cli->stopping) {
        fl_loop_stop(cli->loop);
        return;
    }
    if (code != FL_OK) {
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER, "no connection to '%s': %s",
                    server, text != NULL ? text : fl_strerror(code));
    }
    if (cli->unfit[0] != '\0') {
        struct fl_session_event event = {.type = FL_CEV_WELCOME};

        event.u.welcome.reason = cli->unfit;
        fl_clientd_step(cli, &event);
        return;
    }
    fl_clientd_step_failed(cli, FL_CEV_DISCONNECTED, (struct fl_round_key){0},
                           text != NULL ? text : fl_strerror(code), false);
}

static const struct fl_grpc_channel_cbs channel_cbs = {.on_up = on_up, .on_down = on_down};

void fl_control_connect(struct fl_clientd *cli)
{
    struct fl_rpc_limits limits;
    struct fl_err err = {0};
    int rv;

    if (cli->channel != NULL) {
        return;
    }
    cli->unfit[0] = '\0';
    fl_rpc_limits_default(&limits);
    limits.message_bytes = FL_WIRE_MAX_CONTROL; /* a Welcome may describe thousands of tensors */
    if (limits.stream_window < 2 * FL_WIRE_MAX_CONTROL) {
        limits.stream_window = 2 * FL_WIRE_MAX_CONTROL;
    }
    limits.conn_window = 2 * limits.stream_window;
    cli->queue_bytes = limits.queue_bytes;
    rv = fl_grpc_connect(cli->loop, fl_options_str(cli->conf->main, "server"), &limits,
                         (uint32_t)fl_options_ms(cli->conf->reconnect, "connect_timeout"),
                         &channel_cbs, cli, &cli->channel, &err);
    if (rv != FL_OK) {
        fl_log_peer(cli->log, FL_LOG_WARNING, "client", FL_WORK_SERVER, "no connection to '%s': %s",
                    fl_options_str(cli->conf->main, "server"), fl_err_text(&err, rv));
        fl_clientd_step_failed(cli, FL_CEV_DISCONNECTED, (struct fl_round_key){0},
                               fl_err_text(&err, rv), false);
    }
}

void fl_control_disconnect(struct fl_clientd *cli)
{
    if (cli->channel != NULL) {
        fl_grpc_channel_close(cli->channel);
    }
}
