/*
 * Translates commands of the server on the control stream, and the end of the connection, into
 * events of the session, and stores what a task or an evaluation needs of them. Runs on the loop.
 * It does not decide which command is allowed in which state (client/core/session_answer.c).
 */

#include "client/daemon/commands.h"

#include <stdio.h>
#include <string.h>

#include "client/daemon/events.h"

/* False: the upload mask has layers that the model lacks, and the control stream was closed. */
static bool check_plan(struct fl_commands *c, const uint8_t *units, size_t n_units)
{
    size_t model_units = fl_layout_units(c->joining->worker->setup->layout);

    if (fl_session_plan_fits(units, n_units, model_units)) {
        return true;
    }
    fl_log_peer(c->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                "bad command from the server: the upload mask has layers past the %zu of the "
                "model, reconnecting",
                model_units);
    fl_connection_give_up(c->connection);
    return false;
}

static bool take_task(struct fl_commands *c, const struct fl_wire_task *task)
{
    if (task->has_plan && !check_plan(c, task->plan.units, task->plan.n_units)) {
        return false;
    }
    if (!fl_joining_may_train(c->joining, task->task.key)) {
        return false;
    }
    fl_wanted_task(c->wanted, task);
    return true;
}

static bool take_evaluate(struct fl_commands *c, const struct fl_wire_command *w)
{
    uint64_t round = w->u.evaluate.round;
    int rv =
        fl_wanted_evaluate(c->wanted, round, w->u.evaluate.learning_rate, &w->u.evaluate.payload);

    if (rv != FL_OK) {
        fl_event_evaluation(c->connection, round, &(struct fl_evaluation_result){.received = {0}});
    }
    return rv == FL_OK;
}

/* Once a reason: the session announces each reconnect after it. */
static void log_refusal(struct fl_commands *c, const char *reason)
{
    if (c->refusal[0] != '\0' && strncmp(c->refusal, reason, sizeof(c->refusal) - 1) == 0) {
        return;
    }
    (void)snprintf(c->refusal, sizeof(c->refusal), "%s", reason);
    fl_log_peer(c->log, FL_LOG_ERROR, "client", FL_WORK_SERVER,
                "the server refused this client: %s", reason);
}

bool fl_commands_take(struct fl_commands *c, struct fl_session_event *event,
                      struct fl_wire_command *w)
{
    switch (w->type) {
    case FL_WIRE_WELCOME:
        c->refusal[0] = '\0';
        return fl_joining_welcome(c->joining, &w->u.welcome, event);
    case FL_WIRE_TASK:
        return take_task(c, &w->u.task);
    case FL_WIRE_PLAN:
        return check_plan(c, w->u.plan.units, w->u.plan.n_units);
    case FL_WIRE_EVALUATE:
        return take_evaluate(c, w);
    case FL_WIRE_REFUSED:
        log_refusal(c, w->u.refused.message);
        break;
    case FL_WIRE_REJECTED:
        fl_log_peer(c->log, FL_LOG_WARNING, "client", FL_WORK_SERVER,
                    "round %llu: update rejected by the server, dropping the result: %s",
                    (unsigned long long)w->u.verdict.round, w->u.verdict.reason);
        break;
    case FL_WIRE_DRAIN:
        fl_log_peer(c->log, FL_LOG_NOTICE, "client", FL_WORK_SERVER,
                    "the server is draining, disconnecting: %s", w->u.drain.reason);
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_DISMISSED:
    case FL_WIRE_HEARTBEAT_COMMAND:
        break;
    }
    return true;
}

static enum fl_session_event_type command_event_type(enum fl_wire_command_type type)
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

/* The command as an event, which borrows from `w`. A Welcome is filled in when it is taken. */
static struct fl_session_event command_event(const struct fl_wire_command *w)
{
    struct fl_session_event event = {.type = command_event_type(w->type)};

    switch (w->type) {
    case FL_WIRE_REFUSED:
        event.u.refused.retry_after_ms = w->u.refused.retry_after_ms;
        event.u.refused.kind =
            w->u.refused.reason == FL_WIRE_REASON_REVOKED     ? FL_SESSION_REFUSED_CURABLE
            : w->u.refused.reason == FL_WIRE_REASON_DUPLICATE ? FL_SESSION_REFUSED_FENCED
                                                              : FL_SESSION_REFUSED_FINAL;
        event.u.refused.reason = w->u.refused.message;
        break;
    case FL_WIRE_TASK:
        event.u.task.key = w->u.task.task.key;
        event.u.task.has_plan = w->u.task.has_plan;
        event.u.task.units = w->u.task.plan.units;
        event.u.task.n_units = w->u.task.plan.n_units;
        event.u.task.deadline_ms = w->u.task.task.deadline_ms;
        break;
    case FL_WIRE_PLAN:
        event.u.plan.key = (struct fl_round_key){w->u.plan.round, w->u.plan.attempt};
        event.u.plan.units = w->u.plan.units;
        event.u.plan.n_units = w->u.plan.n_units;
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_DISMISSED:
        event.u.key = (struct fl_round_key){w->u.verdict.round, w->u.verdict.attempt};
        break;
    case FL_WIRE_REJECTED:
        event.u.failed.key = (struct fl_round_key){w->u.verdict.round, w->u.verdict.attempt};
        event.u.failed.reason = w->u.verdict.reason;
        break;
    case FL_WIRE_DRAIN:
        event.u.drain.reconnect_after_ms = w->u.drain.reconnect_after_ms;
        event.u.drain.reason = w->u.drain.reason;
        break;
    case FL_WIRE_EVALUATE:
        event.u.evaluate.round = w->u.evaluate.round;
        event.u.evaluate.deadline_ms = w->u.evaluate.deadline_ms;
        break;
    case FL_WIRE_WELCOME:
    case FL_WIRE_HEARTBEAT_COMMAND:
        break;
    }
    return event;
}

/* The contents of a Welcome may be moved out of `w`. */
static void commands_on_command(struct fl_commands *c, struct fl_wire_command *w)
{
    struct fl_session_event event = command_event(w);
    bool wants_summary = w->type == FL_WIRE_WELCOME && w->u.welcome.wants_summary;

    if (fl_session_shell_command(c->shell, &event, w) && wants_summary) {
        fl_summary_upload_begin(c->joining->summary_upload);
    }
}

static void commands_on_message(void *ctx, const uint8_t *data, size_t len)
{
    struct fl_commands *c = ctx;
    struct fl_wire_command command;
    struct fl_err err = {0};
    int rv;

    if (fl_joining_told(c->joining)) {
        return; /* Leaving. */
    }
    rv = fl_wire_command_decode(data, len, &command, &err);
    if (rv != FL_OK) {
        fl_log_peer(c->log, FL_LOG_WARNING, "client", FL_WORK_SERVER, "%s: %s",
                    rv == FL_ENOMEM
                        ? "out of memory while decoding a command of the server, reconnecting"
                        : "bad command from the server",
                    fl_err_text(&err, rv));
        fl_connection_give_up(c->connection);
        return;
    }
    commands_on_command(c, &command);
    fl_wire_command_done(&command);
}

/* --- the connection --- */

static bool on_channel(void *ctx)
{
    struct fl_commands *c = ctx;

    return fl_renewal_up(c->renewal);
}

static void commands_on_up(void *ctx)
{
    struct fl_commands *c = ctx;

    fl_session_shell_ended(c->shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0}, FL_OK, NULL);
}

static void commands_on_writable(void *ctx)
{
    struct fl_commands *c = ctx;

    fl_summary_upload_go_on(c->joining->summary_upload);
}

/*
 * The status of the stream's end says so. After Refused, which says it too, the session has left
 * the stream and ignores this.
 */
static void commands_on_refused(struct fl_commands *c, enum fl_session_refusal kind,
                                const char *reason)
{
    struct fl_session_event event = {.type = FL_CEV_REFUSED};
    struct fl_wire_command command = {.type = FL_WIRE_REFUSED};

    event.u.refused.kind = kind;
    event.u.refused.reason = reason;
    command.u.refused.message = fl_wire_lend(reason);
    (void)fl_session_shell_command(c->shell, &event, &command);
}

static void on_ended(void *ctx, enum fl_grpc_status status, const char *message)
{
    struct fl_commands *c = ctx;

    fl_summary_upload_stop(c->joining->summary_upload);
    if (fl_joining_told(c->joining)) {
        fl_log(c->log, FL_LOG_DEBUG, "client", "the reason for leaving was sent");
    } else if (status == FL_GRPC_ABORTED) {
        commands_on_refused(c, FL_SESSION_REFUSED_FENCED,
                            message != NULL ? message
                                            : "another session of this client replaced this one");
    } else if (status == FL_GRPC_UNIMPLEMENTED) {
        commands_on_refused(
            c, FL_SESSION_REFUSED_FINAL,
            "no federation is served at this address: it may be one of `listen_admin`, or another "
            "service; set `server` to an address of `listen` of the server");
    } else if (status == FL_GRPC_INVALID_ARGUMENT || status == FL_GRPC_PERMISSION_DENIED ||
               status == FL_GRPC_UNAUTHENTICATED)
    {
        commands_on_refused(c,
                            status == FL_GRPC_PERMISSION_DENIED ? FL_SESSION_REFUSED_CURABLE
                                                                : FL_SESSION_REFUSED_FINAL,
                            message != NULL ? message : fl_grpc_status_name(status));
    } else if (status != FL_GRPC_OK && !fl_session_shell_stopped(c->shell)) {
        fl_log_peer(c->log, FL_LOG_INFO, "client", FL_WORK_SERVER, "control stream ended: %s%s%s",
                    fl_grpc_status_name(status), message != NULL && message[0] != '\0' ? ", " : "",
                    message != NULL ? message : "");
    }
}

static void commands_on_down(void *ctx, bool refused, const char *why)
{
    struct fl_commands *c = ctx;

    fl_renewal_down(c->renewal, refused);
    if (!fl_joining_down(c->joining)) {
        fl_session_shell_failed(c->shell, FL_ACTIVITY_CONNECTION, (struct fl_round_key){0},
                                refused ? FL_FAULT_LASTING : FL_FAULT_PASSING, why);
    }
}

const struct fl_connection_cbs fl_commands_cbs = {.on_channel = on_channel,
                                                  .on_up = commands_on_up,
                                                  .on_message = commands_on_message,
                                                  .on_writable = commands_on_writable,
                                                  .on_ended = on_ended,
                                                  .on_down = commands_on_down};
