#include "client/daemon/evaluation_job.h"

#include <stdatomic.h>
#include <stdlib.h>

struct fl_evaluation_job {
    struct fl_evaluations *owner;
    struct fl_inputs inputs; /* the model, and the setup that it was fetched for */
    struct fl_task task;
    double rate;
    atomic_bool cancel;
    struct fl_evaluation_result measured;
    int code;
    struct fl_err err;
};

static void evaluation_job_work(void *arg)
{
    struct fl_evaluation_job *job = arg;

    job->code = fl_input_decode(&job->inputs.list[0], job->inputs.setup,
                                job->owner->worker->state_dir, job->owner->jobs->log, &job->err);
    if (job->code != FL_OK) {
        return;
    }
    job->code =
        fl_evaluation_run(job->owner->worker,
                          &(struct fl_evaluation_request){
                              .setup = job->inputs.setup,
                              .task = &job->task,
                              .model = (const float *)(const void *)job->inputs.list[0].data,
                              .rate = job->rate,
                              .cancel = &job->cancel},
                          &job->measured, &job->err);
}

static void evaluation_job_done(void *arg)
{
    struct fl_evaluation_job *job = arg;
    struct fl_evaluations *e = job->owner;
    uint64_t round = job->task.key.round;
    const struct fl_wire_event evaluation = fl_session_evaluation(round, &job->measured);

    if (e->newest == job) {
        e->newest = NULL;
    }
    fl_session_shell_evaluated(e->jobs->shell, round, job->code, fl_err_text(&job->err, job->code),
                               &evaluation);
    fl_inputs_done(&job->inputs);
    free(job);
}

void fl_evaluations_begin(struct fl_evaluations *e, uint64_t round, double rate,
                          const struct fl_task *task, struct fl_inputs *inputs)
{
    struct fl_evaluation_job *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        job->owner = e;
        job->inputs = *inputs;
        job->task = *task;
        job->task.key = (struct fl_round_key){.round = round};
        job->rate = rate;
        atomic_init(&job->cancel, false);
        if (fl_jobs_submit(e->jobs, evaluation_job_work, evaluation_job_done, job) == FL_OK) {
            *inputs = (struct fl_inputs){.n = 0};
            e->newest = job;
            return;
        }
        free(job);
    }
    fl_inputs_done(inputs);
    fl_session_shell_evaluated(e->jobs->shell, round, FL_ENOMEM, fl_strerror(FL_ENOMEM), NULL);
}

void fl_evaluations_leave(struct fl_evaluations *e)
{
    if (e->newest != NULL) {
        atomic_store(&e->newest->cancel, true);
    }
}
