/*
 * Jobs of a spool file on the io thread, and their completions on the network loop. A writer is
 * reference-counted: its owner has one reference and each job another. Does not interpret the
 * bytes: fl_spool does.
 */

#include "server/network/spool_writer.h"

#include <stdlib.h>

struct fl_spool_writer {
    struct fl_frontend *frontend;
    unsigned refs; /* one of the owner, and one of each job */
    unsigned n_jobs;
    const struct fl_spool_writer_cbs *cbs; /* NULL: closed */
    void *ctx;
    struct fl_session_key key;
    char client[FL_NAME_MAX];
    struct fl_spool_part *parts;
    size_t n_parts;
    struct fl_spool *spool; /* owned by the io thread while there are jobs; NULL: not open */
};

struct job {
    struct fl_spool_writer *writer;
    int (*work)(struct job *job);  /* on the io thread */
    void (*done)(struct job *job); /* on the loop, unless the writer was closed */
    struct fl_spool_piece piece;   /* of an append */
    uint64_t received;
    struct fl_norms norms; /* of a finished file; owned */
    int code;
    struct fl_err err;
};

static void spool_writer_unref(struct fl_spool_writer *w)
{
    if (--w->refs > 0) {
        return;
    }
    fl_spool_close(w->spool); /* Open here only when the job to close it could not be submitted. */
    free(w->parts);
    free(w);
}

static void spool_job_run(void *arg)
{
    struct job *job = arg;

    job->code = job->work(job);
}

static void spool_job_complete(void *arg)
{
    struct job *job = arg;
    struct fl_spool_writer *w = job->writer;

    free(job->piece.memory);
    w->n_jobs--;
    if (w->cbs != NULL) {
        job->done(job);
    }
    free(job->norms.unit);
    free(job);
    spool_writer_unref(w);
}

static int spool_job_submit(struct fl_spool_writer *w, const struct job *what)
{
    struct job *job = calloc(1, sizeof(*job));
    int rv;

    if (job == NULL) {
        return FL_ENOMEM;
    }
    *job = *what;
    job->writer = w;
    rv = fl_frontend_on_disk(w->frontend, spool_job_run, spool_job_complete, job);
    if (rv != FL_OK) {
        free(job);
        return rv;
    }
    w->n_jobs++;
    w->refs++;
    return FL_OK;
}

/* --- opening --- */

static int open_work(struct job *job)
{
    struct fl_spool_writer *w = job->writer;
    const struct fl_spool_opening o = {.dir = w->frontend->setup.state_dir,
                                       .round = w->key.round,
                                       .attempt = w->key.attempt,
                                       .client = w->client,
                                       .parts = w->parts,
                                       .n_parts = w->n_parts,
                                       .recycled = w->frontend->recycled};

    return fl_spool_open(&o, &w->spool, &job->received, &job->err);
}

static void spool_job_opened(struct job *job)
{
    job->writer->cbs->opened(job->writer->ctx, job->code, job->received, &job->err);
}

int fl_spool_writer_open(const struct fl_spool_writer_setup *setup, struct fl_spool_writer **ret)
{
    struct fl_spool_writer *w = calloc(1, sizeof(*w));
    int rv;

    if (w == NULL) {
        return FL_ENOMEM;
    }
    *w = (struct fl_spool_writer){.frontend = setup->frontend,
                                  .refs = 1,
                                  .cbs = setup->cbs,
                                  .ctx = setup->ctx,
                                  .key = *setup->key,
                                  .parts = setup->parts,
                                  .n_parts = setup->n_parts};
    rv = fl_str_copy(w->client, sizeof(w->client), setup->client);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = spool_job_submit(w, &(struct job){.work = open_work, .done = spool_job_opened});
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = w;
    return FL_OK;
fail:
    w->parts = NULL; /* On error they stay the caller's. */
    spool_writer_unref(w);
    return rv;
}

/* --- pieces --- */

static int append_work(struct job *job)
{
    const struct fl_spool_piece *piece = &job->piece;
    struct fl_spool *spool = job->writer->spool;
    int rv;

    if (spool == NULL) {
        return fl_err_set(&job->err, FL_ESTATE, "the spool file could not be opened");
    }
    rv = fl_spool_write(spool, piece->offset, piece->data, piece->len, &job->err);
    if (rv == FL_ENOSPC && fl_recycled_count(job->writer->frontend->recycled) > 0) {
        fl_recycled_drop(job->writer->frontend->recycled);
        rv = fl_spool_write(spool, piece->offset, piece->data, piece->len, &job->err);
    }
    job->received = fl_spool_received(spool);
    return rv;
}

static void spool_job_appended(struct job *job)
{
    job->writer->cbs->appended(job->writer->ctx, job->code, job->received, job->piece.memory_len,
                               &job->err);
}

int fl_spool_writer_append(struct fl_spool_writer *w, const struct fl_spool_piece *piece)
{
    return spool_job_submit(
        w, &(struct job){.work = append_work, .done = spool_job_appended, .piece = *piece});
}

/* --- finishing --- */

static int spool_finish_work(struct job *job)
{
    struct fl_spool_writer *w = job->writer;
    const struct fl_server_conf *conf = w->frontend->setup.conf;
    int rv;

    if (w->spool == NULL) {
        return fl_err_set(&job->err, FL_ESTATE, "the spool file could not be opened");
    }
    rv = fl_spool_finish(w->spool, fl_space_updates(conf->space, conf->layout),
                         conf->round->norm_bound, conf->main->durability, &job->err);
    if (rv != FL_OK) {
        return rv;
    }
    /* Unlock it before it is accepted: a backup takes a lock of its own. */
    job->norms = fl_spool_take_norms(w->spool);
    fl_spool_close(w->spool);
    w->spool = NULL;
    return FL_OK;
}

static void spool_job_finished(struct job *job)
{
    job->writer->cbs->finished(job->writer->ctx, job->code, &job->norms, &job->err);
}

int fl_spool_writer_finish(struct fl_spool_writer *w)
{
    return spool_job_submit(w,
                            &(struct job){.work = spool_finish_work, .done = spool_job_finished});
}

bool fl_spool_writer_idle(const struct fl_spool_writer *w)
{
    return w->n_jobs == 0;
}

static int close_work(struct job *job)
{
    fl_spool_close(job->writer->spool);
    job->writer->spool = NULL;
    return FL_OK;
}

void fl_spool_writer_close(struct fl_spool_writer *w)
{
    if (w == NULL) {
        return;
    }
    w->cbs = NULL;
    if (w->n_jobs > 0 || w->spool != NULL) {
        /* If that cannot be submitted, the last of its jobs closes the file. */
        (void)spool_job_submit(w, &(struct job){.work = close_work});
    }
    spool_writer_unref(w);
}
