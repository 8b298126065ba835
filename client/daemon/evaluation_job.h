#ifndef FL_CLIENTD_EVALUATION_JOB_H
#define FL_CLIENTD_EVALUATION_JOB_H

/* Evaluations on the lane, and what the server hears of them. Threading: the loop. */

#include "client/daemon/connection.h"
#include "client/daemon/jobs.h"
#include "client/work/evaluation.h"

struct fl_evaluation_job;

struct fl_evaluations {
    const struct fl_jobs *jobs;       /* borrowed, as the next two */
    const struct fl_worker *worker;   /* what evaluates */
    struct fl_connection *connection; /* where the figures go */
    struct fl_evaluation_job *newest; /* NULL: none */
};

/* Of the model that is the one of `inputs`, which it takes; `task` is the newest. */
void fl_evaluations_begin(struct fl_evaluations *evaluations, uint64_t round, double rate,
                          const struct fl_task *task, struct fl_inputs *inputs);
/* Training comes first: it ends as soon as it can. */
void fl_evaluations_leave(struct fl_evaluations *evaluations);

#endif
