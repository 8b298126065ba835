/*
 * Stores the labels that clients announce on the db thread, so that those of disconnected clients
 * are known after a restart. Coordinator thread. A client whose record is not on disk yet is stored
 * with its first selection; the labels are deleted with the record.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/clock.h"
#include "libfl/base/grow.h"
#include "server/runtime/runtime_impl.h"

/* Labels in one transaction, and the pause between two: clients cause writes by reconnecting. */
#define LABELS_BATCH    512
#define LABELS_PAUSE_MS 1000

struct labels_job {
    struct fl_runtime *runtime;
    struct fl_labels_row *rows; /* [n], each with owned data */
    size_t n;
    int code;
    struct fl_err err;
};

static void labels_work(void *arg)
{
    struct labels_job *job = arg;

    job->code = fl_store_put_labels(job->runtime->federation.store, job->rows, job->n, &job->err);
}

static void labels_free(struct labels_job *job)
{
    size_t i;

    for (i = 0; i < job->n; i++) {
        free((void *)(uintptr_t)job->rows[i].data);
    }
    free(job->rows);
    free(job);
}

static void labels_done(void *arg)
{
    struct labels_job *job = arg;
    struct fl_runtime *runtime = job->runtime;

    if (job->code != FL_OK) {
        fl_log(runtime->setup.log, FL_LOG_WARNING, "server",
               "the labels of %zu clients are not recorded, a restart does not know them until "
               "they connect: %s",
               job->n, fl_err_text(&job->err, job->code));
    }
    runtime->label_queue.busy = false;
    labels_free(job);
    fl_runtime_write_labels(runtime);
}

/* FL_OK also when there is nothing to store of it. */
static int labels_add(struct labels_job *job, uint32_t client)
{
    const struct fl_client_rec *rec = fl_coord_client(job->runtime->coord, client);
    const struct fl_label_set *set = fl_labels_find(&job->runtime->labels, client);
    /* The revision makes the message of a client without labels not empty. */
    struct fl_wire_central message = {.revision = 1};
    struct fl_buf buf;
    int rv;

    if (rec == NULL) {
        return FL_OK;
    }
    if (set != NULL) {
        message.labels = (struct fl_pair *)(uintptr_t)set->pairs;
        message.n_labels = set->n;
    }
    fl_buf_init(&buf, FL_WIRE_MAX_EVENT);
    rv = fl_wire_central_encode(&message, &buf);
    if (rv != FL_OK) {
        fl_buf_done(&buf);
        return rv;
    }
    (void)snprintf(job->rows[job->n].name, sizeof(job->rows[job->n].name), "%s", rec->name);
    job->rows[job->n].data = buf.data; /* the buffer's memory is the job's from here on */
    job->rows[job->n++].len = buf.len;
    return FL_OK;
}

/* The first clients of the queue as a job. NULL: out of memory. */
static struct labels_job *labels_take(struct fl_runtime *runtime)
{
    struct fl_label_queue *queue = &runtime->label_queue;
    size_t n = queue->n < LABELS_BATCH ? queue->n : LABELS_BATCH;
    struct labels_job *job = calloc(1, sizeof(*job));
    size_t i;

    if (job == NULL) {
        return NULL;
    }
    job->runtime = runtime;
    job->rows = calloc(n, sizeof(*job->rows));
    for (i = 0; job->rows != NULL && i < n; i++) {
        if (labels_add(job, queue->clients[i]) != FL_OK) {
            break;
        }
    }
    if (job->rows == NULL || i < n) {
        labels_free(job);
        return NULL;
    }
    for (i = 0; i < n; i++) {
        fl_labels_unqueue(&runtime->labels, queue->clients[i]);
    }
    queue->n -= n;
    (void)memmove(queue->clients, queue->clients + n, queue->n * sizeof(*queue->clients));
    return job;
}

void fl_runtime_write_labels(struct fl_runtime *runtime)
{
    struct fl_label_queue *queue = &runtime->label_queue;
    uint64_t now = fl_clock_ms();
    struct labels_job *job;

    if (queue->n == 0 || queue->busy || now < queue->not_before_ms || runtime->shell.stopped) {
        return;
    }
    job = labels_take(runtime);
    queue->not_before_ms = now + LABELS_PAUSE_MS;
    if (job == NULL) {
        return; /* Later. */
    }
    queue->busy = true;
    if (fl_worker_thread_submit(runtime->setup.db, labels_work, runtime->loop, labels_done, job) !=
        FL_OK)
    {
        job->code = FL_ENOMEM;
        labels_done(job);
    }
}

static void labels_enqueue(struct fl_runtime *runtime, uint32_t client)
{
    struct fl_label_queue *queue = &runtime->label_queue;

    if (fl_labels_queued(&runtime->labels, client) ||
        fl_grow(&queue->clients, &queue->cap, queue->n, sizeof(*queue->clients)) != FL_OK ||
        fl_labels_queue(&runtime->labels, client) != FL_OK)
    {
        return; /* Out of memory: its next change stores them. */
    }
    queue->clients[queue->n++] = client;
}

void fl_runtime_label_hello(struct fl_runtime *runtime, uint32_t client,
                            const struct fl_wire_hello *hello)
{
    const struct fl_client_rec *rec = fl_coord_client(runtime->coord, client);
    bool changed = !fl_labels_are(&runtime->labels, client, hello->labels, hello->n_labels);

    if (fl_labels_set(&runtime->labels, client, hello->labels, hello->n_labels,
                      hello->takes_central) != FL_OK)
    {
        fl_log_peer(runtime->setup.log, FL_LOG_WARNING, "server", hello->client,
                    "out of memory for the labels of client '%s', they are not shown",
                    hello->client);
        return;
    }
    /* A client that is new may be selected in the step that admits it. */
    if (changed && rec != NULL &&
        (rec->n_selected > 0 || fl_coord_part(runtime->coord, client) != NULL))
    {
        labels_enqueue(runtime, client);
    }
}

void fl_runtime_label_selected(struct fl_runtime *runtime, const struct fl_effect *e)
{
    size_t i;

    for (i = 0; i < e->n_clients; i++) { /* Those that get their record with it. */
        if (fl_labels_find(&runtime->labels, e->clients[i].id) != NULL) {
            labels_enqueue(runtime, e->clients[i].id);
        }
    }
}

/* --- start --- */

static int label_loaded(void *ctx, uint32_t client, const void *data, size_t len)
{
    struct fl_runtime *runtime = ctx;
    struct fl_wire_central message = {0};
    int rv = fl_wire_central_decode(data, len, &message, NULL);

    if (rv != FL_OK) {
        return rv == FL_ENOMEM ? rv : FL_EFORMAT;
    }
    rv = fl_labels_set(&runtime->labels, client, message.labels, message.n_labels,
                       /* takes_central= */ false);
    fl_wire_central_done(&message);
    return rv;
}

/* Which of the known clients have not the labels of round.eligible, before any of them connects. */
int fl_runtime_load_labels(struct fl_runtime *runtime, bool **ret_ineligible, struct fl_err *err)
{
    const struct fl_coord_resume *resume = &runtime->resume;
    bool *ineligible;
    size_t i;
    int rv = fl_store_labels(runtime->federation.store, label_loaded, runtime, err);

    if (rv != FL_OK) {
        return rv;
    }
    ineligible = calloc(resume->n_clients + 1, sizeof(*ineligible));
    if (ineligible == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%zu clients", resume->n_clients);
    }
    for (i = 0; i < resume->n_clients; i++) {
        const struct fl_label_set *set = fl_labels_find(&runtime->labels, resume->clients[i].id);

        ineligible[i] =
            set != NULL && !fl_eligible_labels(&runtime->coord_conf.eligible, set->pairs, set->n);
    }
    *ret_ineligible = ineligible;
    return FL_OK;
}
