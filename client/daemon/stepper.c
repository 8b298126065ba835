/*
 * Runs the session state machine on the loop: steps it with events, carries out its effects, and
 * sets one timer to its deadline. Events that arise while effects are carried out are queued. It
 * holds no logic of the session itself (client/core).
 */

#include "client/daemon/stepper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"

/*
 * Most events that one step can cause: at most one failure per effect, and there are fewer effects.
 */
#define LATER_MAX 32

/* An event that arose while effects are being carried out, queued. */
struct queued_event {
    struct fl_session_event event;
    char reason[FL_ERR_BUF_SIZE]; /* a copy, because the caller's text does not live long enough */
};

struct fl_stepper {
    struct fl_session *session;
    struct fl_timer *timer;
    fl_stepper_effect_fn *carry_out;
    void *ctx;
    bool stepping, stopped;
    struct queued_event later[LATER_MAX];
    size_t n_later;
};

/* Allocates nothing, so that an out-of-memory failure can be queued, too. */
static void stepper_postpone(struct fl_stepper *s, const struct fl_session_event *event)
{
    struct queued_event *later = &s->later[s->n_later];

    FL_REQUIRE(event->type == FL_CEV_DISCONNECTED || event->type == FL_CEV_FETCH_FAILED ||
               event->type == FL_CEV_TRAIN_FAILED || event->type == FL_CEV_PUSH_FAILED ||
               event->type == FL_CEV_EVALUATE_FAILED || event->type == FL_CEV_FETCHED);
    FL_REQUIRE(s->n_later < LATER_MAX);
    later->event = *event;
    if (event->type != FL_CEV_FETCHED) {
        (void)snprintf(later->reason, sizeof(later->reason), "%s", event->u.failed.reason);
    }
    s->n_later++;
}

static void stepper_set_timer(struct fl_stepper *s)
{
    uint64_t deadline = s->n_later > 0 ? 0 : fl_session_deadline(s->session);

    if (s->stopped) {
        return;
    }
    if (deadline == UINT64_MAX) {
        fl_timer_stop(s->timer);
    } else {
        uint64_t now = fl_clock_ms();

        fl_timer_start(s->timer, deadline > now ? deadline - now : 0);
    }
}

static void stepper_step_now(struct fl_stepper *s, struct fl_session_event *event)
{
    struct fl_session_effects effects = {0};
    size_t i;

    s->stepping = true;
    event->now_ms = fl_clock_ms();
    fl_session_step(s->session, event, &effects);
    for (i = 0; i < effects.n; i++) {
        s->carry_out(s->ctx, &effects.list[i]);
    }
    s->stepping = false;
}

/* Steps the oldest queued event; events that it causes are queued behind the others. */
static void stepper_step_postponed(struct fl_stepper *s)
{
    struct queued_event first = s->later[0];

    (void)memmove(s->later, s->later + 1, --s->n_later * sizeof(s->later[0]));
    if (first.event.type != FL_CEV_FETCHED) {
        first.event.u.failed.reason = first.reason;
    }
    stepper_step_now(s, &first.event);
}

void fl_stepper_step(struct fl_stepper *s, struct fl_session_event *event)
{
    size_t waiting = s->n_later;

    if (s->stopped) {
        return;
    }
    if (s->stepping) {
        stepper_postpone(s, event);
        return;
    }
    for (; waiting > 0 && !s->stopped; waiting--) { /* Queued events come first. */
        stepper_step_postponed(s);
    }
    if (!s->stopped) {
        stepper_step_now(s, event);
    }
    stepper_set_timer(s);
}

void fl_stepper_key(struct fl_stepper *s, enum fl_session_event_type type, struct fl_round_key key)
{
    struct fl_session_event event = {.type = type};

    event.u.key = key;
    fl_stepper_step(s, &event);
}

void fl_stepper_failed(struct fl_stepper *s, enum fl_session_event_type type,
                       struct fl_round_key key, enum fl_fault fault, const char *reason)
{
    struct fl_session_event event = {.type = type};

    event.u.failed.key = key;
    event.u.failed.reason = reason;
    event.u.failed.permanent = fault != FL_FAULT_PASSING;
    event.u.failed.diverged = fault == FL_FAULT_DIVERGED;
    event.u.failed.keeps = fault == FL_FAULT_UNDELIVERED;
    fl_stepper_step(s, &event);
}

static void stepper_on_timer(void *arg)
{
    struct fl_session_event event = {.type = FL_CEV_TICK};

    fl_stepper_step(arg, &event);
}

int fl_stepper_create(const struct fl_session_conf *conf, struct fl_loop *loop,
                      fl_stepper_effect_fn *carry_out, void *ctx, struct fl_stepper **ret)
{
    struct fl_stepper *s = calloc(1, sizeof(*s));
    int rv;

    if (s == NULL) {
        return FL_ENOMEM;
    }
    *s = (struct fl_stepper){.carry_out = carry_out, .ctx = ctx};
    rv = fl_session_create(conf, &s->session);
    if (rv == FL_OK) {
        rv = fl_timer_create(loop, stepper_on_timer, s, &s->timer);
    }
    if (rv != FL_OK) {
        fl_stepper_free(s);
        return rv;
    }
    *ret = s;
    return FL_OK;
}

void fl_stepper_stop(struct fl_stepper *s)
{
    if (s == NULL || s->stopped) {
        return;
    }
    s->stopped = true;
    fl_timer_close(s->timer);
}

bool fl_stepper_stopped(const struct fl_stepper *s)
{
    return s->stopped;
}

void fl_stepper_free(struct fl_stepper *s)
{
    if (s == NULL) {
        return;
    }
    fl_stepper_stop(s);
    fl_session_free(s->session);
    free(s);
}

const struct fl_session *fl_stepper_session(const struct fl_stepper *s)
{
    return s->session;
}
