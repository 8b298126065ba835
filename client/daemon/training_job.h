#ifndef FL_CLIENTD_TRAINING_JOB_H
#define FL_CLIENTD_TRAINING_JOB_H

/* Trainings on the lane, and what the session hears of them. Threading: the loop. */

#include "client/daemon/jobs.h"
#include "client/store/pending_result.h"
#include "client/work/training.h"

struct fl_training_job;

struct fl_trainings {
    const struct fl_jobs *jobs;     /* borrowed, as the next two */
    const struct fl_worker *worker; /* what trains */
    struct fl_pending_result *held; /* where results go */
    struct fl_training_job *newest; /* NULL: none */
};

/* `task` is the newest; takes `inputs`. */
void fl_trainings_begin(struct fl_trainings *trainings, const struct fl_task *task,
                        struct fl_round_key key, struct fl_inputs *inputs);
/* Is the newest of this round? */
bool fl_trainings_is(const struct fl_trainings *trainings, struct fl_round_key key);
/* It ends as soon as it can. */
void fl_trainings_cancel(struct fl_trainings *trainings);

#endif
