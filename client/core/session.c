/*
 * The session of a client as a pure state machine: connecting, greeting, back-off after lost
 * connections and refusals, heartbeats, and the dispatch of events. Called on one thread, without
 * clock or I/O. Rounds (tasks, upload plans, verdicts) are in session_round.c.
 */

#include "client/core/session.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/core/session_impl.h"
#include "libfl/base/backoff.h"

/*
 * Timeout for Welcome: a server that accepts the connection but does not answer is disconnected
 * after it.
 */
#define GREETING_MS 30000
/* Missed heartbeats after which the server counts as lost. */
#define SILENT_INTERVALS 3
/* The longest pause that a server can request. */
#define WAIT_MAX_MS UINT64_C(86400000)
/* Percent of a wait. */
#define JITTER 20

#define TO(state)  FL_SM_TO(FL_SESSION_##state)
#define AWAY       (TO(OFFLINE) | TO(STOPPED))
#define IN_SESSION (TO(READY) | TO(DONE) | AWAY)

static const struct fl_sm_state states[FL_SESSION_COUNT] = {
    [FL_SESSION_OFFLINE] = {"OFFLINE", TO(CONNECTING) | TO(STOPPED)},
    [FL_SESSION_CONNECTING] = {"CONNECTING", TO(GREETING) | AWAY},
    [FL_SESSION_GREETING] = {"GREETING", TO(READY) | AWAY},
    [FL_SESSION_READY] = {"READY", TO(FETCHING) | TO(TRAINING) | TO(REPORTED) | TO(DONE) | AWAY},
    [FL_SESSION_FETCHING] = {"FETCHING", TO(TRAINING) | IN_SESSION},
    [FL_SESSION_TRAINING] = {"TRAINING", TO(REPORTED) | IN_SESSION},
    [FL_SESSION_REPORTED] = {"REPORTED", TO(PUSHING) | IN_SESSION},
    [FL_SESSION_PUSHING] = {"PUSHING", TO(REPORTED) | IN_SESSION},
    [FL_SESSION_DONE] = {"DONE", TO(READY) | AWAY},
    [FL_SESSION_STOPPED] = {"STOPPED", 0},
};

bool fl__key_equal(struct fl_round_key a, struct fl_round_key b)
{
    return a.round == b.round && a.attempt == b.attempt;
}

uint64_t fl__later(uint64_t now_ms, uint64_t span_ms)
{
    return now_ms > UINT64_MAX - 1 - span_ms ? UINT64_MAX - 1 : now_ms + span_ms;
}

bool fl__session_connected(const struct fl_session *s)
{
    return s->sm.state >= FL_SESSION_READY && s->sm.state <= FL_SESSION_DONE;
}

/* --- effects --- */

struct fl_session_effect *fl__session_emit(struct fl_session *s, enum fl_session_effect_type type,
                                           struct fl_round_key key)
{
    struct fl_session_effect *effect;

    FL_REQUIRE(s->n_effects < FL__EFFECTS_MAX);
    effect = &s->effects[s->n_effects++];
    *effect = (struct fl_session_effect){.type = type, .key = key};
    return effect;
}

const char *fl__session_text(struct fl_session *s, const char *fmt, ...)
{
    char *line;
    va_list ap;

    FL_REQUIRE(s->n_lines < FL__LINES_MAX);
    line = s->lines[s->n_lines++];
    va_start(ap, fmt);
    (void)vsnprintf(line, FL__LINE_SIZE, fmt, ap);
    va_end(ap);
    return line;
}

static void session_trace_move(const struct fl_sm *sm, unsigned previous, void *ctx)
{
    struct fl_session *s = ctx;

    fl__session_emit(s, FL_CEFF_TRACE, fl__no_round)->text =
        fl__session_text(s, "%s -> %s: %s", sm->states[previous].name, fl_sm_name(sm), s->why);
}

/* The invariant of each state about the round. */
static bool session_invariant(const struct fl_sm *sm, unsigned previous)
{
    const struct fl_session *s = sm->ctx;
    bool busy = s->training.round != 0;
    bool kept = s->held.round != 0;

    (void)previous;
    if (busy && kept) {
        return false;
    }
    switch ((enum fl_session_state)sm->state) {
    case FL_SESSION_FETCHING:
        return s->task.round != 0 && !busy && !kept;
    case FL_SESSION_TRAINING:
        return s->task.round != 0 && fl__key_equal(s->training, s->task);
    case FL_SESSION_REPORTED:
        return s->task.round != 0 && fl__key_equal(s->held, s->task);
    case FL_SESSION_PUSHING:
        return s->task.round != 0 && fl__key_equal(s->held, s->task) && s->has_plan;
    case FL_SESSION_STOPPED:
        return s->task.round == 0 && !busy;
    case FL_SESSION_OFFLINE:
    case FL_SESSION_CONNECTING:
    case FL_SESSION_GREETING:
    case FL_SESSION_READY:
    case FL_SESSION_DONE:
    case FL_SESSION_COUNT:
        break;
    }
    return s->task.round == 0 && !s->has_plan && s->transfer_at == FL__NEVER;
}

void fl__session_move(struct fl_session *s, enum fl_session_state state, const char *why)
{
    s->why = why;
    fl_sm_move(&s->sm, state);
    s->why = NULL;
}

/* --- pauses --- */

/* The next pause of a doubling series that begins with `first_ms`, with 20 % jitter. */
static uint64_t next_wait(struct fl_session *s, unsigned *failures, uint64_t first_ms,
                          uint64_t max_ms)
{
    const struct fl_backoff rule = {
        .first_ms = first_ms, .cap_ms = max_ms, .factor = 2, .jitter = JITTER};

    *failures += *failures < UINT_MAX ? 1 : 0;
    return fl_backoff_wait(&rule, *failures, &s->rng);
}

uint64_t fl__session_wait(struct fl_session *s, unsigned *failures, uint64_t max_ms)
{
    return next_wait(s, failures, s->conf.backoff_ms, max_ms);
}

/* The longest pause after a lost connection, up to a fifth shorter. */
static uint64_t curable_wait(struct fl_session *s)
{
    uint64_t wait =
        s->conf.backoff_max_ms < s->conf.refused_ms ? s->conf.backoff_max_ms : s->conf.refused_ms;

    return fl_backoff_jitter(wait, JITTER, 0, &s->rng);
}

/* A pause set by the server or the operator: never shorter, up to a fifth longer. */
static uint64_t wait_at_least(struct fl_session *s, uint64_t wait_ms)
{
    return fl_backoff_jitter(wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS, 0, JITTER, &s->rng);
}

/* Leave the session and reconnect after `wait` ms. */
static void go_offline(struct fl_session *s, uint64_t now_ms, uint64_t wait, const char *why)
{
    fl__round_leave(s);
    s->evaluating = 0;
    s->last_wait_ms = wait;
    s->server_pause = false;
    s->wake_at = fl__later(now_ms, wait);
    fl__session_move(s, FL_SESSION_OFFLINE,
                     fl__session_text(s, "%s, reconnecting in %" PRIu64 " ms", why, wait));
}

/* "13 s", "150 ms": the pause as text. */
static const char *session_span_text(struct fl_session *s, uint64_t ms)
{
    return ms < 10000 ? fl__session_text(s, "%" PRIu64 " ms", ms)
                      : fl__session_text(s, "%" PRIu64 " s", ms / 1000);
}

/*
 * Like go_offline(), for pauses longer than after a lost connection: logs when the client
 * reconnects.
 */
static void stay_away(struct fl_session *s, uint64_t now_ms, uint64_t wait, const char *why)
{
    fl__session_emit(s, FL_CEFF_NOTICE, fl__no_round)->text =
        fl__session_text(s, "%s; reconnecting in %s", why, session_span_text(s, wait));
    go_offline(s, now_ms, wait, why);
}

/* The server of a finished federation stopped, or ended the session. */
static void lost_when_done(struct fl_session *s, uint64_t now_ms, const char *why)
{
    uint64_t max = s->conf.done_max_ms != 0 ? s->conf.done_max_ms : s->conf.backoff_max_ms;

    if (now_ms - s->done_at >= max) {
        s->done = 0;
    }
    s->lost = 0;
    stay_away(s, now_ms, fl__session_wait(s, &s->done, max), why);
}

/* The connection was lost or never came up. */
static void session_lost(struct fl_session *s, uint64_t now_ms, const char *why)
{
    if (s->sm.state == FL_SESSION_DONE) {
        lost_when_done(s, now_ms, why);
        return;
    }
    if (fl__session_connected(s) && now_ms - s->welcomed_at >= s->last_wait_ms) {
        s->lost = 0;
    }
    go_offline(s, now_ms, fl__session_wait(s, &s->lost, s->conf.backoff_max_ms), why);
}

static void session_stop(struct fl_session *s, enum fl_session_exit code, const char *why)
{
    bool linked = s->sm.state != FL_SESSION_OFFLINE;
    struct fl_session_effect *effect;

    fl__round_leave(s);
    fl__round_cancel_training(s);
    if (linked) {
        fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round);
    }
    fl__session_move(s, FL_SESSION_STOPPED, why);
    effect = fl__session_emit(s, FL_CEFF_EXIT, fl__no_round);
    effect->code = (int)code;
    effect->text = why;
}

/* --- connection events --- */

static const char *reason_or(const char *reason, const char *other)
{
    return reason != NULL && reason[0] != '\0' ? reason : other;
}

static void connect_now(struct fl_session *s, const char *why)
{
    s->wake_at = FL__NEVER;
    fl__session_move(s, FL_SESSION_CONNECTING, why);
    fl__session_emit(s, FL_CEFF_CONNECT, fl__no_round);
}

static void session_on_start(struct fl_session *s, const struct fl_session_event *event)
{
    if (s->started || s->sm.state != FL_SESSION_OFFLINE) {
        return;
    }
    s->started = true;
    s->held = event->u.held.round != 0 ? event->u.held : fl__no_round;
    connect_now(s, "start");
}

static void session_on_connected(struct fl_session *s, uint64_t now_ms)
{
    if (s->sm.state != FL_SESSION_CONNECTING) {
        return;
    }
    s->greet_until = fl__later(now_ms, GREETING_MS);
    fl__session_move(s, FL_SESSION_GREETING, "connected");
    s->yields = now_ms < s->fence_until;
    fl__session_emit(s, FL_CEFF_HELLO, s->held)->yields = s->yields;
}

/*
 * Another host has this client's name. Both would end each other's sessions forever, so each waits
 * longer before it does so again; an operator notices, and stops one of them. Until then the other
 * asks as often as for what is curable, without ending a session, and so connects soon after.
 */
static uint64_t fenced_wait(struct fl_session *s, uint64_t now_ms)
{
    uint64_t max = s->conf.refused_ms;
    uint64_t ask = curable_wait(s);

    if (!s->yields) {
        if (now_ms - s->welcomed_at >= max) {
            s->fenced = 0;
        }
        s->fence_until = fl__later(
            now_ms, next_wait(s, &s->fenced,
                              s->conf.backoff_max_ms < max ? s->conf.backoff_max_ms : max, max));
    }
    if (now_ms >= s->fence_until) {
        return 0;
    }
    return ask < s->fence_until - now_ms ? ask : s->fence_until - now_ms;
}

static uint64_t wait_after(struct fl_session *s, uint64_t now_ms, enum fl_session_refusal kind)
{
    if (kind == FL_SESSION_REFUSED_FINAL) {
        return wait_at_least(s, s->conf.refused_ms);
    }
    return kind == FL_SESSION_REFUSED_CURABLE ? curable_wait(s) : fenced_wait(s, now_ms);
}

/* A refusal that neither side can resolve automatically: pause, or stop without after_refusal. */
static void session_refused(struct fl_session *s, uint64_t now_ms, enum fl_session_refusal kind,
                            enum fl_session_exit code, const char *why)
{
    if (s->conf.refused_ms == 0) {
        session_stop(s, code, why);
        return;
    }
    fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round);
    stay_away(s, now_ms, wait_after(s, now_ms, kind), why);
}

/* As session_refused(), but the connection is closed already. */
static void refused_by_transport(struct fl_session *s, uint64_t now_ms, const char *why)
{
    if (s->conf.refused_ms != 0) {
        stay_away(s, now_ms, curable_wait(s), why);
        return;
    }
    go_offline(s, now_ms, 0, why);
    session_stop(s, FL_SESSION_EXIT_REFUSED, why);
}

static void on_disconnected(struct fl_session *s, const struct fl_session_event *event)
{
    const char *reason = reason_or(event->u.failed.reason, "no reason given");

    if (s->sm.state == FL_SESSION_OFFLINE || s->sm.state == FL_SESSION_STOPPED) {
        return;
    }
    if (event->u.failed.permanent) {
        refused_by_transport(s, event->now_ms, reason);
        return;
    }
    session_lost(
        s, event->now_ms,
        fl__session_text(s, "%s: %s",
                         s->sm.state == FL_SESSION_CONNECTING ? "no connection" : "connection lost",
                         reason));
}

static void on_welcome(struct fl_session *s, const struct fl_session_event *event)
{
    if (!event->u.welcome.model_fits) {
        session_refused(s, event->now_ms, FL_SESSION_REFUSED_FINAL, FL_SESSION_EXIT_MODEL,
                        fl__session_text(s, "the model does not fit: %s",
                                         reason_or(event->u.welcome.reason, "no reason given")));
        return;
    }
    if (s->held.round != 0 && event->u.welcome.held_unfit != NULL) {
        fl__session_emit(s, FL_CEFF_DROP, s->held);
        s->held = fl__no_round;
    }
    s->heartbeat_ms = event->u.welcome.heartbeat_ms > 0 ? event->u.welcome.heartbeat_ms : 1;
    s->heartbeat_at = fl__later(event->now_ms, s->heartbeat_ms);
    s->heard_at = event->now_ms;
    s->welcomed_at = event->now_ms;
    s->fence_until = 0;
    s->yields = false;
    fl__session_move(s, FL_SESSION_READY, "welcome");
}

static void session_on_refused(struct fl_session *s, const struct fl_session_event *event)
{
    const char *why =
        fl__session_text(s, "refused: %s", reason_or(event->u.refused.reason, "no reason given"));

    if (event->u.refused.retry_after_ms == 0) {
        session_refused(s, event->now_ms, event->u.refused.kind, FL_SESSION_EXIT_REFUSED, why);
        return;
    }
    fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round);
    stay_away(s, event->now_ms, wait_at_least(s, event->u.refused.retry_after_ms), why);
    s->server_pause = true;
}

/* All rounds are done. Before Welcome there is no session to stay in. */
static void session_on_done(struct fl_session *s, uint64_t now_ms, const char *reason)
{
    if (s->conf.exit_when_done) {
        session_stop(s, FL_SESSION_EXIT_DONE,
                     fl__session_text(s, "the federation has finished: %s", reason));
        return;
    }
    s->done_at = now_ms;
    if (!fl__session_connected(s)) {
        fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round);
        lost_when_done(s, now_ms, fl__session_text(s, "done: %s", reason));
        return;
    }
    if (s->sm.state == FL_SESSION_DONE) {
        return;
    }
    fl__round_leave(s);
    fl__round_cancel_training(s);
    fl__session_emit(s, FL_CEFF_NOTICE, fl__no_round)->text = fl__session_text(
        s, "%s; staying connected for more rounds, or until the server stops", reason);
    fl__session_move(s, FL_SESSION_DONE, reason);
}

static void on_drain(struct fl_session *s, const struct fl_session_event *event)
{
    uint64_t wait = event->u.drain.reconnect_after_ms;
    const char *reason = reason_or(event->u.drain.reason, "no reason given");

    if (wait == 0) {
        session_on_done(s, event->now_ms, reason);
        return;
    }
    s->lost = 0;
    fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round);
    stay_away(s, event->now_ms, wait_at_least(s, wait),
              fl__session_text(s, "the server is draining: %s", reason));
    s->server_pause = true;
}

static uint64_t silent_at(const struct fl_session *s)
{
    return fl__later(s->heard_at, SILENT_INTERVALS * s->heartbeat_ms);
}

static void on_tick(struct fl_session *s, uint64_t now_ms)
{
    if (s->sm.state == FL_SESSION_OFFLINE && now_ms >= s->wake_at) {
        connect_now(s, "the pause has ended");
    } else if (s->sm.state == FL_SESSION_GREETING && now_ms >= s->greet_until) {
        fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round)->text =
            "the server does not answer hello";
        session_lost(s, now_ms, "the server does not answer hello");
    } else if (fl__session_connected(s)) {
        if (now_ms >= silent_at(s)) {
            fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round)->text = "the server is silent";
            session_lost(s, now_ms, "the server is silent");
            return;
        }
        if (now_ms >= s->heartbeat_at) {
            s->heartbeat_at = fl__later(now_ms, s->heartbeat_ms);
            fl__session_emit(s, FL_CEFF_HEARTBEAT, fl__no_round);
        }
        fl__round_tick(s, now_ms);
    }
}

/* --- interface --- */

int fl_session_create(const struct fl_session_conf *conf, struct fl_session **ret)
{
    struct fl_session *s;

    if (conf->backoff_ms == 0 || conf->backoff_ms > conf->backoff_max_ms) {
        return FL_EINVAL;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return FL_ENOMEM;
    }
    s->conf = *conf;
    s->wake_at = FL__NEVER;
    s->transfer_at = FL__NEVER;
    fl_rng_key(&s->rng, conf->seed, FL_RNG_JITTER, 0, 0);
    fl_sm_init(&s->sm, states, FL_SESSION_COUNT, FL_SESSION_OFFLINE);
    s->sm.invariant = session_invariant;
    s->sm.trace = session_trace_move;
    s->sm.ctx = s;
    *ret = s;
    return FL_OK;
}

void fl_session_free(struct fl_session *session)
{
    if (session != NULL) {
        free(session->units);
        free(session);
    }
}

/* A command of the server; each one shows that it is alive. */
static void session_on_command(struct fl_session *s, const struct fl_session_event *event)
{
    enum fl_session_answer answer = fl_session_answer(fl_session_state(s), event->type);
    int rv = FL_OK;

    if (answer != FL_SESSION_TAKES) {
        if (answer == FL_SESSION_BREACH) {
            const char *why =
                fl__session_text(s, "protocol error of the server: unexpected %s in state %s",
                                 fl_session_command_name(event->type), fl_sm_name(&s->sm));

            fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round)->text = why;
            session_lost(s, event->now_ms, why);
        }
        return;
    }
    s->heard_at = event->now_ms;
    switch (event->type) {
    case FL_CEV_WELCOME:
        on_welcome(s, event);
        break;
    case FL_CEV_REFUSED:
        session_on_refused(s, event);
        break;
    case FL_CEV_DRAIN:
        on_drain(s, event);
        break;
    case FL_CEV_TASK:
        rv = fl__round_task(s, event);
        break;
    case FL_CEV_PLAN:
        rv = fl__round_plan(s, event);
        break;
    case FL_CEV_ACCEPTED:
        fl__round_over(s, event->u.key, "accepted");
        break;
    case FL_CEV_REJECTED:
        fl__round_over(s, event->u.failed.key,
                       fl__session_text(s, "rejected: %s",
                                        reason_or(event->u.failed.reason, "no reason given")));
        break;
    case FL_CEV_DISMISSED:
        fl__round_over(s, event->u.key, "dismissed");
        break;
    case FL_CEV_EVALUATE:
        fl__round_evaluate(s, event->u.evaluate.round);
        break;
    default: /* a heartbeat */
        break;
    }
    if (rv != FL_OK) {
        const char *why =
            fl__session_text(s, "out of memory for a %s", fl_session_command_name(event->type));

        /* No memory for a copy of the command. */
        fl__session_emit(s, FL_CEFF_DISCONNECT, fl__no_round)->text = why;
        session_lost(s, event->now_ms, why);
    }
}

static void session_on_event(struct fl_session *s, const struct fl_session_event *event)
{
    switch (event->type) {
    case FL_CEV_START:
        session_on_start(s, event);
        break;
    case FL_CEV_TICK:
        on_tick(s, event->now_ms);
        break;
    case FL_CEV_CONNECTED:
        session_on_connected(s, event->now_ms);
        break;
    case FL_CEV_DISCONNECTED:
        on_disconnected(s, event);
        break;
    case FL_CEV_WELCOME:
    case FL_CEV_REFUSED:
    case FL_CEV_DRAIN:
    case FL_CEV_TASK:
    case FL_CEV_PLAN:
    case FL_CEV_ACCEPTED:
    case FL_CEV_REJECTED:
    case FL_CEV_DISMISSED:
    case FL_CEV_EVALUATE:
    case FL_CEV_HEARTBEAT:
        session_on_command(s, event);
        break;
    case FL_CEV_FETCHED:
        fl__round_fetched(s, event->u.key);
        break;
    case FL_CEV_FETCH_FAILED:
        fl__round_fetch_failed(s, event);
        break;
    case FL_CEV_TRAINED:
        fl__round_trained(s, event->u.key);
        break;
    case FL_CEV_TRAIN_FAILED:
        fl__round_train_failed(s, event);
        break;
    case FL_CEV_EVALUATED:
        s->evaluating = s->evaluating == event->u.key.round ? 0 : s->evaluating;
        break;
    case FL_CEV_EVALUATE_FAILED:
        fl__round_evaluate_failed(s, event);
        break;
    case FL_CEV_PUSH_FAILED:
        fl__round_push_failed(s, event);
        break;
    case FL_CEV_RETRY:
        if (s->started && s->sm.state == FL_SESSION_OFFLINE && !s->server_pause) {
            connect_now(s, "retrying early");
        }
        break;
    case FL_CEV_STOP:
        session_stop(s, FL_SESSION_EXIT_DONE, "stopped by a signal");
        break;
    }
}

void fl_session_step(struct fl_session *session, const struct fl_session_event *event,
                     struct fl_session_effects *ret)
{
    session->n_effects = 0;
    session->n_lines = 0;
    if (session->sm.state != FL_SESSION_STOPPED) {
        session_on_event(session, event);
    }
    *ret = (struct fl_session_effects){session->effects, session->n_effects};
}

static uint64_t earlier_deadline(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t fl_session_deadline(const struct fl_session *session)
{
    if (session->sm.state == FL_SESSION_OFFLINE) {
        return session->wake_at;
    }
    if (session->sm.state == FL_SESSION_GREETING) {
        return session->greet_until;
    }
    if (!fl__session_connected(session)) {
        return FL__NEVER;
    }
    return earlier_deadline(earlier_deadline(session->heartbeat_at, silent_at(session)),
                            session->transfer_at);
}

enum fl_session_state fl_session_state(const struct fl_session *session)
{
    return (enum fl_session_state)session->sm.state;
}

const char *fl_session_state_name(enum fl_session_state state)
{
    return (unsigned)state < FL_SESSION_COUNT ? states[state].name : "?";
}
