#include "server/daemon/spool_writer.h"

#include <stdlib.h>

struct fl_spool_writer {
    struct fl_frontend *frontend;
    unsigned refs; /* its owner's, and one for each job */
    unsigned n_jobs;
    const struct fl_spool_writer_cbs *cbs; /* NULL: closed */
    void *ctx;
    struct fl_session_key key;
    char client[FL_NAME_MAX];
    struct fl_spool_part *parts;
    size_t n_parts;
    struct fl_spool *spool; /* the lane's, while there are jobs; NULL: not open */
};

struct job {
    struct fl_spool_writer *writer;
    int (*work)(struct job *job);  /* on the lane */
    void (*tell)(struct job *job); /* on the loop, while somebody listens */
    struct fl_spool_piece piece;   /* of an append */
    uint64_t received;
    struct fl_norms norms; /* of a file that was finished; owned */
    int code;
    struct fl_err err;
};

static void unref(struct fl_spool_writer *w)
{
    if (--w->refs > 0) {
        return;
    }
    fl_spool_close(w->spool); /* Open still only when the lane could not be asked to close it. */
    free(w->parts);
    free(w);
}

static void work(void *arg)
{
    struct job *job = arg;

    job->code = job->work(job);
}

static void complete(void *arg)
{
    struct job *job = arg;
    struct fl_spool_writer *w = job->writer;

    free(job->piece.memory);
    w->n_jobs--;
    if (w->cbs != NULL) {
        job->tell(job);
    }
    free(job->norms.unit);
    free(job);
    unref(w);
}

static int submit(struct fl_spool_writer *w, const struct job *what)
{
    struct job *job = calloc(1, sizeof(*job));
    int rv;

    if (job == NULL) {
        return FL_ENOMEM;
    }
    *job = *what;
    job->writer = w;
    rv = fl_frontend_on_disk(w->frontend, work, complete, job);
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

    return fl_recycled_open(w->frontend->spares, w->key.round, w->key.attempt, w->client, w->parts,
                            w->n_parts, &w->spool, &job->received, &job->err);
}

static void opened(struct job *job)
{
    job->writer->cbs->opened(job->writer->ctx, job->code, job->received, &job->err);
}

int fl_spool_writer_open(struct fl_frontend *frontend, const struct fl_session_key *key,
                         const char *client, struct fl_spool_part *parts, size_t n_parts,
                         const struct fl_spool_writer_cbs *cbs, void *ctx,
                         struct fl_spool_writer **ret)
{
    struct fl_spool_writer *w = calloc(1, sizeof(*w));
    int rv;

    if (w == NULL) {
        return FL_ENOMEM;
    }
    *w = (struct fl_spool_writer){.frontend = frontend,
                                  .refs = 1,
                                  .cbs = cbs,
                                  .ctx = ctx,
                                  .key = *key,
                                  .parts = parts,
                                  .n_parts = n_parts};
    rv = fl_str_copy(w->client, sizeof(w->client), client);
    if (rv == FL_OK) {
        rv = submit(w, &(struct job){.work = open_work, .tell = opened});
    }
    if (rv != FL_OK) {
        w->parts = NULL; /* Still the caller's. */
        unref(w);
        return rv;
    }
    *ret = w;
    return FL_OK;
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
    if (rv == FL_ENOSPC && fl_recycled_count(job->writer->frontend->spares) > 0) {
        fl_recycled_drop(job->writer->frontend->spares);
        rv = fl_spool_write(spool, piece->offset, piece->data, piece->len, &job->err);
    }
    job->received = fl_spool_received(spool);
    return rv;
}

static void appended(struct job *job)
{
    job->writer->cbs->appended(job->writer->ctx, job->code, job->received, job->piece.memory_len,
                               &job->err);
}

int fl_spool_writer_append(struct fl_spool_writer *w, const struct fl_spool_piece *piece)
{
    return submit(w, &(struct job){.work = append_work, .tell = appended, .piece = *piece});
}

/* --- the end --- */

static int finish_work(struct job *job)
{
    struct fl_spool_writer *w = job->writer;
    const struct fl_server_conf *conf = w->frontend->srv->conf;
    int rv;

    if (w->spool == NULL) {
        return fl_err_set(&job->err, FL_ESTATE, "the spool file could not be opened");
    }
    rv = fl_spool_finish(w->spool, conf->layout, conf->round->norm_bound, conf->main->durability,
                         &job->err);
    if (rv == FL_OK) { /* Without its lock before it is accepted: a backup takes one of its own. */
        job->norms = fl_spool_take_norms(w->spool);
        fl_spool_close(w->spool);
        w->spool = NULL;
    }
    return rv;
}

static void finished(struct job *job)
{
    job->writer->cbs->finished(job->writer->ctx, job->code, &job->norms, &job->err);
}

int fl_spool_writer_finish(struct fl_spool_writer *w)
{
    return submit(w, &(struct job){.work = finish_work, .tell = finished});
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
        (void)submit(w, &(struct job){.work = close_work}); /* Else the last of its jobs does it. */
    }
    unref(w);
}
