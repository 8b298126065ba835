/*
 * Attend calls: the control stream of a session. Runs on the network loop; client commands are in
 * control_stream_command.c, data summaries in control_stream_summary.c.
 *
 * A successful session: the call begins; Hello arrives and is checked; the coordinator assigns the
 * client number (FL_NET_MSG_JOINED); an older session of the same client, if any, is ended; Welcome
 * is sent; commands and events follow until either side ends the call. Failures: no Hello, or a bad
 * one: the call ends with a status and, where the client can act on it, a Refused message before;
 * no message for three heartbeats; the peer disconnects at any time, also while the coordinator is
 * working on its Hello.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/model/digest.h"
#include "server/network/frontend_impl.h"
#include "server/work/opening.h"
#include "server/work/welcome.h"

#define HEARTBEATS_OF_SILENCE 3
/* A session whose end follows so many of silence timed out, whichever of both sides ended it. */
#define HEARTBEATS_UNTIL_SILENT 2
#define ALIVE_REPORT_MS         1000

static bool hello_fits(struct fl_control_stream *stream, const struct fl_wire_hello *hello)
{
    const struct fl_layout *layout = stream->frontend->setup.conf->layout;
    char text[256];

    if (hello->version_min > FL_WIRE_VERSION || hello->version_max < FL_WIRE_VERSION) {
        (void)snprintf(text, sizeof(text), "the server speaks wire version %d, the client %u to %u",
                       FL_WIRE_VERSION, hello->version_min, hello->version_max);
        fl_control_stream_refuse(stream, FL_WIRE_REASON_VERSION, 0, text);
        return false;
    }
    if (hello->has_digest && memcmp(hello->digest, fl_layout_digest(layout), FL_DIGEST_SIZE) != 0) {
        char want[2 * FL_DIGEST_SIZE + 1];
        char have[2 * FL_DIGEST_SIZE + 1];

        (void)snprintf(text, sizeof(text),
                       "the client's model has another layout (%.16s) than the federation's "
                       "(%.16s): %zu layers, %zu parameters expected",
                       fl_hex(have, hello->digest, FL_DIGEST_SIZE),
                       fl_hex(want, fl_layout_digest(layout), FL_DIGEST_SIZE),
                       fl_layout_units(layout), fl_layout_count(layout));
        fl_control_stream_refuse(stream, FL_WIRE_REASON_MODEL, 0, text);
        return false;
    }
    return true;
}

/* The name in Hello must be that of the certificate, if the connection has one. */
static bool name_fits(struct fl_control_stream *stream)
{
    const struct fl_identity *identity = fl_call_identity(stream->call);
    char text[512];

    stream->verified = identity != NULL && identity->kind == FL_IDENTITY_CERTIFICATE;
    if (!stream->verified || strcmp(identity->name, stream->name) == 0) {
        return true;
    }
    (void)snprintf(text, sizeof(text),
                   "its certificate is for '%s', but its Hello names '%s': set `name` in the "
                   "client's configuration to the name of its certificate, or leave it out",
                   identity->name, stream->name);
    fl_control_stream_refuse(stream, FL_WIRE_REASON_NAME, 0, text);
    return false;
}

static size_t *greeted_of(struct fl_control_stream *stream)
{
    return stream->verified ? &stream->frontend->n_verified : &stream->frontend->n_plain;
}

static void on_hello(struct fl_control_stream *stream, struct fl_wire_event *event)
{
    struct fl_coord_msg *up;

    /* Decoding has checked the name and its length. */
    FL_REQUIRE(fl_str_copy(stream->name, sizeof(stream->name), event->u.hello.client) == FL_OK);
    if (!name_fits(stream) || !hello_fits(stream, &event->u.hello)) {
        return;
    }
    up = fl_coord_msg_new(FL_COORD_MSG_JOIN);
    if (up == NULL) {
        fl_call_finish(stream->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    stream->greeted = true;
    *greeted_of(stream) += 1;
    fl_call_set_patient(stream->call, true); /* Heartbeats detect a dead peer. */
    up->session = stream->id;
    up->event = *event;
    *event = (struct fl_wire_event){0};
    if (stream->frontend->setup.auth == NULL) { /* Without TLS no name has a certificate. */
        fl_control_stream_ask(stream, up);
    } else if (stream->verified) {
        fl_control_stream_shown(stream, fl_call_identity(stream->call));
        fl_control_stream_ask(stream, up);
    } else {
        fl_control_stream_ask_plain(stream, up);
    }
}

/* Report the client as alive. The coordinator needs the time only to about a heartbeat. */
static void control_report_heard(struct fl_control_stream *stream)
{
    struct fl_push_progress progress;
    struct fl_coord_msg *up;

    if (stream->heard_ms < stream->reported_ms + ALIVE_REPORT_MS) {
        return;
    }
    up = fl_coord_msg_new(FL_COORD_MSG_ALIVE);
    if (up != NULL) { /* Without memory the next message reports it. */
        stream->reported_ms = stream->heard_ms;
        up->client = stream->client;
        if (fl_push_progress(stream->frontend->slots[stream->client].push, &progress)) {
            up->type = FL_COORD_MSG_PROGRESS;
            up->round = progress.key.round;
            up->attempt = progress.key.attempt;
            up->bytes = progress.bytes;
            up->held = progress.held;
        }
        fl_frontend_up(stream->frontend, up);
    }
}

static void control_heartbeat(struct fl_control_stream *stream)
{
    struct fl_wire_command command = {.type = FL_WIRE_HEARTBEAT_COMMAND};

    control_report_heard(stream);
    command.u.heartbeat = ++stream->heartbeat;
    fl_control_stream_command(stream, &command);
}

/* The inbox has counted it as posted. */
static void control_post_event(struct fl_control_stream *stream, struct fl_wire_event *event)
{
    struct fl_frontend *frontend = stream->frontend;
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_EVENT);

    if (up == NULL) { /* The client reconnects and sends it again. */
        fl_call_finish(stream->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    up->session = stream->id;
    up->client = stream->client;
    up->event = *event;
    *event = (struct fl_wire_event){0};
    frontend->n_events++;
    frontend->most_events =
        frontend->n_events > frontend->most_events ? frontend->n_events : frontend->most_events;
    fl_frontend_up(frontend, up);
}

/* Returns whether the message was consumed; a queued message keeps its credit. */
static bool control_forward_event(struct fl_control_stream *stream, struct fl_wire_event *event,
                                  const uint8_t *data, size_t len)
{
    bool now = false;
    int rv = fl_inbox_put(&stream->inbox, data, len, &now);

    if (rv != FL_OK) {
        fl_call_finish(stream->call, FL_GRPC_RESOURCE_EXHAUSTED,
                       "the client sends more events than the server requested");
        return true;
    }
    if (now) {
        control_post_event(stream, event);
    }
    return now;
}

/* As fl_call_handler.on_message. */
static bool control_on_event(struct fl_control_stream *stream, struct fl_wire_event *event,
                             const uint8_t *data, size_t len)
{
    if (event->type == FL_WIRE_HELLO) {
        if (stream->greeted) {
            fl_call_finish(stream->call, FL_GRPC_FAILED_PRECONDITION, "a second hello");
        } else {
            on_hello(stream, event);
        }
        return true;
    }
    if (!stream->joined) {
        fl_call_finish(stream->call, FL_GRPC_FAILED_PRECONDITION,
                       "expected hello as the first event, and Welcome before others");
        return true;
    }
    if (event->type == FL_WIRE_HEARTBEAT_EVENT) {
        control_heartbeat(stream);
        return true;
    }
    if (event->type == FL_WIRE_DATA_SUMMARY) {
        fl_control_stream_summary(stream, &event->u.summary);
        return true;
    }
    return control_forward_event(stream, event, data, len);
}

static bool control_on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_control_stream *stream = ctx;
    struct fl_wire_event event;
    struct fl_err err = {0};
    bool dealt;
    int rv = fl_wire_event_decode(data, len, &event, &err);

    stream->heard_ms = fl_clock_ms();
    if (rv != FL_OK) {
        fl_log_peer(stream->frontend->setup.log, FL_LOG_WARNING, "session",
                    fl_control_stream_who(stream), "%s from %s: %s",
                    rv == FL_ENOMEM ? "cannot read an event, ending the session" : "bad event",
                    fl_call_peer(call), fl_err_text(&err, rv));
        fl_frontend_fail(call, rv,
                         &err); /* too large: RESOURCE_EXHAUSTED; others: INVALID_ARGUMENT */
        return true;
    }
    dealt = control_on_event(stream, &event, data, len);
    if (event.type != 0) {
        fl_wire_event_done(&event);
    }
    return dealt;
}

/* Must not be lost: the coordinator would keep waiting for this client. */
static void control_post_lost(struct fl_frontend *frontend, uint32_t client, bool silent)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_LOST);

    if (up == NULL) {
        fl_serverd_no_memory(frontend->setup.log, "the end of a session");
    }
    up->client = client;
    up->silent = silent;
    fl_frontend_up(frontend, up);
}

/* Without memory this takeover is not counted. */
static void end_older(struct fl_control_stream *stream, struct fl_control_stream *older)
{
    struct fl_frontend *frontend = stream->frontend;
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_TAKEOVER);
    char text[256];

    (void)snprintf(text, sizeof(text), "from %s to %s", fl_call_peer(older->call),
                   fl_call_peer(stream->call));
    fl_log_peer(frontend->setup.log, FL_LOG_WARNING, "session", fl_control_stream_who(stream),
                "client '%s' disconnected: a newer session took over, %s: if this repeats, two "
                "machines use one identity",
                stream->name, text);
    fl_call_finish(older->call, FL_GRPC_ABORTED,
                   "a newer session with the same client name took over: if this repeats, two "
                   "machines use one identity (a copied state folder or disk image): give the "
                   "second one its own invitation");
    if (up != NULL) {
        up->client = stream->client;
        up->text = fl_str_dup(text);
        fl_frontend_up(frontend, up);
    }
}

static void control_report_lost(struct fl_control_stream *stream)
{
    struct fl_frontend *frontend = stream->frontend;
    uint64_t silence = HEARTBEATS_UNTIL_SILENT * frontend->setup.conf->main->heartbeat_ms;

    if (!stream->joined || frontend->slots[stream->client].stream != stream) {
        return; /* It never joined, or a newer session owns the slot. */
    }
    frontend->slots[stream->client].stream = NULL;
    if (fl_control_stream_asked(frontend, stream->name)) {
        return; /* If the newer session ends before it is answered, fl_control_stream_joined()
                   reports the loss. */
    }
    control_post_lost(frontend, stream->client, fl_clock_ms() > stream->heard_ms + silence);
}

/* The token is invalidated before the peer can learn that the session has ended. */
static void control_on_end(struct fl_call *call, void *ctx)
{
    control_report_lost(ctx);
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

static void control_on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                              const char *message)
{
    struct fl_control_stream *stream = ctx;
    struct fl_frontend *frontend = stream->frontend;

    fl_log_peer(frontend->setup.log, FL_LOG_INFO, "session", fl_control_stream_who(stream),
                "session of '%s' at %s ended: %s%s%s", stream->name, fl_call_peer(call),
                fl_grpc_status_name(status), message != NULL && message[0] != '\0' ? ", " : "",
                message != NULL ? message : "");
    stream->call = NULL;
    if (stream->greeted) {
        *greeted_of(stream) -= 1;
    }
    fl_control_stream_withdraw_hello(stream);
    control_report_lost(stream);
    fl_list_remove(&stream->link);
    fl_buf_done(&stream->summary);
    fl_inbox_done(&stream->inbox);
    free(stream);
}

static const struct fl_call_handler control_handler = {
    .on_message = control_on_message, .on_end = control_on_end, .on_closed = control_on_closed};

void fl_control_stream_start(struct fl_call *call, void *ctx)
{
    struct fl_frontend *frontend = ctx;
    struct fl_control_stream *stream = calloc(1, sizeof(*stream));

    if (stream == NULL || frontend->closing) {
        fl_call_finish(call, stream == NULL ? FL_GRPC_RESOURCE_EXHAUSTED : FL_GRPC_UNAVAILABLE,
                       stream == NULL ? "out of memory" : "the server is stopping");
        free(stream);
        return;
    }
    stream->frontend = frontend;
    stream->id = ++frontend->next_id;
    stream->call = call;
    stream->heard_ms = fl_clock_ms();
    stream->name[0] = '?';
    fl_buf_init(&stream->summary, fl_addressable(frontend->setup.conf->limits->summary));
    fl_list_prepend(&frontend->streams, &stream->link);
    fl_inbox_init(&stream->inbox);
    fl_call_set_handler(call, &control_handler, stream);
}

/* --- messages from the coordinator --- */

/* Sends Welcome: the federation and the session parameters. */
static void control_send_welcome(struct fl_control_stream *stream)
{
    const struct fl_frontend_setup *setup = &stream->frontend->setup;
    const struct fl_server_conf *conf = setup->conf;
    const struct fl_described of = {
        .federation = conf->main->federation,
        .strategy = conf->strategy,
        .layout = conf->layout,
        .net = &conf->net,
        .generation = setup->generation,
        .model_seed = conf->model->file[0] == '\0'
                          ? fl_opening_seed(conf->strategy, (uint64_t)conf->main->seed)
                          : 0,
        .metrics = fl_server_conf_metrics(conf),
        .training = {.epochs = (uint32_t)conf->training->epochs,
                     .steps = (uint32_t)conf->training->steps,
                     .batch_size = (uint32_t)conf->training->batch_size,
                     .momentum = conf->training->momentum,
                     .weight_decay = conf->training->weight_decay,
                     .client_momentum = conf->training->client_momentum}};
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_wire_welcome *w = &command.u.welcome;

    if (fl_welcome_describe(&of, w) != FL_OK) {
        fl_call_finish(stream->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    w->session = stream->token;
    w->heartbeat_ms = (uint32_t)conf->main->heartbeat_ms;
    w->wants_summary = stream->wants_summary;
    w->limits = (struct fl_wire_limits){.chunk_bytes = setup->chunk_bytes,
                                        .message_bytes = (uint32_t)setup->rpc.message_bytes,
                                        .streams = setup->rpc.streams,
                                        .idle_ms = setup->rpc.idle_ms};
    fl_control_stream_command(stream, &command);
    fl_welcome_done(w);
}

void fl_control_stream_joined(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *stream = fl_control_stream_answered(frontend, down->session);
    struct fl_frontend_client *slot = fl_frontend_client_at(frontend, down->client);
    struct fl_control_stream *older;
    bool is_open = stream != NULL && stream->call != NULL;

    /* The session ended in the meantime, or the client has to reconnect. */
    if (!is_open || slot == NULL ||
        fl_random_bytes(stream->token.id, sizeof(stream->token.id)) != FL_OK)
    {
        if (is_open) {
            fl_call_finish(stream->call, FL_GRPC_RESOURCE_EXHAUSTED,
                           "out of memory or of random numbers for a session");
        }
        if ((slot == NULL || slot->stream == NULL) &&
            !fl_control_stream_asked(frontend, down->text)) {
            control_post_lost(frontend, down->client, /* silent= */ false);
        }
        return;
    }
    older = slot->stream;
    slot->stream = stream;
    stream->client = down->client;
    stream->joined = true;
    fl_call_vouch(stream->call, stream->name);
    stream->wants_summary = down->wants_summary;
    (void)memcpy(stream->token.id, &stream->client, sizeof(stream->client));
    if (older != NULL && older->call != NULL) {
        end_older(stream, older);
    }
    fl_log_peer(frontend->setup.log, FL_LOG_INFO, "session", fl_control_stream_who(stream),
                "client '%s' joined from %s", stream->name, fl_call_peer(stream->call));
    control_send_welcome(stream);
}

void fl_control_stream_release(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *stream = frontend->slots[down->client].stream;

    if (stream == NULL) {
        return;
    }
    frontend->slots[down->client].stream = NULL;
    stream->joined = false; /* Later messages of this client are ignored. */
    if (stream->call != NULL) {
        fl_call_finish(stream->call, FL_GRPC_UNAVAILABLE,
                       down->text != NULL ? down->text
                                          : "the client was forgotten by the operator");
    }
}

void fl_control_stream_refused(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *stream = fl_control_stream_answered(frontend, down->session);

    if (stream != NULL && stream->call != NULL) {
        fl_control_stream_refuse(stream, FL_WIRE_REASON_FULL, 60000, down->text);
    }
}

void fl_control_stream_bad_summary(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *stream = fl_control_stream_find(frontend, down->session);

    if (stream != NULL && stream->call != NULL) {
        fl_frontend_finish(frontend, stream->call, fl_grpc_status_from_err(down->code), down->text);
    }
}

/* The coordinator consumed an event: post the next one and return its credit. */
void fl_control_stream_taken(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *stream =
        down->client < frontend->n_slots ? frontend->slots[down->client].stream : NULL;
    struct fl_wire_event event;
    struct fl_buf buf;
    int rv;

    frontend->n_events--;
    if (stream == NULL || stream->id != down->session || stream->call == NULL) {
        return; /* That session has ended. */
    }
    fl_inbox_taken(&stream->inbox);
    fl_buf_init(&buf, SIZE_MAX);
    rv = fl_inbox_next(&stream->inbox, &buf);
    if (rv != FL_OK) {
        goto done;
    }
    fl_call_consume(stream->call, buf.len);
    rv = fl_wire_event_decode(buf.data, buf.len, &event, NULL);
    if (rv != FL_OK) {
        goto done;
    }
    control_post_event(stream, &event);
    if (event.type != 0) {
        fl_wire_event_done(&event);
    }
done:
    if (rv != FL_OK && rv != FL_ENOENT) {
        fl_call_cancel(stream->call); /* Out of memory: it was decoded successfully before. */
    }
    fl_buf_done(&buf);
}

void fl_control_stream_sweep(struct fl_frontend *frontend, uint64_t now_ms)
{
    uint64_t limit = HEARTBEATS_OF_SILENCE * frontend->setup.conf->main->heartbeat_ms;
    struct fl_control_stream *a;

    FL_LIST_FOREACH (a, &frontend->streams, struct fl_control_stream, link) {
        if (a->call != NULL && !a->timed_out && now_ms > a->heard_ms + limit) {
            fl_log_peer(frontend->setup.log, FL_LOG_WARNING, "session", fl_control_stream_who(a),
                        "client '%s' at %s timed out: no message for %llu ms, ending its session",
                        a->name, fl_call_peer(a->call), (unsigned long long)(now_ms - a->heard_ms));
            a->timed_out = true; /* Once: its call closes later. */
            fl_call_cancel(a->call);
        }
    }
}
