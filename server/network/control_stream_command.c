/*
 * Commands to clients: encodes those of the coordinator (task, upload mask, verdict, evaluation,
 * drain), and refusals, and queues them on the control streams. Runs on the network loop. Does not
 * decide anything about a round.
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
    const struct fl_wire_plan *plan =
        down->command.type == FL_WIRE_TASK ? &down->command.u.task.plan : &down->command.u.plan;

    if (slot == NULL) {
        fl_serverd_no_memory(frontend->setup.log, "an upload mask");
    }
    slot->grant = (struct fl_session_key){plan->round, plan->attempt};
    free(slot->units);
    slot->units = down->units;
    down->units = NULL;
}

/* The payloads that the client needs for this task, with the size and digest of what is served. */
static size_t command_list_payloads(const struct fl_frontend *frontend,
                                    const struct fl_net_msg *down, struct fl_wire_payload *list)
{
    size_t n = fl_payloads_list(frontend->setup.conf->strategy, frontend->setup.conf->layout,
                                down->personal_model, list);
    size_t i;

    for (i = 0; i < n; i++) {
        const struct fl_payload_rec *b = fl_fetch_payload(
            frontend, list[i].name, down->command.u.task.task.key.round, FL_EVERYBODY);

        if (b != NULL) {
            list[i].bytes = fl_bytes_len(&b->bytes);
            list[i].has_digest = b->has_digest;
            (void)memcpy(list[i].digest, b->digest, sizeof(list[i].digest));
        }
    }
    return n;
}

void fl_control_stream_down(struct fl_frontend *frontend, struct fl_net_msg *down)
{
    struct fl_wire_payload payloads[FL_PAYLOADS_MAX];
    struct fl_wire_command command = down->command;
    struct fl_control_stream *stream =
        down->client < frontend->n_slots ? frontend->slots[down->client].stream : NULL;

    if (stream != NULL) {
        if (command.type == FL_WIRE_TASK) {
            command.u.task.payloads = payloads;
            command.u.task.n_payloads = command_list_payloads(frontend, down, payloads);
        } else if (command.type == FL_WIRE_REJECTED && down->text != NULL) {
            /* The reason of the command; the public text is never longer than the original. */
            (void)fl_frontend_public(frontend, down->text, down->text, strlen(down->text) + 1);
        }
        fl_control_stream_command(stream, &command);
    }
    if (down->units != NULL) {
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
