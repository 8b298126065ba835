#ifndef FL_CLIENTD_EVALUATION_JOB_H
#define FL_CLIENTD_EVALUATION_JOB_H

/* Evaluation jobs on the training thread, and their results for the session. Threading: the loop.
 */

#include "client/daemon/jobs.h"
#include "client/work/evaluation.h"

struct fl_evaluation_job;

struct fl_evaluations {
    const struct fl_jobs *jobs;       /* borrowed, as is the next one */
    const struct fl_worker *worker;   /* what evaluates */
    struct fl_evaluation_job *newest; /* NULL: none */
};

/* Start an evaluation of the model in `inputs`, which it takes. `task` is the newest task. */
void fl_evaluations_begin(struct fl_evaluations *evaluations, uint64_t round, double rate,
                          const struct fl_task *task, struct fl_inputs *inputs);
/* Cancel a running evaluation, because training has priority. Returns at once. */
void fl_evaluations_leave(struct fl_evaluations *evaluations);

#endif
