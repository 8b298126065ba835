/*
 * Jobs of the coordinator on the io, db and work threads. A job owns copies of all it needs, runs
 * on its thread and returns to the coordinator's loop, where its result is an event of the next
 * step.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/figures/figures_text.h"
#include "server/daemon/runtime_jobs.h"
#include "server/work/measure.h"
#include "server/work/persist.h"

void fl_job_free(struct fl_job *job)
{
    size_t i;

    for (i = 0; i < job->e.n_parts; i++) {
        free(job->parts[i].divergence);
        free(job->parts[i].units);
    }
    free(job->parts);
    free(job->clients);
    fl_file_unref(job->offered.file);
    fl_blob_unref(job->theta);
    fl_aggregation_done(&job->aggregation);
    free(job);
}

static void *job_copy_bytes(const void *data, size_t len)
{
    void *copy = data != NULL && len > 0 ? malloc(len) : NULL;

    if (copy != NULL) {
        (void)memcpy(copy, data, len);
    }
    return copy;
}

static bool copy_parts(struct fl_job *job, const struct fl_effect *e, size_t n_units)
{
    size_t i;

    job->parts = calloc(e->n_parts > 0 ? e->n_parts : 1, sizeof(*job->parts));
    if (job->parts == NULL) {
        return false;
    }
    for (i = 0; i < e->n_parts; i++) {
        const struct fl_participant_rec *from = &e->parts[i];

        job->parts[i] = *from;
        job->parts[i].divergence = job_copy_bytes(from->divergence, n_units * sizeof(float));
        job->parts[i].units = job_copy_bytes(from->units, n_units);
        job->e.n_parts = i + 1;
        if ((from->divergence != NULL) != (job->parts[i].divergence != NULL) ||
            (from->units != NULL) != (job->parts[i].units != NULL))
        {
            return false;
        }
    }
    return true;
}

struct fl_job *fl_job_new(struct fl_runtime *runtime, const struct fl_effect *e)
{
    struct fl_job *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return NULL;
    }
    job->runtime = runtime;
    job->e = *e;
    job->e.n_parts = 0; /* Only copied entries count. */
    job->e.units = NULL;
    job->e.text = NULL;
    job->aggregation.bad_client = FL_NO_CLIENT;
    if (e->record != NULL) {
        job->record = *e->record;
        job->e.record = &job->record;
    }
    if (e->type == FL_EFF_PERSIST_PAUSE && e->text != NULL) {
        FL_REQUIRE(fl_str_copy(job->pause, sizeof(job->pause), e->text) == FL_OK);
        job->e.text = job->pause;
    }
    if (!copy_parts(job, e, fl_layout_units(runtime->srv->conf->layout))) {
        fl_job_free(job);
        return NULL;
    }
    job->e.parts = job->parts;
    if (e->n_clients > 0) {
        job->clients = job_copy_bytes(e->clients, e->n_clients * sizeof(*e->clients));
        job->e.clients = job->clients;
        if (job->clients == NULL) {
            fl_job_free(job);
            return NULL;
        }
    }
    return job;
}

void fl_runtime_work_failed(struct fl_runtime *runtime, uint64_t seq, int code, const char *reason,
                            uint32_t client)
{
    struct fl_event event = {.type = FL_EV_WORK_FAILED};

    fl_log(runtime->srv->log, FL_LOG_ERROR, "server", "work failed: %s", reason);
    fl_runtime_own_failure(runtime, reason);
    if (code == FL_ENOSPC) { /* The job is retried. */
        fl_runtime_down(runtime, fl_net_msg_new(runtime, FL_NET_MSG_NO_SPACE));
    }
    event.u.failed_work.seq = seq;
    event.u.failed_work.code = code;
    event.u.failed_work.reason = reason;
    event.u.failed_work.client = client;
    fl_runtime_step(runtime, &event);
}

/* A job that could not be submitted: reported after the effects of this step are done. */
struct unsubmitted {
    struct fl_runtime *runtime;
    uint64_t seq;
};

static void job_report_unsubmitted(void *arg)
{
    struct unsubmitted *u = arg;

    fl_runtime_work_failed(u->runtime, u->seq, FL_ENOMEM, "out of memory", FL_NO_CLIENT);
    free(u);
}

void fl_job_submit(struct fl_runtime *runtime, struct fl_worker_thread *thread, struct fl_job *job,
                   const struct fl_effect *e, fl_loop_cb work, fl_loop_cb done)
{
    struct unsubmitted *u;

    if (job != NULL && fl_worker_thread_submit(thread, work, runtime->loop, done, job) == FL_OK) {
        return;
    }
    if (job != NULL) {
        fl_job_free(job);
    }
    u = malloc(sizeof(*u));
    if (u != NULL) {
        *u = (struct unsubmitted){runtime, e->seq};
    }
    if (u == NULL || fl_loop_post(runtime->loop, job_report_unsubmitted, u) != FL_OK) {
        fl_serverd_no_memory(runtime->srv, "reporting that a job could not be submitted");
    }
}

bool fl_job_failed(struct fl_job *job)
{
    if (job->code == FL_OK) {
        fl_runtime_own_failure(job->runtime, NULL);
        return false;
    }
    fl_runtime_work_failed(job->runtime, job->e.seq, job->code, fl_err_text(&job->err, job->code),
                           job->aggregation.bad_client);
    return true;
}

/* --- records --- */

static void persist_work(void *arg)
{
    struct fl_job *job = arg;

    job->code = fl_persist_run(&job->runtime->federation, &job->e,
                               job->has_offers ? &job->offered : NULL, &job->err);
}

static void persist_done(void *arg)
{
    struct fl_job *job = arg;
    struct fl_event event = {.type = FL_EV_PERSISTED};

    if (job->has_offers) {
        fl_runtime_offered(job->runtime, &job->offered, job->code);
    }
    if (!fl_job_failed(job)) {
        event.u.seq = job->e.seq;
        fl_runtime_step(job->runtime, &event);
    }
    fl_job_free(job);
}

void fl_runtime_persist(struct fl_runtime *runtime, const struct fl_effect *e)
{
    struct fl_job *job = fl_job_new(runtime, e);

    if (job != NULL) {
        job->has_offers = e->type == FL_EFF_FORGET_CLIENTS ||
                          (e->type == FL_EFF_PERSIST_SELECTION &&
                           (runtime->offers_stale ||
                            fl_offering_wanted(&runtime->federation, &runtime->progress)));
    }
    fl_job_submit(runtime, runtime->srv->db, job, e, persist_work, persist_done);
}

/* --- evaluation --- */

static void job_evaluate_work(void *arg)
{
    struct fl_job *job = arg;
    struct fl_runtime *runtime = job->runtime;

    job->code = fl_evaluator_run(runtime->evaluator, fl_blob_floats(job->theta), &runtime->cancel,
                                 &job->accuracy, &job->loss, &job->err);
}

static void job_evaluate_done(void *arg)
{
    struct fl_job *job = arg;
    struct fl_event event = {.type = FL_EV_EVALUATED};

    /* Cancelled because the server stops: the next start evaluates again. */
    if (job->code != FL_ECANCELED && !fl_job_failed(job)) {
        event.u.evaluated.seq = job->e.seq;
        event.u.evaluated.accuracy = job->accuracy;
        event.u.evaluated.loss = job->loss;
        fl_runtime_step(job->runtime, &event);
    }
    fl_job_free(job);
}

void fl_runtime_evaluate(struct fl_runtime *runtime, const struct fl_effect *e)
{
    struct fl_job *job = fl_job_new(runtime, e);
    struct fl_blob *theta = fl_progress_model(&runtime->progress)->theta;

    if (job != NULL) {
        job->theta = fl_blob_ref(theta);
    }
    fl_job_submit(runtime, runtime->srv->work, job, e, job_evaluate_work, job_evaluate_done);
}

/* --- commit --- */

static void commit_work(void *arg)
{
    struct fl_job *job = arg;
    const struct fl_commit commit = {.progress = &job->runtime->progress,
                                     .record = &job->record,
                                     .clients = job->clients,
                                     .n_clients = job->e.n_clients,
                                     .wall_ms = fl_clock_wall_ms(),
                                     .epoch = job->e.epoch};

    job->code = fl_commit_run(&job->runtime->federation, &commit, &job->err);
}

static void report_round(const struct fl_runtime *runtime, const struct fl_round_rec *r)
{
    char figures[256];

    /* Round and bytes appear as key=value too: log_format json makes them members. */
    fl_log(runtime->srv->log, FL_LOG_NOTICE, "server",
           "round %llu committed: round=%llu selected=%u responders=%u%s train_loss=%.4f "
           "uplink_bytes=%llu uplink_bytes_full=%llu",
           (unsigned long long)r->round, (unsigned long long)r->round, r->n_selected,
           r->n_responders, fl_figures_log(&fl_round_rows, r, figures, sizeof(figures)),
           r->train_loss, (unsigned long long)r->uplink_bytes,
           (unsigned long long)r->uplink_bytes_full);
}

static void commit_done(void *arg)
{
    struct fl_job *job = arg;
    struct fl_runtime *runtime = job->runtime;
    struct fl_event event = {.type = FL_EV_COMMITTED};

    if (!fl_job_failed(job)) {
        report_round(runtime, &job->record);
        fl_progress_committed(&runtime->progress, &job->record);
        event.u.seq = job->e.seq;
        fl_runtime_step(runtime, &event);
    }
    fl_job_free(job);
}

void fl_runtime_commit(struct fl_runtime *runtime, const struct fl_effect *e)
{
    fl_job_submit(runtime, runtime->srv->db, fl_job_new(runtime, e), e, commit_work, commit_done);
}
