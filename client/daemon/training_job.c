#include "client/daemon/training_job.h"

#include <stdlib.h>

#include "libfl/base/clock.h"

/* Interval of progress log lines. */
#define PROGRESS_MS 10000

struct fl_training_job {
    struct fl_trainings *owner;
    struct fl_round_key key;
    struct fl_training *training;
    uint64_t reported_ms;
    int code;
    struct fl_err err;
};

static void training_job_free(struct fl_training_job *job)
{
    fl_training_free(job->training);
    free(job);
}

static void training_job_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct fl_training_job *job = ctx;
    uint64_t now = fl_clock_ms();

    if (now >= job->reported_ms + PROGRESS_MS) {
        job->reported_ms = now;
        fl_log(job->owner->jobs->log, FL_LOG_INFO, "client",
               "training round %llu: step %llu of %llu", (unsigned long long)job->key.round,
               (unsigned long long)done, (unsigned long long)total);
    }
}

static void train_work(void *arg)
{
    struct fl_training_job *job = arg;

    job->code = fl_training_run(job->training, &job->err);
}

static void training_job_trained(struct fl_trainings *t, struct fl_training_job *job)
{
    struct fl_result *result = fl_training_take(job->training);

    fl_log(t->jobs->log, FL_LOG_INFO, "client",
           "trained round %llu: samples=%llu steps=%llu loss=%.4f",
           (unsigned long long)job->key.round, (unsigned long long)result->samples,
           (unsigned long long)result->steps, result->train_loss);
    fl_pending_result_put(t->pending, result);
}

static void training_job_failed(const struct fl_trainings *t, struct fl_round_key key, int code,
                                const struct fl_err *err)
{
    if (code != FL_ECANCELED) {
        fl_log(t->jobs->log, FL_LOG_ERROR, "client", "training round %llu failed: %s",
               (unsigned long long)key.round, fl_err_text(err, code));
    }
}

static void train_done(void *arg)
{
    struct fl_training_job *job = arg;
    struct fl_trainings *t = job->owner;

    if (t->newest == job) {
        t->newest = NULL;
    }
    if (!fl_session_shell_stopped(t->jobs->shell)) {
        if (job->code == FL_OK) {
            training_job_trained(t, job);
        } else {
            training_job_failed(t, job->key, job->code, &job->err);
        }
        fl_session_shell_ended(t->jobs->shell, FL_ACTIVITY_TRAINING, job->key, job->code,
                               fl_err_text(&job->err, job->code));
    }
    training_job_free(job);
}

static int training_job_begin(struct fl_trainings *t, const struct fl_task *task,
                              struct fl_inputs *inputs, struct fl_err *err)
{
    struct fl_training_job *job = calloc(1, sizeof(*job));
    int rv = FL_ENOMEM;

    if (job == NULL) {
        fl_inputs_done(inputs);
        return rv;
    }
    job->owner = t;
    job->key = task->key;
    job->reported_ms = fl_clock_ms();
    rv = fl_training_new(t->worker, task, inputs, training_job_progress, job, &job->training, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_jobs_submit(t->jobs, train_work, train_done, job);
    if (rv != FL_OK) {
        goto fail;
    }
    t->newest = job;
    return FL_OK;
fail:
    training_job_free(job);
    return rv;
}

int fl_trainings_begin(struct fl_trainings *t, const struct fl_task *task, struct fl_round_key key,
                       struct fl_inputs *inputs, struct fl_err *err)
{
    struct fl_task of_key = *task;
    int rv;

    of_key.key = key;
    rv = training_job_begin(t, &of_key, inputs, err);
    if (rv != FL_OK) {
        training_job_failed(t, key, rv, err);
    }
    return rv;
}

bool fl_trainings_is(const struct fl_trainings *t, struct fl_round_key key)
{
    return t->newest != NULL && t->newest->key.round == key.round &&
           t->newest->key.attempt == key.attempt;
}

void fl_trainings_cancel(struct fl_trainings *t)
{
    if (t->newest != NULL) {
        fl_training_cancel(t->newest->training);
    }
}
