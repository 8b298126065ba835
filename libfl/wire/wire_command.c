/*
 * ServerCommand: the messages of the server to a client on its control stream. Pure functions, any
 * thread. Welcome is in wire_welcome.c.
 */
#include <stdlib.h>
#include <string.h>

#include "fl/v1/federation.pb-c.h"
#include "libfl/wire/wire_impl.h"

/* --- encoding --- */

static int pack_command(Fl__V1__ServerCommand__CommandCase command_case, void *part,
                        struct fl_buf *out)
{
    Fl__V1__ServerCommand msg;

    fl__v1__server_command__init(&msg);
    msg.command_case = command_case;
    msg.welcome = part; /* a union of pointers */
    return fl__wire_pack(&msg.base, out);
}

static int encode_welcome(struct fl__wire_arena *arena, const struct fl_wire_command *command,
                          struct fl_buf *out)
{
    ProtobufCMessage *msg = NULL;
    int rv = fl__wire_welcome_fill(arena, &command->u.welcome, &msg);

    return rv != FL_OK ? rv : pack_command(FL__V1__SERVER_COMMAND__COMMAND_WELCOME, msg, out);
}

static int encode_refused(struct fl__wire_arena *arena, const struct fl_wire_command *command,
                          struct fl_buf *out)
{
    Fl__V1__Refused msg;

    fl__v1__refused__init(&msg);
    msg.reason = (Fl__V1__Refused__Reason)command->u.refused.reason;
    msg.retry_after_ms = command->u.refused.retry_after_ms;
    msg.message = fl__wire_clean(arena, command->u.refused.message);
    return msg.message == NULL ? FL_ENOMEM
                               : pack_command(FL__V1__SERVER_COMMAND__COMMAND_REFUSED, &msg, out);
}

/* One bit per unit, lowest bit first. */
static int fill_plan(struct fl__wire_arena *arena, const struct fl_wire_plan *plan,
                     Fl__V1__Plan *msg)
{
    size_t len = plan->units != NULL ? (plan->n_units + 7) / 8 : 0;
    uint8_t *mask = fl__arena_array(arena, len, 1);
    size_t i;

    if (mask == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < plan->n_units && plan->units != NULL; i++) {
        mask[i / 8] |= (uint8_t)((plan->units[i] != 0) << (i % 8));
    }
    msg->round = plan->round;
    msg->attempt = plan->attempt;
    msg->units = fl__wire_bytes(mask, len);
    return FL_OK;
}

static int encode_plan(struct fl__wire_arena *arena, const struct fl_wire_plan *plan,
                       struct fl_buf *out)
{
    Fl__V1__Plan msg;
    int rv;

    fl__v1__plan__init(&msg);
    rv = fill_plan(arena, plan, &msg);
    return rv != FL_OK ? rv : pack_command(FL__V1__SERVER_COMMAND__COMMAND_PLAN, &msg, out);
}

static void fill_payload(const struct fl_wire_payload *payload, Fl__V1__PayloadRef *msg)
{
    fl__v1__payload_ref__init(msg);
    msg->name = payload->name;
    msg->bytes = payload->bytes;
    if (payload->has_digest) {
        msg->sha256 = fl__wire_bytes(payload->digest, FL_DIGEST_SIZE);
    }
}

static int encode_task(struct fl__wire_arena *arena, const struct fl_wire_task *task,
                       struct fl_buf *out)
{
    Fl__V1__Task msg;
    Fl__V1__Plan plan;
    Fl__V1__PayloadRef *payloads = fl__arena_array(arena, task->n_payloads, sizeof(*payloads));
    Fl__V1__Held counted;
    size_t i;

    fl__v1__task__init(&msg);
    fl__v1__held__init(&counted);
    fl__v1__plan__init(&plan);
    msg.payloads = fl__arena_array(arena, task->n_payloads, sizeof(*msg.payloads));
    if (payloads == NULL || msg.payloads == NULL ||
        (task->has_plan && fill_plan(arena, &task->plan, &plan) != FL_OK))
    {
        return FL_ENOMEM;
    }
    msg.n_payloads = task->n_payloads;
    for (i = 0; i < task->n_payloads; i++) {
        fill_payload(&task->payloads[i], &payloads[i]);
        msg.payloads[i] = &payloads[i];
    }
    msg.round = task->round;
    msg.attempt = task->attempt;
    msg.learning_rate = task->learning_rate;
    msg.seed = task->seed;
    msg.order_seed = task->order_seed;
    msg.plan = task->has_plan ? &plan : NULL;
    msg.deadline_ms = task->deadline_ms;
    msg.selected = task->selected;
    msg.population = task->population;
    msg.epoch = task->epoch;
    if (task->counted_round != 0) {
        counted.round = task->counted_round;
        counted.attempt = task->counted_attempt;
        msg.counted = &counted;
    }
    return pack_command(FL__V1__SERVER_COMMAND__COMMAND_TASK, &msg, out);
}

static int encode_verdict(struct fl__wire_arena *arena, const struct fl_wire_command *command,
                          struct fl_buf *out)
{
    Fl__V1__Accepted accepted;
    Fl__V1__Rejected rejected;
    Fl__V1__Dismissed dismissed;

    fl__v1__accepted__init(&accepted);
    fl__v1__rejected__init(&rejected);
    fl__v1__dismissed__init(&dismissed);
    if (command->type == FL_WIRE_ACCEPTED) {
        accepted.round = command->u.verdict.round;
        accepted.attempt = command->u.verdict.attempt;
        return pack_command(FL__V1__SERVER_COMMAND__COMMAND_ACCEPTED, &accepted, out);
    }
    if (command->type == FL_WIRE_DISMISSED) {
        dismissed.round = command->u.verdict.round;
        dismissed.attempt = command->u.verdict.attempt;
        return pack_command(FL__V1__SERVER_COMMAND__COMMAND_DISMISSED, &dismissed, out);
    }
    rejected.round = command->u.verdict.round;
    rejected.attempt = command->u.verdict.attempt;
    rejected.reason = fl__wire_clean(arena, command->u.verdict.reason);
    return rejected.reason == NULL
               ? FL_ENOMEM
               : pack_command(FL__V1__SERVER_COMMAND__COMMAND_REJECTED, &rejected, out);
}

static int encode_drain(struct fl__wire_arena *arena, const struct fl_wire_command *command,
                        struct fl_buf *out)
{
    Fl__V1__Drain msg;

    fl__v1__drain__init(&msg);
    msg.reconnect_after_ms = command->u.drain.reconnect_after_ms;
    msg.reason = fl__wire_clean(arena, command->u.drain.reason);
    return msg.reason == NULL ? FL_ENOMEM
                              : pack_command(FL__V1__SERVER_COMMAND__COMMAND_DRAIN, &msg, out);
}

static int encode_evaluate(const struct fl_wire_command *command, struct fl_buf *out)
{
    Fl__V1__Evaluate msg;
    Fl__V1__PayloadRef payload;

    fl__v1__evaluate__init(&msg);
    fill_payload(&command->u.evaluate.payload, &payload);
    msg.round = command->u.evaluate.round;
    msg.payload = &payload;
    msg.deadline_ms = command->u.evaluate.deadline_ms;
    msg.learning_rate = command->u.evaluate.learning_rate;
    return pack_command(FL__V1__SERVER_COMMAND__COMMAND_EVALUATE, &msg, out);
}

static int command_encode(struct fl__wire_arena *arena, const struct fl_wire_command *command,
                          struct fl_buf *out)
{
    Fl__V1__Heartbeat heartbeat;

    fl__v1__heartbeat__init(&heartbeat);
    switch (command->type) {
    case FL_WIRE_WELCOME:
        return encode_welcome(arena, command, out);
    case FL_WIRE_REFUSED:
        return encode_refused(arena, command, out);
    case FL_WIRE_TASK:
        return encode_task(arena, &command->u.task, out);
    case FL_WIRE_PLAN:
        return encode_plan(arena, &command->u.plan, out);
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_REJECTED:
    case FL_WIRE_DISMISSED:
        return encode_verdict(arena, command, out);
    case FL_WIRE_HEARTBEAT_COMMAND:
        heartbeat.sequence = command->u.heartbeat;
        return pack_command(FL__V1__SERVER_COMMAND__COMMAND_HEARTBEAT, &heartbeat, out);
    case FL_WIRE_DRAIN:
        return encode_drain(arena, command, out);
    case FL_WIRE_EVALUATE:
        return encode_evaluate(command, out);
    }
    return FL_EINVAL;
}

int fl_wire_command_encode(const struct fl_wire_command *command, struct fl_buf *out)
{
    struct fl__wire_arena arena = {NULL};
    int rv = command_encode(&arena, command, out);

    fl__arena_done(&arena);
    return rv;
}

/* --- decoding --- */

static int command_take_round(const char *field, uint64_t round, uint64_t *ret, struct fl_err *err)
{
    *ret = round;
    return fl__wire_check_range(field, round, 1, UINT64_MAX, err);
}

static int decode_refused(const Fl__V1__Refused *msg, struct fl_wire_command *ret,
                          struct fl_err *err)
{
    int rv;

    /* protobuf-c accepts any number in an enum. */
    rv = fl__wire_check_range("ServerCommand.refused.reason", (uint32_t)msg->reason,
                              FL_WIRE_REASON_UNSPECIFIED, FL_WIRE_REASON_NO_DATA, err);
    if (rv != FL_OK) {
        return rv;
    }
    ret->u.refused.reason = (enum fl_wire_reason)msg->reason;
    ret->u.refused.retry_after_ms = msg->retry_after_ms;
    return fl__wire_take_text("ServerCommand.refused.message", msg->message,
                              &ret->u.refused.message, err);
}

struct plan_fields {
    const char *round, *units;
};

static int take_plan(const struct plan_fields *field, const Fl__V1__Plan *msg,
                     struct fl_wire_plan *ret, struct fl_err *err)
{
    size_t i;
    int rv = command_take_round(field->round, msg->round, &ret->round, err);

    ret->attempt = msg->attempt;
    if (rv != FL_OK || msg->units.len == 0) {
        return rv;
    }
    rv = fl__wire_check_count(field->units, msg->units.len, FL_LAYOUT_MAX_UNITS / 8, err);
    if (rv != FL_OK) {
        return rv;
    }
    ret->n_units = msg->units.len * 8;
    ret->units = malloc(ret->n_units);
    if (ret->units == NULL) {
        return FL_ENOMEM;
    }
    for (i = 0; i < ret->n_units; i++) {
        ret->units[i] = (uint8_t)(msg->units.data[i / 8] >> (i % 8) & 1);
    }
    return FL_OK;
}

struct payload_fields {
    const char *name, *sha256;
};

static int take_payload(const struct payload_fields *field, const Fl__V1__PayloadRef *msg,
                        struct fl_wire_payload *ret, struct fl_err *err)
{
    int rv = fl__wire_take_name(field->name, msg->name, &ret->name, err);

    ret->bytes = msg->bytes;
    return rv != FL_OK ? rv
                       : fl__wire_copy_digest(field->sha256, &msg->sha256, &ret->has_digest,
                                              ret->digest, err);
}

static int take_payloads(const Fl__V1__Task *msg, struct fl_wire_task *ret, struct fl_err *err)
{
    static const struct payload_fields fields = {"ServerCommand.task.payloads.name",
                                                 "ServerCommand.task.payloads.sha256"};
    size_t i;
    size_t j;
    int rv = fl__wire_check_range("ServerCommand.task.payloads", msg->n_payloads, 1,
                                  FL_WIRE_MAX_PAYLOADS, err);

    if (rv != FL_OK) {
        return rv;
    }
    ret->payloads = calloc(msg->n_payloads, sizeof(*ret->payloads));
    if (ret->payloads == NULL) {
        return FL_ENOMEM;
    }
    ret->n_payloads = msg->n_payloads;
    for (i = 0; i < msg->n_payloads; i++) {
        rv = take_payload(&fields, msg->payloads[i], &ret->payloads[i], err);
        if (rv != FL_OK) {
            return rv;
        }
        for (j = 0; j < i; j++) {
            if (strcmp(ret->payloads[i].name, ret->payloads[j].name) == 0) {
                return fl_err_set(err, FL_EPROTO,
                                  "ServerCommand.task.payloads: '%s' is there twice",
                                  ret->payloads[i].name);
            }
        }
    }
    return FL_OK;
}

/*
 * The aggregated round may be newer than the task: a server that lost its newest rounds repeats
 * them.
 */
static int take_counted(const Fl__V1__Held *msg, struct fl_wire_task *ret, struct fl_err *err)
{
    if (msg == NULL) {
        return FL_OK;
    }
    ret->counted_attempt = msg->attempt;
    return command_take_round("ServerCommand.task.counted.round", msg->round, &ret->counted_round,
                              err);
}

static int decode_task(const Fl__V1__Task *msg, struct fl_wire_task *ret, struct fl_err *err)
{
    static const struct plan_fields plan = {"ServerCommand.task.plan.round",
                                            "ServerCommand.task.plan.units"};
    int rv;

    ret->attempt = msg->attempt;
    ret->learning_rate = msg->learning_rate;
    ret->seed = msg->seed;
    ret->order_seed = msg->order_seed;
    ret->deadline_ms = msg->deadline_ms;
    ret->selected = msg->selected;
    ret->population = msg->population;
    ret->epoch = msg->epoch;
    if ((rv = command_take_round("ServerCommand.task.round", msg->round, &ret->round, err)) !=
            FL_OK ||
        (rv = take_counted(msg->counted, ret, err)) != FL_OK ||
        (rv = take_payloads(msg, ret, err)) != FL_OK ||
        (rv = fl__wire_check_finite("ServerCommand.task.learning_rate", msg->learning_rate, err)) !=
            FL_OK)
    {
        return rv;
    }
    ret->has_plan = msg->plan != NULL;
    if (!ret->has_plan) {
        return FL_OK;
    }
    rv = take_plan(&plan, msg->plan, &ret->plan, err);
    if (rv == FL_OK && (ret->plan.round != ret->round || ret->plan.attempt != ret->attempt)) {
        rv = fl_err_set(err, FL_EPROTO,
                        "ServerCommand.task.plan: is for another round or attempt than the task");
    }
    return rv;
}

static int decode_evaluate(const Fl__V1__Evaluate *msg, struct fl_wire_command *ret,
                           struct fl_err *err)
{
    static const struct payload_fields fields = {"ServerCommand.evaluate.payload.name",
                                                 "ServerCommand.evaluate.payload.sha256"};
    int rv = fl__wire_check_set("ServerCommand.evaluate.payload", msg->payload, err);

    ret->u.evaluate.round = msg->round;
    ret->u.evaluate.deadline_ms = msg->deadline_ms;
    ret->u.evaluate.learning_rate = msg->learning_rate;
    if (rv == FL_OK) {
        rv = fl__wire_check_finite("ServerCommand.evaluate.learning_rate", msg->learning_rate, err);
    }
    return rv != FL_OK ? rv : take_payload(&fields, msg->payload, &ret->u.evaluate.payload, err);
}

static int decode_accepted(const Fl__V1__Accepted *msg, struct fl_wire_command *ret,
                           struct fl_err *err)
{
    ret->u.verdict.attempt = msg->attempt;
    return command_take_round("ServerCommand.accepted.round", msg->round, &ret->u.verdict.round,
                              err);
}

static int decode_dismissed(const Fl__V1__Dismissed *msg, struct fl_wire_command *ret,
                            struct fl_err *err)
{
    ret->u.verdict.attempt = msg->attempt;
    return command_take_round("ServerCommand.dismissed.round", msg->round, &ret->u.verdict.round,
                              err);
}

static int decode_rejected(const Fl__V1__Rejected *msg, struct fl_wire_command *ret,
                           struct fl_err *err)
{
    int rv =
        command_take_round("ServerCommand.rejected.round", msg->round, &ret->u.verdict.round, err);

    ret->u.verdict.attempt = msg->attempt;
    return rv != FL_OK ? rv
                       : fl__wire_take_text("ServerCommand.rejected.reason", msg->reason,
                                            &ret->u.verdict.reason, err);
}

static int decode_command(const Fl__V1__ServerCommand *msg, struct fl_wire_command *ret,
                          struct fl_err *err)
{
    static const struct plan_fields plan = {"ServerCommand.plan.round", "ServerCommand.plan.units"};

    /* The field numbers of the oneof equal the values of enum fl_wire_command_type. */
    ret->type = (enum fl_wire_command_type)msg->command_case;
    switch (msg->command_case) {
    case FL__V1__SERVER_COMMAND__COMMAND_WELCOME:
        return fl__wire_welcome_take(&msg->welcome->base, &ret->u.welcome, err);
    case FL__V1__SERVER_COMMAND__COMMAND_REFUSED:
        return decode_refused(msg->refused, ret, err);
    case FL__V1__SERVER_COMMAND__COMMAND_TASK:
        return decode_task(msg->task, &ret->u.task, err);
    case FL__V1__SERVER_COMMAND__COMMAND_PLAN:
        return take_plan(&plan, msg->plan, &ret->u.plan, err);
    case FL__V1__SERVER_COMMAND__COMMAND_ACCEPTED:
        return decode_accepted(msg->accepted, ret, err);
    case FL__V1__SERVER_COMMAND__COMMAND_REJECTED:
        return decode_rejected(msg->rejected, ret, err);
    case FL__V1__SERVER_COMMAND__COMMAND_HEARTBEAT:
        ret->u.heartbeat = msg->heartbeat->sequence;
        return FL_OK;
    case FL__V1__SERVER_COMMAND__COMMAND_DRAIN:
        ret->u.drain.reconnect_after_ms = msg->drain->reconnect_after_ms;
        return fl__wire_take_text("ServerCommand.drain.reason", msg->drain->reason,
                                  &ret->u.drain.reason, err);
    case FL__V1__SERVER_COMMAND__COMMAND_EVALUATE:
        return decode_evaluate(msg->evaluate, ret, err);
    case FL__V1__SERVER_COMMAND__COMMAND_DISMISSED:
        return decode_dismissed(msg->dismissed, ret, err);
    default: /* not set, or the hidden value that protobuf-c adds to its enums */
        return fl_err_set(err, FL_EPROTO,
                          "ServerCommand.command: none is set that version %d of the wire knows",
                          FL_WIRE_VERSION);
    }
}

int fl_wire_command_decode(const void *data, size_t len, struct fl_wire_command *ret,
                           struct fl_err *err)
{
    struct fl__unpacked u;
    struct fl_wire_command command = {0};
    int rv = fl__wire_unpack(&fl__v1__server_command__descriptor, data, len, FL_WIRE_MAX_CONTROL,
                             &u, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = decode_command((const Fl__V1__ServerCommand *)u.msg, &command, err);
    fl__wire_unpacked_done(&u);
    if (rv != FL_OK) {
        fl_wire_command_done(&command);
        return rv;
    }
    *ret = command;
    return FL_OK;
}

void fl_wire_command_done(struct fl_wire_command *command)
{
    size_t i;

    switch (command->type) {
    case FL_WIRE_WELCOME:
        fl__wire_welcome_done(&command->u.welcome);
        break;
    case FL_WIRE_REFUSED:
        free(command->u.refused.message);
        break;
    case FL_WIRE_TASK:
        for (i = 0; i < command->u.task.n_payloads; i++) {
            free(command->u.task.payloads[i].name);
        }
        free(command->u.task.payloads);
        free(command->u.task.plan.units);
        break;
    case FL_WIRE_PLAN:
        free(command->u.plan.units);
        break;
    case FL_WIRE_REJECTED:
        free(command->u.verdict.reason);
        break;
    case FL_WIRE_DRAIN:
        free(command->u.drain.reason);
        break;
    case FL_WIRE_EVALUATE:
        free(command->u.evaluate.payload.name);
        break;
    case FL_WIRE_ACCEPTED:
    case FL_WIRE_HEARTBEAT_COMMAND:
    case FL_WIRE_DISMISSED:
        break;
    }
    *command = (struct fl_wire_command){0};
}
