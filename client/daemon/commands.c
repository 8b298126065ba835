/*
 * Passes commands of the server on the control stream, and the end of the connection, to the
 * session as events (client/shell/session_messages.h), and stores what a task or an evaluation
 * needs of them. Runs on the loop. It does not decide which command is allowed in which state
 * (client/core/session_answer.c).
 */

#include "client/daemon/commands.h"

#include <stdio.h>
#include <string.h>

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

static bool take_evaluate(struct fl_commands *c, const struct fl_wire_evaluate *evaluate)
{
    const struct fl_wire_event none = fl_session_evaluation(evaluate->round, NULL);

    if (fl_wanted_evaluate(c->wanted, evaluate) != FL_OK) {
        fl_connection_send(c->connection, &none);
        return false;
    }
    return true;
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
        return take_evaluate(c, &w->u.evaluate);
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
    case FL_WIRE_CENTRAL: /* No command of the session. */
        break;
    }
    return true;
}

/* The contents of a Welcome may be moved out of `w`. */
static void commands_on_command(struct fl_commands *c, struct fl_wire_command *w)
{
    bool wants_summary = w->type == FL_WIRE_WELCOME && w->u.welcome.wants_summary;
    struct fl_session_event event;

    if (w->type == FL_WIRE_CENTRAL) {
        fl_central_receive(c->central, &w->u.central);
        fl_timer_start(c->central_timer, 0);
        return;
    }
    event = fl_session_event_of(w);
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
static void commands_on_refused(struct fl_commands *c, enum fl_wire_reason reason, const char *text)
{
    struct fl_wire_command command = {.type = FL_WIRE_REFUSED};

    command.u.refused.reason = reason;
    command.u.refused.message = fl_wire_lend(text);
    commands_on_command(c, &command);
}

static void on_ended(void *ctx, enum fl_grpc_status status, const char *message)
{
    struct fl_commands *c = ctx;

    fl_summary_upload_stop(c->joining->summary_upload);
    if (fl_joining_told(c->joining)) {
        fl_log(c->log, FL_LOG_DEBUG, "client", "the reason for leaving was sent");
    } else if (status == FL_GRPC_ABORTED) {
        commands_on_refused(c, FL_WIRE_REASON_DUPLICATE,
                            message != NULL ? message
                                            : "another session of this client replaced this one");
    } else if (status == FL_GRPC_UNIMPLEMENTED) {
        commands_on_refused(
            c, FL_WIRE_REASON_UNSPECIFIED,
            "no federation is served at this address: it may be one of `listen_admin`, or another "
            "service; set `server` to an address of `listen` of the server");
    } else if (status == FL_GRPC_INVALID_ARGUMENT || status == FL_GRPC_PERMISSION_DENIED ||
               status == FL_GRPC_UNAUTHENTICATED)
    {
        commands_on_refused(c,
                            status == FL_GRPC_PERMISSION_DENIED ? FL_WIRE_REASON_REVOKED
                                                                : FL_WIRE_REASON_UNSPECIFIED,
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
