/*
 * Commands to clients: encodes the messages of the coordinator (task, upload mask, verdict,
 * evaluation, drain, refusal) and queues them on the control streams. Runs on the network loop.
 * Does not decide anything about a round.
 */

#include <stdlib.h>
#include <string.h>

#include "server/network/frontend_impl.h"

_Static_assert(FL_PAYLOADS_MAX <= FL_WIRE_MAX_PAYLOADS, "a task lists all of them");

const char *fl_control_stream_who(const struct fl_control_stream *stream)
{
    return stream->joined ? stream->name : fl_call_peer(stream->call);
}

struct fl_control_stream *fl_control_stream_find(struct fl_frontend *frontend, uint64_t id)
{
    struct fl_control_stream *a;

    FL_LIST_FOREACH (a, &frontend->streams, struct fl_control_stream, link) {
        if (a->id == id) {
            return a;
        }
    }
    return NULL;
}

void fl_control_stream_command(struct fl_control_stream *stream,
                               const struct fl_wire_command *command)
{
    struct fl_buf buf;
    int rv;

    if (stream->call == NULL) {
        return;
    }
    fl_buf_init(&buf, FL_WIRE_MAX_CONTROL + 65536);
    rv = fl_wire_command_encode(command, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_frontend_send(stream->call, &buf);
done:
    fl_buf_done(&buf);
    if (rv != FL_OK && rv != FL_ECLOSED) {
        /*
         * The client does not read its control stream, and a session without commands is useless.
         */
        fl_log_peer(stream->frontend->setup.log, FL_LOG_WARNING, "session",
                    fl_control_stream_who(stream),
                    "client '%s' at %s does not read its commands (%s), ending its session",
                    stream->name, fl_call_peer(stream->call), fl_strerror(rv));
        fl_call_cancel(stream->call);
    }
}

void fl_control_stream_refuse(struct fl_control_stream *stream, enum fl_wire_reason reason,
                              uint32_t retry_ms, const char *message)
{
    struct fl_wire_command command = {.type = FL_WIRE_REFUSED};

    command.u.refused.reason = reason;
    command.u.refused.message = fl_wire_lend(message);
    command.u.refused.retry_after_ms = retry_ms;
    fl_log_peer(stream->frontend->setup.log,
                reason == FL_WIRE_REASON_DUPLICATE ? FL_LOG_INFO : FL_LOG_WARNING, "session",
                fl_call_peer(stream->call), "client '%s' at %s refused: %s", stream->name,
                fl_call_peer(stream->call), message);
    fl_control_stream_command(stream, &command);
    fl_call_finish(stream->call,
                   reason == FL_WIRE_REASON_FULL        ? FL_GRPC_RESOURCE_EXHAUSTED
                   : reason == FL_WIRE_REASON_REVOKED   ? FL_GRPC_PERMISSION_DENIED
                   : reason == FL_WIRE_REASON_DUPLICATE ? FL_GRPC_ABORTED
                                                        : FL_GRPC_INVALID_ARGUMENT,
                   message);
}

/* Takes the units of `down`: the upload mask, which limits what the client may push. */
static void command_set_upload_mask(struct fl_frontend *frontend, struct fl_net_msg *down)
{
    struct fl_frontend_client *slot = fl_frontend_client_at(frontend, down->client);

    if (slot == NULL) {
        fl_serverd_no_memory(frontend->setup.log, "an upload mask");
    }
    slot->grant = (struct fl_session_key){down->round, down->attempt};
    free(slot->units);
    slot->units = down->units;
    down->units = NULL;
}

/* All model-shaped payloads have the same length. */
static struct fl_wire_payload model_ref(const struct fl_frontend *frontend, const char *name)
{
    return (struct fl_wire_payload){.name = fl_wire_lend(name),
                                    .bytes = fl_layout_count(frontend->setup.conf->layout) *
                                             sizeof(float)};
}

/* The payload as it is served; 0 bytes: it is not served. */
static struct fl_wire_payload payload_ref(const struct fl_frontend *frontend, const char *name,
                                          uint64_t round)
{
    const struct fl_payload_rec *b = fl_fetch_payload(frontend, name, round, FL_EVERYBODY);
    struct fl_wire_payload ref = {.name = fl_wire_lend(name)};

    if (b != NULL) {
        ref.bytes = fl_bytes_len(&b->bytes);
        ref.has_digest = b->has_digest;
        (void)memcpy(ref.digest, b->digest, sizeof(ref.digest));
    }
    return ref;
}

/* The payloads that the client needs for this task; all model-shaped ones have the same length. */
static size_t command_list_payloads(const struct fl_frontend *frontend,
                                    const struct fl_net_msg *down, struct fl_wire_payload *list)
{
    struct fl_payload_name names[FL_PAYLOADS_MAX];
    size_t n_names = fl_payloads_of(frontend->setup.conf->strategy, names);
    size_t n = 0;
    size_t i;

    for (i = 0; i < n_names; i++) {
        if (names[i].kind == FL_PAYLOAD_IS_MODEL ||
            (names[i].kind == FL_PAYLOAD_IS_PERSONAL_MODEL && down->personal_model))
        {
            list[n++] = model_ref(frontend, names[i].name);
        } else if (names[i].kind != FL_PAYLOAD_IS_PERSONAL_MODEL) {
            list[n++] = payload_ref(frontend, names[i].name, down->round);
        }
    }
    return n;
}

static void make_task(const struct fl_frontend *frontend, const struct fl_net_msg *down,
                      struct fl_wire_payload *payloads, const struct fl_wire_plan *plan,
                      struct fl_wire_command *c)
{
    c->type = FL_WIRE_TASK;
    c->u.task = (struct fl_wire_task){.task = down->task,
                                      .payloads = payloads,
                                      .n_payloads = command_list_payloads(frontend, down, payloads),
                                      .has_plan = down->units != NULL,
                                      .plan = *plan};
}

static void make_command(const struct fl_frontend *frontend, const struct fl_net_msg *down,
                         struct fl_wire_payload *payloads, struct fl_wire_command *c)
{
    struct fl_wire_plan plan = {.round = down->round,
                                .attempt = down->attempt,
                                .units = down->units,
                                .n_units = down->units != NULL ? frontend->n_units : 0};

    switch (down->type) {
    case FL_NET_MSG_TASK:
        make_task(frontend, down, payloads, &plan, c);
        break;
    case FL_NET_MSG_PLAN:
        c->type = FL_WIRE_PLAN;
        c->u.plan = plan;
        break;
    case FL_NET_MSG_EVALUATE:
        c->type = FL_WIRE_EVALUATE;
        c->u.evaluate.payload = model_ref(frontend, FL_PAYLOAD_CANDIDATE);
        c->u.evaluate.round = down->round;
        c->u.evaluate.deadline_ms = down->task.deadline_ms;
        c->u.evaluate.learning_rate = down->task.learning_rate;
        break;
    default:
        c->type = down->type == FL_NET_MSG_ACCEPTED   ? FL_WIRE_ACCEPTED
                  : down->type == FL_NET_MSG_REJECTED ? FL_WIRE_REJECTED
                                                      : FL_WIRE_DISMISSED;
        c->u.verdict.round = down->round;
        c->u.verdict.attempt = down->attempt;
        if (down->text != NULL) { /* The public text is never longer than the original. */
            (void)fl_frontend_public(frontend, down->text, down->text, strlen(down->text) + 1);
        }
        c->u.verdict.reason = down->text;
        break;
    }
}

void fl_control_stream_down(struct fl_frontend *frontend, struct fl_net_msg *down)
{
    struct fl_wire_payload payloads[FL_PAYLOADS_MAX];
    struct fl_wire_command command = {0};
    struct fl_control_stream *stream;

    stream = down->client < frontend->n_slots ? frontend->slots[down->client].stream : NULL;
    if (stream != NULL) {
        make_command(frontend, down, payloads, &command);
        fl_control_stream_command(stream, &command);
    }
    if (down->units != NULL && (down->type == FL_NET_MSG_TASK || down->type == FL_NET_MSG_PLAN)) {
        command_set_upload_mask(frontend, down);
    }
}

/*
 * With when_finished: stay, the server keeps its sessions after the last round, which may be
 * extended.
 */
static bool keeps_sessions(const struct fl_frontend *frontend, uint64_t reconnect_ms)
{
    return reconnect_ms == 0 && frontend->setup.conf->main->when_finished == FL_FINISHED_STAY;
}

void fl_control_stream_drain(struct fl_frontend *frontend, uint32_t client, const char *reason,
                             uint64_t reconnect_ms)
{
    struct fl_wire_command command = {.type = FL_WIRE_DRAIN};
    struct fl_control_stream *a;

    command.u.drain.reason = fl_wire_lend(reason);
    command.u.drain.reconnect_after_ms = reconnect_ms;
    FL_LIST_FOREACH (a, &frontend->streams, struct fl_control_stream, link) {
        if (a->call == NULL || !a->joined || (client != FL_EVERYBODY && a->client != client)) {
            continue;
        }
        fl_control_stream_command(a, &command);
        if (!keeps_sessions(frontend, reconnect_ms)) {
            fl_call_finish(a->call, reconnect_ms == 0 ? FL_GRPC_OK : FL_GRPC_UNAVAILABLE, reason);
        }
    }
}
