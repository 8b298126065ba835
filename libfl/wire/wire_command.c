/*
 * ServerCommand: the messages of the server to a client on its control stream. Pure functions, any
 * thread. The rows are in messages.h; here are the checks that are no range. The layout of the
 * model is in wire_welcome.c.
 */
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/row_impl.h"

static int rule_message_bytes(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_limits *limits = own;
    const struct fl__wire_at field = {at, "message_bytes"};

    return fl__wire_check_range(&field, limits->message_bytes, limits->chunk_bytes, UINT32_MAX,
                                err);
}

static int rule_training(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_training *training = own;

    if (training->client_momentum < 0 || training->client_momentum >= 1) {
        return fl__wire_refuse(at, err, "client_momentum is %g, expected at least 0 and below 1",
                               training->client_momentum);
    }
    return training->epochs != 0 || training->steps != 0
               ? FL_OK
               : fl__wire_refuse(at, err, "neither epochs nor steps are set");
}

static int rule_payloads(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_task *task = own;
    const struct fl__wire_at field = {at, "payloads"};
    size_t i;
    size_t j;

    for (i = 0; i < task->n_payloads; i++) {
        for (j = 0; j < i; j++) {
            if (strcmp(task->payloads[i].name, task->payloads[j].name) == 0) {
                return fl__wire_refuse(&field, err, "'%s' is there twice", task->payloads[i].name);
            }
        }
    }
    return FL_OK;
}

static int rule_plan(const struct fl__wire_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_task *task = own;
    const struct fl__wire_at field = {at, "plan"};

    return !task->has_plan || (task->plan.round == task->task.key.round &&
                               task->plan.attempt == task->task.key.attempt)
               ? FL_OK
               : fl__wire_refuse(&field, err, "is for another round or attempt than the task");
}

FL__WIRE_TYPE(component, Component, component)
FL__WIRE_TYPE(limits, Limits, limits)
FL__WIRE_TYPE(training, TrainingOptions, training_options)
FL__WIRE_TABLE(welcome_model, welcome, ModelDescription, model_description, .max = 0)
FL__WIRE_TYPE(welcome, Welcome, welcome)
FL__WIRE_TYPE(refused, Refused, refused)
FL__WIRE_TYPE(payload, PayloadRef, payload_ref)
FL__WIRE_TYPE(plan, Plan, plan)
FL__WIRE_TABLE(task_counted, task, Held, held, .max = 0)
FL__WIRE_TYPE(task, Task, task)
FL__WIRE_TABLE(accepted, verdict, Accepted, accepted, .max = 0)
FL__WIRE_TABLE(rejected, verdict, Rejected, rejected, .max = 0)
FL__WIRE_TABLE(dismissed, verdict, Dismissed, dismissed, .max = 0)
FL__WIRE_TYPE(heartbeat, Heartbeat, heartbeat)
FL__WIRE_TYPE(drain, Drain, drain)
FL__WIRE_TYPE(evaluate, Evaluate, evaluate)
FL__WIRE_OWNER(central, CentralSettings, central_settings, FL_WIRE_MAX_EVENT)

FL__WIRE_TABLE(command, command, ServerCommand, server_command, .max = FL_WIRE_MAX_CONTROL,
               .unset = FL__WIRE_UNSET, .oneof = "command", .own_case = offsetof(S, type),
               .msg_case = offsetof(M, command_case))
FL__WIRE_FUNCTIONS(command, command)
FL__WIRE_DONE(command)
