#include "client/daemon/stepper.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"

/* What one step can cause at most: each of its effects may fail at once, and there are fewer. */
#define LATER_MAX 32

/* An event that came up while effects are being carried out waits for its turn. */
struct later {
    struct fl_session_event event;
    char reason[FL_ERR_BUF_SIZE]; /* the caller's text goes away */
};

struct fl_stepper {
    struct fl_session *session;
    struct fl_timer *timer;
    fl_stepper_effect_fn *carry_out;
    void *ctx;
    bool stepping, stopped;
    struct later later[LATER_MAX];
    size_t n_later;
};

/* Nothing is allocated: what could not be begun for want of memory has to be heard. */
static void postpone(struct fl_stepper *s, const struct fl_session_event *event)
{
    struct later *later = &s->later[s->n_later];

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

static void set_timer(struct fl_stepper *s)
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

static void step(struct fl_stepper *s, struct fl_session_event *event)
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

/* The oldest of those that wait; what it causes in turn waits behind the others. */
static void step_later(struct fl_stepper *s)
{
    struct later first = s->later[0];

    (void)memmove(s->later, s->later + 1, --s->n_later * sizeof(s->later[0]));
    if (first.event.type != FL_CEV_FETCHED) {
        first.event.u.failed.reason = first.reason;
    }
    step(s, &first.event);
}

void fl_stepper_step(struct fl_stepper *s, struct fl_session_event *event)
{
    size_t waiting = s->n_later;

    if (s->stopped) {
        return;
    }
    if (s->stepping) {
        postpone(s, event);
        return;
    }
    for (; waiting > 0 && !s->stopped; waiting--) { /* They came first. */
        step_later(s);
    }
    if (!s->stopped) {
        step(s, event);
    }
    set_timer(s);
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

static void on_timer(void *arg)
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
        rv = fl_timer_create(loop, on_timer, s, &s->timer);
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
