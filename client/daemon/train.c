/* One training on the lane, and what the session hears of it. */

#include <stdlib.h>

#include "client/daemon/client.h"
#include "client/work/training.h"
#include "libfl/base/clock.h"

/* A line about it so often. */
#define PROGRESS_MS 10000

struct fl_train_job {
    struct fl_clientd *cli;
    struct fl_round_key key;
    struct fl_training *training;
    uint64_t reported_ms;
    int code;
    struct fl_err err;
};

static void job_free(struct fl_train_job *job)
{
    fl_training_free(job->training);
    free(job);
}

static void progress(void *ctx, uint64_t done, uint64_t total)
{
    struct fl_train_job *job = ctx;
    uint64_t now = fl_clock_ms();

    if (now >= job->reported_ms + PROGRESS_MS) {
        job->reported_ms = now;
        fl_log(job->cli->log, FL_LOG_INFO, "client", "training round %llu: step %llu of %llu",
               (unsigned long long)job->key.round, (unsigned long long)done,
               (unsigned long long)total);
    }
}

static void train_work(void *arg)
{
    struct fl_train_job *job = arg;

    job->code = fl_training_run(job->training, &job->err);
}

static void trained(struct fl_clientd *cli, struct fl_train_job *job)
{
    fl_result_unref(cli->result);
    cli->result = fl_training_take(job->training);
    fl_log(cli->log, FL_LOG_INFO, "client", "trained round %llu: samples=%llu steps=%llu loss=%.4f",
           (unsigned long long)job->key.round, (unsigned long long)cli->result->samples,
           (unsigned long long)cli->result->steps, cli->result->train_loss);
    fl_clientd_step_key(cli, FL_CEV_TRAINED, job->key);
}

static void failed(struct fl_clientd *cli, const struct fl_train_job *job)
{
    const char *text = fl_err_text(&job->err, job->code);

    if (job->code != FL_ECANCELED) {
        fl_log(cli->log, FL_LOG_ERROR, "client", "training round %llu failed: %s",
               (unsigned long long)job->key.round, text);
    }
    if (job->code == FL_ENUMERIC) {
        fl_clientd_step_diverged(cli, FL_CEV_TRAIN_FAILED, job->key, text);
    } else {
        fl_clientd_step_failed(cli, FL_CEV_TRAIN_FAILED, job->key, text, job->code != FL_ECANCELED);
    }
}

static void train_done(void *arg)
{
    struct fl_train_job *job = arg;
    struct fl_clientd *cli = job->cli;

    if (cli->training == job) {
        cli->training = NULL;
    }
    if (!cli->stopping) {
        if (job->code == FL_OK) {
            trained(cli, job);
        } else {
            failed(cli, job);
        }
    }
    job_free(job);
}

static struct fl_train_job *job_new(struct fl_clientd *cli, struct fl_round_key key)
{
    struct fl_train_job *job = calloc(1, sizeof(*job));
    struct fl_task task = cli->task;

    if (job == NULL) {
        return NULL;
    }
    task.key = key;
    job->cli = cli;
    job->key = key;
    job->reported_ms = fl_clock_ms();
    if (fl_training_new(&cli->worker, &task, &cli->inputs, progress, job, &job->training) != FL_OK)
    {
        free(job);
        return NULL;
    }
    return job;
}

void fl_work_train(struct fl_clientd *cli, struct fl_round_key key)
{
    struct fl_train_job *job = NULL;

    fl_work_leave_evaluation(cli);
    if (cli->inputs.setup == NULL || cli->inputs.setup != cli->setup) {
        fl_clientd_step_failed(cli, FL_CEV_TRAIN_FAILED, key,
                               "what was fetched is for another model", false);
        return;
    }
    job = job_new(cli, key);
    if (job != NULL) {
        if (fl_lane_submit(cli->lane, train_work, cli->loop, train_done, job) == FL_OK) {
            cli->training = job;
            return;
        }
        job_free(job);
    }
    fl_clientd_step_failed(cli, FL_CEV_TRAIN_FAILED, key, "out of memory", true);
}

void fl_work_cancel(struct fl_clientd *cli)
{
    if (cli->training != NULL) {
        fl_training_cancel(cli->training->training);
    }
}
