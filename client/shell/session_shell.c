/*
 * Steps a client's session with events and carries out its effects through the operations of the
 * caller (session_shell.h). One thread, without clock or I/O. It holds no logic of the session
 * itself (client/core).
 */

#include "client/shell/session_shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * More than can be queued: an event starts at most one activity, which fails at most once; of the
 * queued events only FETCHED starts another one.
 */
#define QUEUE_MAX 4

struct queued_event {
    struct fl_session_event event;
    char reason[FL_ERR_BUF_SIZE]; /* a copy, because the caller's text does not live long enough */
};

struct fl_session_shell {
    struct fl_session *session;
    const struct fl_session_ops *ops;
    void *ctx;
    bool stepping, stopped;
    struct queued_event queue[QUEUE_MAX];
    size_t n_queued;
};

/* --- effects --- */

static void shell_begin(struct fl_session_shell *s, enum fl_activity activity,
                        const struct fl_session_effect *e)
{
    struct fl_err err = {0};
    int rv = activity == FL_ACTIVITY_PUSH && !s->ops->has_result(s->ctx, e->key)
                 ? fl_err_set(&err, FL_ESTATE, "the pending result no longer exists")
                 : s->ops->begin(s->ctx, activity, e, &err);

    if (rv != FL_OK) {
        fl_session_shell_ended(s, activity, e->key, rv, fl_err_text(&err, rv));
    }
}

static void shell_send(struct fl_session_shell *s, const struct fl_session_effect *e)
{
    struct fl_wire_event message = fl_session_message_of(e);

    if (e->type == FL_CEFF_REPORT && !s->ops->has_result(s->ctx, e->key)) {
        message = fl_session_failed(e->key, "the pending result no longer exists", false);
    } else if (e->type == FL_CEFF_NO_EVALUATION) {
        s->ops->log(s->ctx, FL_LOG_WARNING, e->text);
    }
    s->ops->send(s->ctx, &message);
}

static void shell_carry_out(struct fl_session_shell *s, const struct fl_session_effect *e)
{
    switch (e->type) {
    case FL_CEFF_CONNECT:
        shell_begin(s, FL_ACTIVITY_CONNECTION, e);
        break;
    case FL_CEFF_DISCONNECT:
        s->ops->cancel(s->ctx, FL_ACTIVITY_CONNECTION, e->text);
        break;
    case FL_CEFF_HELLO:
    case FL_CEFF_HEARTBEAT:
    case FL_CEFF_REPORT:
    case FL_CEFF_FAILED:
    case FL_CEFF_NO_EVALUATION:
        shell_send(s, e);
        break;
    case FL_CEFF_FETCH:
        shell_begin(s, FL_ACTIVITY_FETCH, e);
        break;
    case FL_CEFF_CANCEL_FETCH:
        s->ops->cancel(s->ctx, FL_ACTIVITY_FETCH, NULL);
        break;
    case FL_CEFF_TRAIN:
        shell_begin(s, FL_ACTIVITY_TRAINING, e);
        break;
    case FL_CEFF_CANCEL_TRAIN:
        s->ops->cancel(s->ctx, FL_ACTIVITY_TRAINING, NULL);
        break;
    case FL_CEFF_PUSH:
        shell_begin(s, FL_ACTIVITY_PUSH, e);
        break;
    case FL_CEFF_CANCEL_PUSH:
        s->ops->cancel(s->ctx, FL_ACTIVITY_PUSH, NULL);
        break;
    case FL_CEFF_DROP:
        s->ops->drop_result(s->ctx, e->key);
        break;
    case FL_CEFF_EVALUATE:
        shell_begin(s, FL_ACTIVITY_EVALUATION, e);
        break;
    case FL_CEFF_TRACE:
        s->ops->log(s->ctx, FL_LOG_DEBUG, e->text);
        break;
    case FL_CEFF_NOTICE:
        s->ops->log(s->ctx, FL_LOG_NOTICE, e->text);
        break;
    case FL_CEFF_EXIT:
        s->ops->leave(s->ctx, e->code, e->text);
        break;
    }
}

/* --- steps --- */

static void shell_step_now(struct fl_session_shell *s, struct fl_session_event *event)
{
    struct fl_session_effects effects = {0};
    size_t i;

    s->stepping = true;
    event->now_ms = s->ops->now_ms(s->ctx);
    if (s->ops->stepped != NULL) {
        s->ops->stepped(s->ctx, event);
    }
    fl_session_step(s->session, event, &effects);
    for (i = 0; i < effects.n; i++) {
        shell_carry_out(s, &effects.list[i]);
    }
    s->stepping = false;
}

static void shell_enqueue(struct fl_session_shell *s, const struct fl_session_event *event)
{
    struct queued_event *queued = &s->queue[s->n_queued];

    FL_REQUIRE(event->type == FL_CEV_DISCONNECTED || event->type == FL_CEV_FETCH_FAILED ||
               event->type == FL_CEV_TRAIN_FAILED || event->type == FL_CEV_PUSH_FAILED ||
               event->type == FL_CEV_EVALUATE_FAILED || event->type == FL_CEV_FETCHED);
    FL_REQUIRE(s->n_queued < QUEUE_MAX);
    queued->event = *event;
    if (event->type != FL_CEV_FETCHED) {
        (void)snprintf(queued->reason, sizeof(queued->reason), "%s", event->u.failed.reason);
    }
    s->n_queued++;
}

/* Events that the queued ones cause are queued behind them, and stay queued. */
static void shell_step_queued(struct fl_session_shell *s)
{
    size_t n = s->n_queued;

    for (; n > 0 && !s->stopped; n--) {
        struct queued_event first = s->queue[0];

        (void)memmove(s->queue, s->queue + 1, --s->n_queued * sizeof(s->queue[0]));
        if (first.event.type != FL_CEV_FETCHED) {
            first.event.u.failed.reason = first.reason;
        }
        shell_step_now(s, &first.event);
    }
}

static void shell_set_timer(struct fl_session_shell *s)
{
    if (!s->stopped) {
        s->ops->set_timer(s->ctx, s->n_queued > 0 ? 0 : fl_session_deadline(s->session));
    }
}

void fl_session_shell_step(struct fl_session_shell *s, struct fl_session_event *event)
{
    if (s->stopped) {
        return;
    }
    if (s->stepping) {
        shell_enqueue(s, event);
        return;
    }
    shell_step_queued(s);
    if (!s->stopped) {
        shell_step_now(s, event);
    }
    shell_set_timer(s);
}

void fl_session_shell_key(struct fl_session_shell *s, enum fl_session_event_type type,
                          struct fl_round_key key)
{
    struct fl_session_event event = {.type = type};

    event.u.key = key;
    fl_session_shell_step(s, &event);
}

void fl_session_shell_tick(struct fl_session_shell *s)
{
    fl_session_shell_key(s, FL_CEV_TICK, (struct fl_round_key){0});
}

bool fl_session_shell_command(struct fl_session_shell *s, struct fl_session_event *command,
                              void *message)
{
    bool taken;

    if (s->stopped) {
        return false;
    }
    shell_step_queued(s); /* The session may ignore the command after them. */
    taken =
        fl_session_answer(fl_session_state(s->session), command->type) == FL_SESSION_TAKES &&
        (command->type != FL_CEV_TASK || fl_session_task_is_new(s->session, command->u.task.key));
    if (taken && !s->ops->take(s->ctx, command, message)) {
        shell_set_timer(s);
        return false;
    }
    fl_session_shell_step(s, command);
    return taken;
}

/* --- the end of work --- */

void fl_session_shell_failed(struct fl_session_shell *s, enum fl_activity activity,
                             struct fl_round_key key, enum fl_fault fault, const char *why)
{
    static const enum fl_session_event_type types[] = {
        [FL_ACTIVITY_CONNECTION] = FL_CEV_DISCONNECTED,
        [FL_ACTIVITY_FETCH] = FL_CEV_FETCH_FAILED,
        [FL_ACTIVITY_TRAINING] = FL_CEV_TRAIN_FAILED,
        [FL_ACTIVITY_PUSH] = FL_CEV_PUSH_FAILED,
        [FL_ACTIVITY_EVALUATION] = FL_CEV_EVALUATE_FAILED,
    };
    struct fl_session_event event = {.type = types[activity]};

    event.u.failed.key = key;
    event.u.failed.reason = why;
    event.u.failed.permanent = fault != FL_FAULT_PASSING;
    event.u.failed.diverged = fault == FL_FAULT_DIVERGED;
    event.u.failed.keeps = fault == FL_FAULT_UNDELIVERED;
    fl_session_shell_step(s, &event);
}

void fl_session_shell_ended(struct fl_session_shell *s, enum fl_activity activity,
                            struct fl_round_key key, int code, const char *why)
{
    static const enum fl_session_event_type types[] = {
        [FL_ACTIVITY_CONNECTION] = FL_CEV_CONNECTED, [FL_ACTIVITY_FETCH] = FL_CEV_FETCHED,
        [FL_ACTIVITY_TRAINING] = FL_CEV_TRAINED,     [FL_ACTIVITY_PUSH] = FL_CEV_ACCEPTED,
        [FL_ACTIVITY_EVALUATION] = FL_CEV_EVALUATED,
    };

    if (code == FL_OK) {
        fl_session_shell_key(s, types[activity], key);
    } else {
        fl_session_shell_failed(
            s, activity, key,
            activity == FL_ACTIVITY_CONNECTION ? FL_FAULT_PASSING : fl_fault_of(code), why);
    }
}

void fl_session_shell_evaluated(struct fl_session_shell *s, uint64_t round, int code,
                                const char *why, const struct fl_wire_event *evaluation)
{
    if (s->stopped) {
        return;
    }
    if (code == FL_OK) {
        struct fl_wire_event message = *evaluation;

        s->ops->send(s->ctx, &message);
    }
    fl_session_shell_ended(s, FL_ACTIVITY_EVALUATION, (struct fl_round_key){.round = round}, code,
                           why);
}

/* --- create and free --- */

int fl_session_shell_create(const struct fl_session_conf *conf, const struct fl_session_ops *ops,
                            void *ctx, struct fl_session_shell **ret)
{
    struct fl_session_shell *s = calloc(1, sizeof(*s));
    int rv;

    if (s == NULL) {
        return FL_ENOMEM;
    }
    s->ops = ops;
    s->ctx = ctx;
    rv = fl_session_create(conf, &s->session);
    if (rv != FL_OK) {
        free(s);
        return rv;
    }
    *ret = s;
    return FL_OK;
}

void fl_session_shell_free(struct fl_session_shell *s)
{
    if (s != NULL) {
        fl_session_free(s->session);
        free(s);
    }
}

void fl_session_shell_stop(struct fl_session_shell *s)
{
    if (s != NULL) {
        s->stopped = true;
    }
}

bool fl_session_shell_stopped(const struct fl_session_shell *s)
{
    return s->stopped;
}

const struct fl_session *fl_session_shell_session(const struct fl_session_shell *s)
{
    return s->session;
}
