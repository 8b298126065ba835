/* Jobs of the coordinator (coord_job.h): copies of their effects, and their work in server/work. */
#include "server/shell/coord_job.h"

#include <stdlib.h>
#include <string.h>

#include "server/shell/coord_shell.h"
#include "server/work/persist.h"

static void job_free_parts(struct fl_participant_rec *parts, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        free(parts[i].divergence);
        free(parts[i].units);
        free((char *)(uintptr_t)parts[i].remark);
        free((char *)(uintptr_t)parts[i].received.metrics);
        free((char *)(uintptr_t)parts[i].trained.metrics);
    }
    free(parts);
}

static void job_free_evals(struct fl_coord_job *job)
{
    size_t i;

    for (i = 0; i < job->e.n_evals; i++) {
        free((char *)(uintptr_t)job->evals[i].name);
        free((char *)(uintptr_t)job->evals[i].received_metrics);
        free((char *)(uintptr_t)job->evals[i].personal_metrics);
    }
    free(job->evals);
}

void fl_coord_job_free(struct fl_coord_job *job)
{
    if (job == NULL) {
        return;
    }
    job_free_parts(job->parts, job->e.n_parts);
    job_free_parts(job->ended, job->e.n_ended);
    job_free_evals(job);
    free(job->clients);
    free(job->distance);
    fl_file_unref(job->collection.file);
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

static bool job_copy_text(const char *from, const char **ret)
{
    *ret = from != NULL ? fl_str_dup(from) : NULL;
    return from == NULL || *ret != NULL;
}

/* `*ret_n` are those that are whole, also on a failure. */
static bool job_copy_parts(const struct fl_participant_rec *parts, size_t n, size_t n_units,
                           struct fl_participant_rec **ret, size_t *ret_n)
{
    struct fl_participant_rec *copies = calloc(n > 0 ? n : 1, sizeof(*copies));
    size_t i;

    *ret = copies;
    for (i = 0; copies != NULL && i < n; i++) {
        const struct fl_participant_rec *from = &parts[i];
        struct fl_participant_rec *to = &copies[i];

        *to = *from;
        to->remark = NULL; /* Borrowed until it is a copy, as the next two. */
        to->received.metrics = NULL;
        to->trained.metrics = NULL;
        to->divergence = job_copy_bytes(from->divergence, n_units * sizeof(float));
        to->units = job_copy_bytes(from->units, n_units);
        *ret_n = i + 1;
        if (!job_copy_text(from->remark, &to->remark) ||
            !job_copy_text(from->received.metrics, &to->received.metrics) ||
            !job_copy_text(from->trained.metrics, &to->trained.metrics) ||
            (from->divergence != NULL) != (to->divergence != NULL) ||
            (from->units != NULL) != (to->units != NULL))
        {
            return false;
        }
    }
    return copies != NULL;
}

/* As job_copy_parts(). */
static bool job_copy_evals(struct fl_coord_job *job, const struct fl_effect *e)
{
    size_t i;

    job->evals = calloc(e->n_evals + 1, sizeof(*job->evals));
    for (i = 0; job->evals != NULL && i < e->n_evals; i++) {
        const struct fl_client_eval *from = &e->evals[i];
        struct fl_client_eval *to = &job->evals[i];

        *to = *from;
        to->name = to->received_metrics = to->personal_metrics = NULL;
        job->e.n_evals = i + 1;
        if (!job_copy_text(from->name, &to->name) ||
            !job_copy_text(from->received_metrics, &to->received_metrics) ||
            !job_copy_text(from->personal_metrics, &to->personal_metrics))
        {
            return false;
        }
    }
    return job->evals != NULL;
}

/* AGGREGATE, and of an attempt that ended: the records of the participants' clients, in the order
   of the participants. */
static bool job_copy_clients(struct fl_coord_job *job, const struct fl_effect *e)
{
    const struct fl_coord *coord = job->shell->coord;
    bool theirs = e->type == FL_EFF_AGGREGATE || e->n_ended > 0;
    const struct fl_participant_rec *parts = e->n_ended > 0 ? e->ended : e->parts;
    size_t n = e->n_ended > 0 ? e->n_ended : theirs ? e->n_parts : e->n_clients;
    size_t i;

    job->clients = calloc(n + 1, sizeof(*job->clients));
    if (job->clients == NULL) {
        return false;
    }
    for (i = 0; i < n; i++) {
        job->clients[i] = theirs ? *fl_coord_part_client(coord, parts[i].client) : e->clients[i];
    }
    job->e.clients = job->clients;
    return true;
}

struct fl_coord_job *fl_coord_job_new(struct fl_coord_shell *shell, const struct fl_effect *e)
{
    struct fl_coord_job *job = calloc(1, sizeof(*job));
    size_t n_units;

    if (job == NULL) {
        return NULL;
    }
    job->shell = shell;
    job->e = *e;
    job->e.n_parts = 0; /* Only copied entries count. */
    job->e.n_ended = 0;
    job->e.n_evals = 0;
    job->e.units = NULL;
    job->e.text = NULL;
    job->aggregation.bad_client = FL_NO_CLIENT;
    if (e->record != NULL) {
        job->record = *e->record;
        job->e.record = &job->record;
    }
    if (e->type == FL_EFF_PERSIST_PAUSE && e->text != NULL) {
        FL_REQUIRE(fl_str_copy(job->text, sizeof(job->text), e->text) == FL_OK);
        job->e.text = job->text;
    } else if (e->n_ended > 0) {
        job->e.text = fl_str_ends(job->text, FL_PART_REMARK, e->text);
    }
    n_units = fl_layout_units(shell->federation->layout);
    if (!job_copy_parts(e->parts, e->n_parts, n_units, &job->parts, &job->e.n_parts) ||
        !job_copy_parts(e->ended, e->n_ended, n_units, &job->ended, &job->e.n_ended) ||
        !job_copy_clients(job, e) || !job_copy_evals(job, e))
    {
        fl_coord_job_free(job);
        return NULL;
    }
    job->e.parts = job->parts;
    job->e.ended = job->ended;
    job->e.evals = job->evals;
    job->summaries =
        e->type == FL_EFF_FORGET_CLIENTS ||
        (e->type == FL_EFF_PERSIST_SELECTION &&
         (shell->summaries_stale || fl_collection_wanted(shell->federation, shell->progress)));
    if (e->type == FL_EFF_EVALUATE) {
        job->theta = fl_blob_ref(fl_progress_model(shell->progress)->theta);
    }
    if (e->type == FL_EFF_AGGREGATE) {
        /* The models that the round began with are replaced only by a commit, which comes later. */
        job->aggregation = fl_aggregation_of(
            &job->e, job->clients, fl_coord_learning_rate(shell->conf, e->round), shell->progress);
    }
    return job;
}

static int job_commit(struct fl_coord_job *job)
{
    const struct fl_commit commit = {.progress = job->shell->progress,
                                     .record = &job->record,
                                     .clients = job->clients,
                                     .n_clients = job->e.n_clients,
                                     .parts = job->parts,
                                     .n_parts = job->e.n_parts,
                                     .evals = job->evals,
                                     .n_evals = job->e.n_evals,
                                     .wall_ms = job->record.ended_ms,
                                     .epoch = job->e.epoch};

    return fl_commit_run(job->shell->federation, &commit, &job->err);
}

void fl_coord_job_run(struct fl_coord_job *job)
{
    const struct fl_federation *federation = job->shell->federation;

    FL_REQUIRE(job->e.type != FL_EFF_EVALUATE);
    job->code = job->e.type == FL_EFF_AGGREGATE
                    ? fl_aggregation_run(federation, &job->aggregation, &job->err)
                : job->e.type == FL_EFF_COMMIT
                    ? job_commit(job)
                    : fl_persist_run(federation, &job->e, job->summaries ? &job->collection : NULL,
                                     &job->err);
}
