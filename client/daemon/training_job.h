#ifndef FL_CLIENTD_TRAINING_JOB_H
#define FL_CLIENTD_TRAINING_JOB_H

/* Training jobs on the training thread, and their events for the session. Threading: the loop. */

#include "client/daemon/jobs.h"
#include "client/store/pending_result.h"
#include "client/work/training.h"

struct fl_training_job;

struct fl_trainings {
    const struct fl_jobs *jobs;        /* borrowed, as are the next two */
    const struct fl_worker *worker;    /* what trains */
    struct fl_pending_result *pending; /* receives the results */
    struct fl_training_job *newest;    /* NULL: none */
};

/* Start training for `key`. `task` is the newest task; takes `inputs`. Errors are logged. */
FL_MUST_CHECK int fl_trainings_begin(struct fl_trainings *trainings, const struct fl_task *task,
                                     struct fl_round_key key, struct fl_inputs *inputs,
                                     struct fl_err *err);
/* Is the newest job for this round? */
bool fl_trainings_is(const struct fl_trainings *trainings, struct fl_round_key key);
/* Cancel the newest job; it ends as soon as the trainer stops. */
void fl_trainings_cancel(struct fl_trainings *trainings);

#endif
