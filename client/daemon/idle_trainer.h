#ifndef FL_CLIENTD_RESTING_H
#define FL_CLIENTD_RESTING_H

/*
 * A program that stays is told so when it has had nothing to do for long enough: a timer of the
 * loop asks for it on the lane, where its tasks are, when there are none.
 */

#include "client/daemon/jobs.h"
#include "client/work/worker.h"

struct fl_resting {
    const struct fl_jobs *jobs;
    const struct fl_worker *worker;
    struct fl_timer *timer; /* owned; NULL: nothing ever rests */
    uint64_t every_ms;
    bool asked; /* on the lane */
};

/* Looks so often that a program stays little longer than `idle_exit_ms`; 0: never. FL_ENOMEM. */
FL_MUST_CHECK int fl_resting_start(struct fl_resting *resting, const struct fl_jobs *jobs,
                                   const struct fl_worker *worker, uint64_t idle_exit_ms);
/* Before the loop goes. All zero is allowed. */
void fl_resting_stop(struct fl_resting *resting);
/* The client ends: what a program is at is cancelled, and it hears `bye` on the lane. */
void fl_resting_end(const struct fl_jobs *jobs, const struct fl_worker *worker);

#endif
