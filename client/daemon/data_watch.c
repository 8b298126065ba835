#include "client/daemon/data_watch.h"

#include <stdio.h>
#include <stdlib.h>

#include "client/daemon/clientd_preflight.h"
#include "libfl/base/fs.h"

struct reading_job {
    struct fl_data_watch *owner;
    fl_data_ready_fn *ready;
    void *ctx;
    struct fl_dataset *train, *test; /* the new data; after the swap, the previous data to free */
    uint64_t stamp;
    int code;
    struct fl_err err;
};

/* A training program reads its files itself, so only the existence of their folder is checked. */
static bool data_watch_exists(const struct fl_client_conf *conf)
{
    return conf->main->trainer == FL_TRAINER_COMMAND ? fl_fs_exists(conf->data->path)
                                                     : fl_dataset_has(conf->data->path, "train");
}

static void data_watch_log_missing(struct fl_data_watch *w, bool gone)
{
    if (gone && !w->gone) {
        fl_log(w->jobs->log, FL_LOG_ERROR, "client",
               "the data in '%s' is missing: not training until it is back ('data.reload: never' "
               "trains on what was read)",
               w->conf->data->path);
    } else if (!gone && w->gone) {
        fl_log(w->jobs->log, FL_LOG_NOTICE, "client", "the data in '%s' is back",
               w->conf->data->path);
    }
    w->gone = gone;
}

enum fl_data_state fl_data_watch_look(struct fl_data_watch *w)
{
    const struct fl_client_conf *conf = w->conf;

    if (conf->data->path[0] == '\0' || conf->data->reload == FL_RELOAD_NEVER) {
        return FL_DATA_SAME;
    }
    data_watch_log_missing(w, !data_watch_exists(conf));
    if (w->gone) {
        return FL_DATA_GONE;
    }
    return conf->main->trainer == FL_TRAINER_COMMAND ||
                   fl_dataset_stamp(conf->data->path) == w->data->stamp
               ? FL_DATA_SAME
               : FL_DATA_CHANGED;
}

static void data_reading_work(void *arg)
{
    struct reading_job *job = arg;
    struct fl_data_watch *w = job->owner;

    /* Taken before reading: a change during reading counts as another change. */
    job->stamp = fl_dataset_stamp(w->conf->data->path);
    job->code = fl_client_open_data(w->conf, &job->train, &job->test, &job->err);
    if (job->code == FL_OK) {
        job->code = fl_trainer_set_data(w->worker->trainer, job->train, job->test, &job->err);
    }
}

static void data_watch_replace(struct reading_job *job)
{
    struct fl_data_watch *w = job->owner;
    struct fl_local_data *data = w->data;
    struct fl_dataset *train = data->train;
    struct fl_dataset *test = data->test;

    fl_log(
        w->jobs->log, FL_LOG_NOTICE, "client",
        "data '%s' changed and was read again: samples=%zu (before: %zu) test=%zu (before: %llu)",
        w->conf->data->path, job->train->n, train->n, job->test != NULL ? job->test->n : 0,
        (unsigned long long)data->evaluation_samples);
    data->train = job->train;
    data->test = job->test;
    data->samples = data->train->n;
    data->evaluation_samples = data->test != NULL ? data->test->n : 0;
    data->stamp = job->stamp;
    job->train = train;
    job->test = test;
}

static void data_reading_done(void *arg)
{
    struct reading_job *job = arg;
    struct fl_data_watch *w = job->owner;
    const char *why = NULL;

    if (job->code == FL_OK) {
        data_watch_replace(job);
    } else {
        why = fl_err_text(&job->err, job->code);
        fl_log_peer(
            w->jobs->log, FL_LOG_ERROR, "client", w->conf->data->path,
            "the data changed and cannot be read, not training, retrying at the next reconnect: %s",
            why);
    }
    if (!fl_session_shell_stopped(w->jobs->shell)) {
        job->ready(job->ctx, why);
    }
    fl_dataset_free(job->train);
    fl_dataset_free(job->test);
    free(job);
}

void fl_data_watch_refresh(struct fl_data_watch *w, fl_data_ready_fn *ready, void *ctx)
{
    enum fl_data_state state = fl_data_watch_look(w);
    struct reading_job *job;

    if (state != FL_DATA_CHANGED) {
        ready(ctx, state == FL_DATA_GONE ? "the data is missing" : NULL);
        return;
    }
    job = calloc(1, sizeof(*job));
    if (job != NULL) {
        job->owner = w;
        job->ready = ready;
        job->ctx = ctx;
        if (fl_jobs_submit(w->jobs, data_reading_work, data_reading_done, job) == FL_OK) {
            return;
        }
        free(job);
    }
    ready(ctx, fl_strerror(FL_ENOMEM));
}
