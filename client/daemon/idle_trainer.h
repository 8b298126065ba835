#ifndef FL_CLIENTD_RESTING_H
#define FL_CLIENTD_RESTING_H

/*
 * Stops a persistent training program after an idle time: a timer of the loop submits the check to
 * the training thread, where the program's tasks run, while no job is pending.
 */

#include "client/daemon/jobs.h"
#include "client/work/worker.h"

struct fl_resting {
    const struct fl_jobs *jobs;
    const struct fl_worker *worker;
    struct fl_timer *timer; /* owned; NULL: no idle limit */
    uint64_t every_ms;
    bool check_queued; /* a check is pending on the training thread */
};

/*
 * Checks often enough that a program outlives `idle_exit_ms` only slightly; 0: never stop it.
 * FL_ENOMEM.
 */
FL_MUST_CHECK int fl_resting_start(struct fl_resting *resting, const struct fl_jobs *jobs,
                                   const struct fl_worker *worker, uint64_t idle_exit_ms);
/* Call it before the loop is freed. All zero is allowed. */
void fl_resting_stop(struct fl_resting *resting);
/* At shutdown: cancels the program's current task and sends it `bye` from the training thread. */
void fl_resting_end(const struct fl_jobs *jobs, const struct fl_worker *worker);

#endif
