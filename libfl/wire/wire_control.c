/*
 * The messages on the control stream of a client: ClientEvent up, ServerCommand down. Pure
 * functions, any thread. The rows are in messages.h; here are the checks that are no range. The
 * layout of the model is in wire_welcome.c.
 */
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/row_impl.h"

/* Heartbeat, of both directions. */
#define FL_WIRE_ROWS_heartbeat(X) X(U64, sequence, sequence)
FL_WIRE_STRUCT(heartbeat)
FL__WIRE_TABLE(heartbeat, heartbeat, Heartbeat, heartbeat, .max = 0)

/* None of those in the rows. */
#define TEXT_OF(number)      #number
#define VERSION_TEXT(number) TEXT_OF(number)
#define NONE_SET             "none is set that version " VERSION_TEXT(FL_WIRE_VERSION) " of the wire knows"

/* --- ClientEvent --- */

static int rule_correct(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_evaluation *evaluation = own;
    const struct fl_pb_at field = {at, "correct"};

    return fl_pb_check_range(&field, evaluation->correct, 0, evaluation->samples, err);
}

static int rule_version(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_hello *hello = own;
    const struct fl_pb_at field = {at, "version_max"};

    return fl_pb_check_range(&field, hello->version_max, hello->version_min, UINT32_MAX, err);
}

static int rule_client(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_hello *hello = own;
    const struct fl_pb_at field = {at, "client"};

    return hello->client[0] != '-'
               ? FL_OK
               : fl_pb_refuse(&field, err,
                              "a name that begins with '-' is not taken, for programs take it "
                              "for an option: choose another `name`");
}

static int rule_summary(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_data_summary *summary = own;
    const struct fl_pb_at field = {at, "data"};

    if (summary->len > FL_WIRE_SUMMARY_PIECE || summary->offset > summary->total ||
        summary->len > summary->total - summary->offset)
    {
        return fl_pb_refuse(&field, err,
                            "%zu bytes at %llu of %llu, expected at most %u and not past the "
                            "end",
                            summary->len, (unsigned long long)summary->offset,
                            (unsigned long long)summary->total, FL_WIRE_SUMMARY_PIECE);
    }
    return FL_OK;
}

FL__WIRE_TABLE(hello_held, hello, Held, held, .max = 0)
FL__WIRE_TABLE(report_kept, report, Held, held, .max = 0)
FL_WIRE_EVENTS(FL__WIRE_DEFINE)
FL__WIRE_TABLE(event, event, ClientEvent, client_event, .max = FL_WIRE_MAX_EVENT, .unset = NONE_SET,
               .oneof = "event", .own_case = offsetof(S, type), .msg_case = offsetof(M, event_case))
FL__WIRE_DEFINE_OWNER(event)

/* --- ServerCommand --- */

static int rule_message_bytes(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_limits *limits = own;
    const struct fl_pb_at field = {at, "message_bytes"};

    return fl_pb_check_range(&field, limits->message_bytes, limits->chunk_bytes, UINT32_MAX, err);
}

static int rule_training(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_training *training = own;

    if (training->client_momentum < 0 || training->client_momentum >= 1) {
        return fl_pb_refuse(at, err, "client_momentum is %g, expected at least 0 and below 1",
                            training->client_momentum);
    }
    return training->epochs != 0 || training->steps != 0
               ? FL_OK
               : fl_pb_refuse(at, err, "neither epochs nor steps are set");
}

static int rule_payloads(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_task *task = own;
    const struct fl_pb_at field = {at, "payloads"};
    size_t i;
    size_t j;

    for (i = 0; i < task->n_payloads; i++) {
        for (j = 0; j < i; j++) {
            if (strcmp(task->payloads[i].name, task->payloads[j].name) == 0) {
                return fl_pb_refuse(&field, err, "'%s' is there twice", task->payloads[i].name);
            }
        }
    }
    return FL_OK;
}

static int rule_plan(const struct fl_pb_at *at, const void *own, struct fl_err *err)
{
    const struct fl_wire_task *task = own;
    const struct fl_pb_at field = {at, "plan"};

    return !task->has_plan || (task->plan.round == task->task.key.round &&
                               task->plan.attempt == task->task.key.attempt)
               ? FL_OK
               : fl_pb_refuse(&field, err, "is for another round or attempt than the task");
}

FL__WIRE_TABLE(welcome_model, welcome, ModelDescription, model_description, .max = 0)
FL_WIRE_COMMANDS(FL__WIRE_DEFINE)
FL__WIRE_TABLE(task_counted, task, Held, held, .max = 0)
FL__WIRE_TABLE(task, task, Task, task, .max = 0)
FL__WIRE_TABLE(accepted, verdict, Accepted, accepted, .max = 0)
FL__WIRE_TABLE(rejected, verdict, Rejected, rejected, .max = 0)
FL__WIRE_TABLE(dismissed, verdict, Dismissed, dismissed, .max = 0)
FL__WIRE_TABLE(command, command, ServerCommand, server_command, .max = FL_WIRE_MAX_CONTROL,
               .unset = NONE_SET, .oneof = "command", .own_case = offsetof(S, type),
               .msg_case = offsetof(M, command_case))
FL__WIRE_DEFINE_OWNER(command)
