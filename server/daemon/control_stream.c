/*
 * Attend calls: the life of a session.
 *
 * The happy path: the call begins; hello comes in and is checked; the coordinator gives
 * the client its number (FL_NET_MSG_JOINED); the slot's older session, if any, is fenced;
 * Welcome goes out; commands and events follow until either side ends.
 * Failure modes: no hello, or a bad one: the call ends with a status and, where the
 * client can act on it, a Refused before; silence for three heartbeats; the peer goes
 * away at any time, also while the coordinator is being asked.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/model/digest.h"
#include "server/daemon/frontend_impl.h"
#include "server/work/welcome.h"

#define HEARTBEATS_OF_SILENCE 3
#define HEARD_EVERY_MS        1000

const char *fl_control_stream_who(const struct fl_control_stream *attend)
{
    return attend->joined ? attend->name : fl_call_peer(attend->call);
}

void fl_control_stream_refuse(struct fl_control_stream *attend, enum fl_wire_reason reason,
                              uint32_t retry_ms, const char *message)
{
    struct fl_wire_command command = {.type = FL_WIRE_REFUSED};

    command.u.refused.reason = reason;
    command.u.refused.message = fl_wire_lend(message);
    command.u.refused.retry_after_ms = retry_ms;
    fl_log_peer(attend->frontend->srv->log, FL_LOG_WARNING, "attend", fl_call_peer(attend->call),
                "client '%s' at %s refused: %s", attend->name, fl_call_peer(attend->call), message);
    fl_control_stream_command(attend, &command);
    fl_call_finish(attend->call,
                   reason == FL_WIRE_REASON_FULL     ? FL_GRPC_RESOURCE_EXHAUSTED
                   : reason == FL_WIRE_REASON_DENIED ? FL_GRPC_PERMISSION_DENIED
                                                     : FL_GRPC_INVALID_ARGUMENT,
                   message);
}

static bool hello_fits(struct fl_control_stream *attend, const struct fl_wire_hello *hello)
{
    const struct fl_layout *layout = attend->frontend->srv->conf->layout;
    char text[256];

    if (hello->version_min > FL_WIRE_VERSION || hello->version_max < FL_WIRE_VERSION) {
        (void)snprintf(text, sizeof(text), "the server speaks wire version %d, the client %u to %u",
                       FL_WIRE_VERSION, hello->version_min, hello->version_max);
        fl_control_stream_refuse(attend, FL_WIRE_REASON_VERSION, 0, text);
        return false;
    }
    if (hello->has_digest && memcmp(hello->digest, fl_layout_digest(layout), FL_DIGEST_SIZE) != 0) {
        char want[2 * FL_DIGEST_SIZE + 1];
        char have[2 * FL_DIGEST_SIZE + 1];

        (void)snprintf(text, sizeof(text),
                       "the client's model has another layout (%.16s) than the federation's "
                       "(%.16s): %zu units, %zu parameters expected",
                       fl_hex(have, hello->digest, FL_DIGEST_SIZE),
                       fl_hex(want, fl_layout_digest(layout), FL_DIGEST_SIZE),
                       fl_layout_units(layout), fl_layout_count(layout));
        fl_control_stream_refuse(attend, FL_WIRE_REASON_MODEL, 0, text);
        return false;
    }
    return true;
}

/* Who shows a certificate is who it says he is. */
static bool name_fits(struct fl_control_stream *attend)
{
    const struct fl_identity *identity = fl_call_identity(attend->call);
    char text[512];

    attend->verified = identity != NULL && identity->kind == FL_IDENTITY_CERTIFICATE;
    if (!attend->verified || strcmp(identity->name, attend->name) == 0) {
        return true;
    }
    (void)snprintf(text, sizeof(text),
                   "its certificate is for '%s', and it says that it is '%s': `name` in the "
                   "client's configuration has to be that of its certificate, or is left out",
                   identity->name, attend->name);
    fl_control_stream_refuse(attend, FL_WIRE_REASON_NAME, 0, text);
    return false;
}

static size_t *greeted_of(struct fl_control_stream *attend)
{
    return attend->verified ? &attend->frontend->n_verified : &attend->frontend->n_plain;
}

static void on_hello(struct fl_control_stream *attend, struct fl_wire_event *event)
{
    struct fl_coord_msg *up;

    /* Decoding has checked the name, its length included. */
    FL_REQUIRE(fl_str_copy(attend->name, sizeof(attend->name), event->u.hello.client) == FL_OK);
    if (!name_fits(attend) || !hello_fits(attend, &event->u.hello)) {
        return;
    }
    up = fl_coord_msg_new(FL_COORD_MSG_JOIN);
    if (up == NULL) {
        fl_call_finish(attend->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    attend->greeted = true;
    *greeted_of(attend) += 1;
    fl_call_set_patient(attend->call, true); /* Heartbeats tell whether it lives. */
    up->session = attend->id;
    up->event = *event;
    *event = (struct fl_wire_event){0};
    if (attend->frontend->srv->auth == NULL) { /* No name has a certificate. */
        fl_control_stream_ask(attend, up);
    } else if (attend->verified) {
        fl_control_stream_shown(attend, fl_call_identity(attend->call));
        fl_control_stream_ask(attend, up);
    } else {
        fl_control_stream_ask_plain(attend, up);
    }
}

/* The coordinator keeps when a client was last heard, and need not know it to the millisecond. */
static void tell_heard(struct fl_control_stream *attend)
{
    struct fl_push_progress progress;
    struct fl_coord_msg *up;

    if (attend->heard_ms < attend->told_ms + HEARD_EVERY_MS) {
        return;
    }
    up = fl_coord_msg_new(FL_COORD_MSG_HEARD);
    if (up != NULL) { /* Else with the next sign of life. */
        attend->told_ms = attend->heard_ms;
        up->client = attend->client;
        if (fl_push_progress(attend->frontend->slots[attend->client].push, &progress)) {
            up->type = FL_COORD_MSG_PROGRESS;
            up->round = progress.key.round;
            up->attempt = progress.key.attempt;
            up->bytes = progress.bytes;
            up->held = progress.held;
        }
        fl_frontend_up(attend->frontend, up);
    }
}

static void heartbeat(struct fl_control_stream *attend)
{
    struct fl_wire_command command = {.type = FL_WIRE_HEARTBEAT_COMMAND};

    tell_heard(attend);
    command.u.heartbeat = ++attend->heartbeat;
    fl_control_stream_command(attend, &command);
}

/* Counted in the inbox as posted already. */
static void post(struct fl_control_stream *attend, struct fl_wire_event *event)
{
    struct fl_frontend *frontend = attend->frontend;
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_EVENT);

    if (up == NULL) { /* The client comes again, and tells it again. */
        fl_call_finish(attend->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    up->session = attend->id;
    up->client = attend->client;
    up->event = *event;
    *event = (struct fl_wire_event){0};
    frontend->n_events++;
    frontend->most_events =
        frontend->n_events > frontend->most_events ? frontend->n_events : frontend->most_events;
    fl_frontend_up(frontend, up);
}

/* Returns whether the message was dealt with: one that waits keeps its credit. */
static bool forward(struct fl_control_stream *attend, struct fl_wire_event *event,
                    const uint8_t *data, size_t len)
{
    bool now = false;
    int rv = fl_inbox_put(&attend->inbox, data, len, &now);

    if (rv != FL_OK) {
        fl_call_finish(attend->call, FL_GRPC_RESOURCE_EXHAUSTED,
                       "the client tells more than the federation asked for");
        return true;
    }
    if (now) {
        post(attend, event);
    }
    return now;
}

/* As fl_call_handler.on_message. */
static bool on_event(struct fl_control_stream *attend, struct fl_wire_event *event,
                     const uint8_t *data, size_t len)
{
    if (event->type == FL_WIRE_HELLO) {
        if (attend->greeted) {
            fl_call_finish(attend->call, FL_GRPC_FAILED_PRECONDITION, "a second hello");
        } else {
            on_hello(attend, event);
        }
        return true;
    }
    if (!attend->joined) {
        fl_call_finish(attend->call, FL_GRPC_FAILED_PRECONDITION,
                       "expected hello as the first event, and Welcome before others");
        return true;
    }
    if (event->type == FL_WIRE_HEARTBEAT_EVENT) {
        heartbeat(attend);
        return true;
    }
    if (event->type == FL_WIRE_OFFER) {
        fl_control_stream_offer(attend, &event->u.offer);
        return true;
    }
    return forward(attend, event, data, len);
}

static bool on_message(struct fl_call *call, void *ctx, const uint8_t *data, size_t len)
{
    struct fl_control_stream *attend = ctx;
    struct fl_wire_event event;
    struct fl_err err = {0};
    bool dealt;
    int rv = fl_wire_event_decode(data, len, &event, &err);

    attend->heard_ms = fl_clock_ms();
    if (rv != FL_OK) {
        fl_log_peer(attend->frontend->srv->log, FL_LOG_WARNING, "attend",
                    fl_control_stream_who(attend), "%s from %s: %s",
                    rv == FL_ENOMEM ? "cannot read an event, ending the session" : "bad event",
                    fl_call_peer(call), fl_err_text(&err, rv));
        fl_frontend_fail(call, rv,
                         &err); /* too large is RESOURCE_EXHAUSTED, the rest INVALID_ARGUMENT */
        return true;
    }
    dealt = on_event(attend, &event, data, len);
    if (event.type != 0) {
        fl_wire_event_done(&event);
    }
    return dealt;
}

/* Left unsaid, the coordinator would go on to count on that client. */
static void say_lost(struct fl_frontend *frontend, uint32_t client)
{
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_LOST);

    if (up == NULL) {
        fl_serverd_no_memory(frontend->srv, "the end of a session");
    }
    up->client = client;
    fl_frontend_up(frontend, up);
}

/* Left unsaid, one is not counted. */
static void end_older(struct fl_control_stream *attend, struct fl_control_stream *older)
{
    struct fl_frontend *frontend = attend->frontend;
    struct fl_coord_msg *up = fl_coord_msg_new(FL_COORD_MSG_TAKEOVER);
    char text[256];

    (void)snprintf(text, sizeof(text), "from %s to %s", fl_call_peer(older->call),
                   fl_call_peer(attend->call));
    fl_log_peer(frontend->srv->log, FL_LOG_WARNING, "attend", fl_control_stream_who(attend),
                "client '%s': a newer session took over, %s: if this repeats, two machines use one "
                "identity",
                attend->name, text);
    fl_call_finish(older->call, FL_GRPC_ABORTED,
                   "a newer session with the same client name took over: if this repeats, two "
                   "machines use one identity (a copied state folder or disk image): give the "
                   "second one its own invitation");
    if (up != NULL) {
        up->client = attend->client;
        up->text = fl_str_dup(text);
        fl_frontend_up(frontend, up);
    }
}

static void tell_lost(struct fl_control_stream *attend)
{
    struct fl_frontend *frontend = attend->frontend;

    if (!attend->joined || frontend->slots[attend->client].attend != attend) {
        return; /* Never joined, or a newer session has the slot. */
    }
    frontend->slots[attend->client].attend = NULL;
    if (fl_control_stream_asked(frontend, attend->name)) {
        return; /* Should the newer one go before it is answered, fl_control_stream_joined() tells.
                 */
    }
    say_lost(frontend, attend->client);
}

/* The token is void before the peer can know that the session has ended. */
static void on_end(struct fl_call *call, void *ctx)
{
    tell_lost(ctx);
    fl_call_finish(call, FL_GRPC_OK, NULL);
}

static void on_closed(struct fl_call *call, void *ctx, enum fl_grpc_status status,
                      const char *message)
{
    struct fl_control_stream *attend = ctx;
    struct fl_frontend *frontend = attend->frontend;

    fl_log_peer(frontend->srv->log, FL_LOG_INFO, "attend", fl_control_stream_who(attend),
                "session of '%s' at %s ended: %s%s%s", attend->name, fl_call_peer(call),
                fl_grpc_status_name(status), message != NULL && message[0] != '\0' ? ", " : "",
                message != NULL ? message : "");
    attend->call = NULL;
    if (attend->greeted) {
        *greeted_of(attend) -= 1;
    }
    fl_control_stream_ask_no_more(attend);
    tell_lost(attend);
    fl_list_remove(&attend->link);
    fl_buf_done(&attend->offer);
    fl_inbox_done(&attend->inbox);
    free(attend);
}

static const struct fl_call_handler attend_handler = {
    .on_message = on_message, .on_end = on_end, .on_closed = on_closed};

void fl_control_stream_start(struct fl_call *call, void *ctx)
{
    struct fl_frontend *frontend = ctx;
    struct fl_control_stream *attend = calloc(1, sizeof(*attend));

    if (attend == NULL || frontend->closing) {
        fl_call_finish(call, attend == NULL ? FL_GRPC_RESOURCE_EXHAUSTED : FL_GRPC_UNAVAILABLE,
                       attend == NULL ? "out of memory" : "the server is stopping");
        free(attend);
        return;
    }
    attend->frontend = frontend;
    attend->id = ++frontend->next_id;
    attend->call = call;
    attend->heard_ms = fl_clock_ms();
    attend->name[0] = '?';
    fl_buf_init(&attend->offer, fl_addressable(frontend->srv->conf->limits->offer));
    fl_list_prepend(&frontend->attends, &attend->link);
    fl_inbox_init(&attend->inbox);
    fl_call_set_handler(call, &attend_handler, attend);
}

/* --- from the coordinator --- */

struct fl_control_stream *fl_control_stream_find(struct fl_frontend *frontend, uint64_t id)
{
    struct fl_control_stream *a;

    FL_LIST_FOREACH (a, &frontend->attends, struct fl_control_stream, link) {
        if (a->id == id) {
            return a;
        }
    }
    return NULL;
}

/* What a joining client is told of the federation and of its session. */
static void welcome(struct fl_control_stream *attend)
{
    const struct fl_serverd *srv = attend->frontend->srv;
    const struct fl_server_conf *conf = srv->conf;
    const struct fl_serverd_conf *own = srv->own;
    const struct fl_described of = {.federation = srv->federation,
                                    .strategy = conf->strategy,
                                    .layout = conf->layout,
                                    .net = &conf->net,
                                    .line = srv->line,
                                    .training = {.epochs = (uint32_t)conf->training->epochs,
                                                 .steps = (uint32_t)conf->training->steps,
                                                 .batch_size = (uint32_t)conf->training->batch_size,
                                                 .momentum = conf->training->momentum,
                                                 .weight_decay = conf->training->weight_decay}};
    struct fl_wire_command command = {.type = FL_WIRE_WELCOME};
    struct fl_wire_welcome *w = &command.u.welcome;

    if (fl_welcome_describe(&of, w) != FL_OK) {
        fl_call_finish(attend->call, FL_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }
    w->session = attend->token;
    w->heartbeat_ms = (uint32_t)conf->main->heartbeat_ms;
    w->wants_offer = attend->wants_offer;
    w->limits = (struct fl_wire_limits){.chunk_bytes = own->chunk_bytes,
                                        .message_bytes = (uint32_t)own->rpc.message_bytes,
                                        .streams = own->rpc.streams,
                                        .idle_ms = own->rpc.idle_ms};
    fl_control_stream_command(attend, &command);
    fl_welcome_done(w);
}

void fl_control_stream_joined(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *attend = fl_control_stream_answered(frontend, down->session);
    struct fl_slot_rec *slot = fl_frontend_slot(frontend, down->client);
    struct fl_control_stream *older;
    bool here = attend != NULL && attend->call != NULL;

    /* It went away in the meantime, or has to come again. */
    if (!here || slot == NULL ||
        fl_random_bytes(attend->token.id, sizeof(attend->token.id)) != FL_OK) {
        if (here) {
            fl_call_finish(attend->call, FL_GRPC_RESOURCE_EXHAUSTED,
                           "no memory or no random numbers for a session");
        }
        if ((slot == NULL || slot->attend == NULL) &&
            !fl_control_stream_asked(frontend, down->text)) {
            say_lost(frontend, down->client);
        }
        return;
    }
    older = slot->attend;
    slot->attend = attend;
    attend->client = down->client;
    attend->joined = true;
    fl_call_vouch(attend->call, attend->name);
    attend->wants_offer = down->wants_offer;
    (void)memcpy(attend->token.id, &attend->client, sizeof(attend->client));
    if (older != NULL && older->call != NULL) {
        end_older(attend, older);
    }
    fl_log_peer(frontend->srv->log, FL_LOG_INFO, "attend", fl_control_stream_who(attend),
                "client '%s' joined from %s", attend->name, fl_call_peer(attend->call));
    welcome(attend);
}

void fl_control_stream_release(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *attend = frontend->slots[down->client].attend;

    if (attend == NULL) {
        return;
    }
    frontend->slots[down->client].attend = NULL;
    attend->joined = false; /* What it still says is nobody's. */
    if (attend->call != NULL) {
        fl_call_finish(attend->call, FL_GRPC_UNAVAILABLE,
                       down->text != NULL ? down->text : "the client is forgotten");
    }
}

void fl_control_stream_refused(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *attend = fl_control_stream_answered(frontend, down->session);

    if (attend != NULL && attend->call != NULL) {
        fl_control_stream_refuse(attend, FL_WIRE_REASON_FULL, 60000, down->text);
    }
}

void fl_control_stream_bad_offer(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *attend = fl_control_stream_find(frontend, down->session);

    if (attend != NULL && attend->call != NULL) {
        fl_frontend_finish(frontend, attend->call, fl_grpc_status_from_err(down->code), down->text);
    }
}

/* The coordinator took an event: the next one may go, and gives back its credit. */
void fl_control_stream_taken(struct fl_frontend *frontend, const struct fl_net_msg *down)
{
    struct fl_control_stream *attend =
        down->client < frontend->n_slots ? frontend->slots[down->client].attend : NULL;
    struct fl_wire_event event;
    struct fl_buf buf;
    int rv;

    frontend->n_events--;
    if (attend == NULL || attend->id != down->session || attend->call == NULL) {
        return; /* That session is over. */
    }
    fl_inbox_taken(&attend->inbox);
    fl_buf_init(&buf, SIZE_MAX);
    rv = fl_inbox_next(&attend->inbox, &buf);
    if (rv == FL_OK) {
        fl_call_consume(attend->call, buf.len);
        rv = fl_wire_event_decode(buf.data, buf.len, &event, NULL);
    }
    if (rv == FL_OK) {
        post(attend, &event);
        if (event.type != 0) {
            fl_wire_event_done(&event);
        }
    } else if (rv != FL_ENOENT) {
        fl_call_cancel(attend->call); /* No memory: it was decoded before. */
    }
    fl_buf_done(&buf);
}

void fl_control_stream_sweep(struct fl_frontend *frontend, uint64_t now_ms)
{
    uint64_t limit = HEARTBEATS_OF_SILENCE * frontend->srv->conf->main->heartbeat_ms;
    struct fl_control_stream *a;

    FL_LIST_FOREACH (a, &frontend->attends, struct fl_control_stream, link) {
        if (a->call != NULL && now_ms > a->heard_ms + limit) {
            fl_log_peer(frontend->srv->log, FL_LOG_WARNING, "attend", fl_control_stream_who(a),
                        "client '%s' at %s is silent for %llu ms, ending its session", a->name,
                        fl_call_peer(a->call), (unsigned long long)(now_ms - a->heard_ms));
            a->heard_ms = now_ms;
            fl_call_cancel(a->call);
        }
    }
}
