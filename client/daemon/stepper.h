#ifndef FL_CLIENTD_STEPPER_H
#define FL_CLIENTD_STEPPER_H

/*
 * Runs the session (client/core) on a loop: events come from every part of the daemon, effects go
 * to one function, the deadline to a timer. An event that arises while effects are carried out is
 * queued.
 *
 * Threading: everything on the loop.
 */

#include "client/core/session.h"
#include "client/work/fault.h"
#include "libfl/net/loop.h"

struct fl_stepper;

typedef void fl_stepper_effect_fn(void *ctx, const struct fl_session_effect *effect);

/* Errors of fl_session_create(); FL_ENOMEM. */
FL_MUST_CHECK int fl_stepper_create(const struct fl_session_conf *conf, struct fl_loop *loop,
                                    fl_stepper_effect_fn *carry_out, void *ctx,
                                    struct fl_stepper **ret);
/* Ignore all further events; call it before the loop is freed. NULL is allowed. */
void fl_stepper_stop(struct fl_stepper *stepper);
bool fl_stepper_stopped(const struct fl_stepper *stepper);
/* Call it when nothing can step it any more: after the loop is freed. NULL is allowed. */
void fl_stepper_free(struct fl_stepper *stepper);

const struct fl_session *fl_stepper_session(const struct fl_stepper *stepper);

/* Step the session with `event`, whose time is filled in. */
void fl_stepper_step(struct fl_stepper *stepper, struct fl_session_event *event);
void fl_stepper_key(struct fl_stepper *stepper, enum fl_session_event_type type,
                    struct fl_round_key key);
void fl_stepper_failed(struct fl_stepper *stepper, enum fl_session_event_type type,
                       struct fl_round_key key, enum fl_fault fault, const char *reason);

#endif
