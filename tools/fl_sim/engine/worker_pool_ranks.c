/* The leader's side of a worker pool that several processes share: sends jobs and shared payloads,
   and receives answers. One thread, that of the pool's caller. The other side is ranks_serve.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/ranks_impl.h"

/* A message for all other processes, and which of them have it. */
struct shared_message {
    struct fl_blob *message;
    bool *at; /* [processes] it was sent */
};

struct fl__worker_pool_ranks {
    const struct fl_ranks *of;
    uint64_t last_id;
    struct fl_list unanswered;          /* jobs */
    struct fl_model_cache *model_cache; /* contents of `common`; a reference, as the next */
    struct fl_blob *model, *malicious;
    struct shared_message common, evaluated, collusion;
};

/* --- sending --- */

static int ranks_send_shared(const struct fl__worker_pool_ranks *t, struct shared_message *what,
                             unsigned to, struct fl_err *err)
{
    int rv;

    if (what->at[to]) {
        return FL_OK;
    }
    rv = t->of->send(t->of->ctx, to, what->message, err);
    what->at[to] = rv == FL_OK;
    return rv;
}

/* Replaces the message; no process has the new one. */
static int ranks_replace_shared(const struct fl__worker_pool_ranks *t, struct shared_message *what,
                                struct fl_writer *w)
{
    struct fl_blob *blob = NULL;
    int rv = fl__ranks_finish_message(w, &blob);

    if (rv != FL_OK) {
        return rv;
    }
    fl_blob_unref(what->message);
    what->message = blob;
    (void)memset(what->at, 0, t->of->n * sizeof(*what->at));
    return FL_OK;
}

static int ranks_send_model_cache(struct fl__worker_pool_ranks *t, const struct fl_pool_job *job,
                                  struct fl_err *err)
{
    const struct fl__ranks_head head = {.kind = FL__RANKS_MODEL_CACHE};
    struct fl_buf message;
    struct fl_writer w;
    size_t i;
    int rv;

    if (t->model_cache != job->model_cache) {
        w = fl__ranks_start_message(&message, &head);
        for (i = 0; i < job->model_cache->n_common; i++) {
            fl__ranks_put_item(&w, &job->model_cache->common[i]);
        }
        rv = ranks_replace_shared(t, &t->common, &w);
        if (rv != FL_OK) {
            return rv;
        }
        fl_model_cache_unref(t->model_cache);
        t->model_cache = fl_model_cache_ref(job->model_cache);
    }
    return ranks_send_shared(t, &t->common, job->process, err);
}

static int ranks_send_model(struct fl__worker_pool_ranks *t, const struct fl_pool_job *job,
                            struct fl_err *err)
{
    const struct fl__ranks_head head = {.kind = FL__RANKS_MODEL};
    struct fl_buf message;
    struct fl_writer w;
    int rv;

    if (t->model != job->model) {
        w = fl__ranks_start_message(&message, &head);
        fl_writer_add(&w, fl_blob_data(job->model), fl_blob_len(job->model));
        rv = ranks_replace_shared(t, &t->evaluated, &w);
        if (rv != FL_OK) {
            return rv;
        }
        fl_blob_unref(t->model);
        t->model = fl_blob_ref(job->model);
    }
    return ranks_send_shared(t, &t->evaluated, job->process, err);
}

static int ranks_send_malicious(struct fl__worker_pool_ranks *t, const struct fl_pool_job *job,
                                struct fl_err *err)
{
    const struct fl__ranks_head head = {.kind = FL__RANKS_MALICIOUS};
    struct fl_blob *malicious = job->collusion.malicious;
    struct fl_buf message;
    struct fl_writer w;
    int rv;

    if (malicious == NULL) {
        return FL_OK;
    }
    if (t->malicious != malicious) {
        w = fl__ranks_start_message(&message, &head);
        fl_writer_add(&w, fl_blob_data(malicious), fl_blob_len(malicious));
        rv = ranks_replace_shared(t, &t->collusion, &w);
        if (rv != FL_OK) {
            return rv;
        }
        fl_blob_unref(t->malicious);
        t->malicious = fl_blob_ref(malicious);
    }
    return ranks_send_shared(t, &t->collusion, job->process, err);
}

/* The payload that only this client may fetch; NULL: none. */
static const struct fl_model_cache_item *ranks_own_item(const struct fl_pool_job *job)
{
    const struct fl_model_cache_item *items[FL_PAYLOADS_MAX];
    struct fl_sim_client sim_client;
    size_t n;

    if (job->kind != FL_JOB_TRAIN) {
        return NULL;
    }
    job->pool->conf.sim_clients->sim_client(job->pool->conf.sim_clients->ctx, job->client,
                                            &sim_client);
    n = fl_model_cache_list(job->model_cache, sim_client.name, items);
    return n > 0 && items[n - 1]->client[0] != '\0' ? items[n - 1] : NULL;
}

static int ranks_send_begin(const struct fl__worker_pool_ranks *t, const struct fl_pool_job *job,
                            struct fl_err *err)
{
    const struct fl__ranks_head head = {FL__RANKS_BEGIN, job->client, job->id, {0}};
    const struct fl_model_cache_item *own = ranks_own_item(job);
    struct fl__ranks_begin begin;
    struct fl_buf message;
    struct fl_writer w = fl__ranks_start_message(&message, &head);

    (void)memset(&begin, 0, sizeof(begin));
    begin.job = (uint32_t)job->kind;
    begin.has_own = own != NULL;
    begin.shares = job->collusion.shares;
    begin.has_malicious = job->collusion.malicious != NULL;
    begin.task = job->task;
    begin.rate = job->rate;
    begin.n_units = job->units != NULL ? fl_layout_units(job->pool->conf.setup->layout) : 0;
    fl_writer_add(&w, &begin, sizeof(begin));
    if (job->units != NULL) {
        fl_writer_add(&w, job->units, (size_t)begin.n_units);
    }
    if (own != NULL) {
        fl__ranks_put_item(&w, own);
    }
    return fl__ranks_send(t->of, job->process, &w, err);
}

/* Sends a message without an answer. Errors are ignored here: the next message that is waited for
   fails too. */
static void ranks_send_head(struct fl__worker_pool_ranks *t, unsigned to,
                            const struct fl__ranks_head *head)
{
    struct fl_buf message;
    struct fl_writer w = fl__ranks_start_message(&message, head);
    int rv = fl__ranks_send(t->of, to, &w, NULL);

    (void)rv;
}

/* --- unanswered jobs --- */

static struct fl_pool_job *ranks_find_job(const struct fl__worker_pool_ranks *t, uint64_t id)
{
    struct fl_pool_job *job;

    FL_LIST_FOREACH (job, &t->unanswered, struct fl_pool_job, link) {
        if (job->id == id) {
            return job;
        }
    }
    return NULL;
}

static void ranks_fail_job(struct fl_pool_job *job, int code, const struct fl_err *err)
{
    job->answer.code = code;
    (void)snprintf(job->answer.why, sizeof(job->answer.why), "%s", fl_err_text(err, code));
}

/* --- answers --- */

/* Stores the answer as the local pool does. */
static int ranks_take_upload(struct fl_pool_job *job, struct fl__ranks_rest *rest,
                             const struct fl__ranks_answer *head_answer, struct fl_err *err)
{
    size_t n_units = fl_layout_units(job->pool->conf.setup->layout);
    struct fl_result result = {.key = job->task.key};
    struct fl_code code = {.result = &result, .n_parts = (size_t)head_answer->n_parts};
    struct fl_sim_client sim_client;
    int rv = FL_ENOMEM;

    if (head_answer->n_parts > n_units * FL_PAYLOADS_MAX) {
        return FL_EFORMAT;
    }
    job->pool->conf.sim_clients->sim_client(job->pool->conf.sim_clients->ctx, job->client,
                                            &sim_client);
    code.units = malloc(n_units + 1);
    code.parts = calloc(code.n_parts + 1, sizeof(*code.parts));
    if (code.units == NULL || code.parts == NULL) {
        goto done;
    }
    if (job->units != NULL) {
        (void)memcpy(code.units, job->units, n_units);
    } else {
        (void)memset(code.units, 1, n_units);
    }
    rv = fl__ranks_read(rest, code.parts, code.n_parts * sizeof(*code.parts));
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__ranks_read_blob(rest, head_answer->n_upload, &code.bytes);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_member_upload(job->pool->conf.federation, sim_client.name, &code, &job->answer.norms,
                          err);
    if (rv != FL_OK) {
        goto done;
    }
    job->answer.n_units = n_units;
done:
    fl_blob_unref(code.bytes);
    free(code.parts);
    free(code.units);
    return rv;
}

static int ranks_take_answer(struct fl_pool_job *job, struct fl__ranks_rest *rest,
                             struct fl_err *err)
{
    struct fl__ranks_answer head_answer;
    const uint8_t *skipped = NULL;
    int rv = fl__ranks_read(rest, &head_answer, sizeof(head_answer));

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__ranks_skip(rest, head_answer.n_answer, &skipped);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_job_answer_decode(skipped, (size_t)head_answer.n_answer, &job->answer, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__ranks_skip(rest, head_answer.n_summary, &skipped);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_buf_add(&job->bytes, skipped, (size_t)head_answer.n_summary);
    if (rv != FL_OK) {
        return rv;
    }
    if (job->kind == FL_JOB_TRAIN && head_answer.n_upload > 0) {
        return fl__ranks_read_blob(rest, head_answer.n_upload, &job->update);
    }
    return job->kind == FL_JOB_CODE && job->answer.code == FL_OK
               ? ranks_take_upload(job, rest, &head_answer, err)
               : FL_OK;
}

/* Answers of cancelled jobs are dropped. */
static void ranks_receive(struct fl__worker_pool_ranks *t, const struct fl_buf *message)
{
    struct fl__ranks_rest rest = {message->data, message->len};
    struct fl__ranks_head head;
    struct fl_err err = {0};
    struct fl_pool_job *job;
    int rv;

    if (fl__ranks_read(&rest, &head, sizeof(head)) != FL_OK || head.kind != FL__RANKS_ANSWER) {
        return;
    }
    job = ranks_find_job(t, head.id);
    if (job == NULL) {
        return;
    }
    rv = ranks_take_answer(job, &rest, &err);
    if (rv != FL_OK) {
        ranks_fail_job(job, rv, &err);
    }
    fl_list_remove(&job->link);
    job->state = FL__JOB_DONE;
}

static int ranks_receive_next(struct fl_worker_pool *pool, bool wait, struct fl_err *err)
{
    const struct fl_ranks *of = pool->ranks->of;
    struct fl_buf message;
    int rv = of->receive(of->ctx, wait, &message, err);

    if (rv != FL_OK) {
        return rv;
    }
    ranks_receive(pool->ranks, &message);
    fl_buf_done(&message);
    return FL_OK;
}

static int ranks_send_job(struct fl__worker_pool_ranks *t, const struct fl_pool_job *job,
                          struct fl_err *err)
{
    int rv = job->kind == FL_JOB_TRAIN      ? ranks_send_model_cache(t, job, err)
             : job->kind == FL_JOB_EVALUATE ? ranks_send_model(t, job, err)
                                            : FL_OK;

    if (rv != FL_OK) {
        return rv;
    }
    rv = ranks_send_malicious(t, job, err);
    if (rv != FL_OK) {
        return rv;
    }
    return ranks_send_begin(t, job, err);
}

void fl__ranks_begin(struct fl_pool_job *job)
{
    struct fl__worker_pool_ranks *t = job->pool->ranks;
    struct fl_err err = {0};
    int rv;

    job->id = ++t->last_id;
    rv = ranks_send_job(t, job, &err);
    if (rv != FL_OK) {
        ranks_fail_job(job, rv, &err);
        job->state = FL__JOB_DONE;
        return;
    }
    job->state = FL__JOB_RUNNING;
    fl_list_append(&t->unanswered, &job->link);
}

/* Meanwhile, run jobs of this process. */
void fl__ranks_wait(struct fl_pool_job *job)
{
    struct fl_err err = {0};

    while (job->state != FL__JOB_DONE) {
        int rv = ranks_receive_next(job->pool, /* wait= */ false, &err);

        if (rv == FL_ENOENT) {
            rv = fl__worker_pool_step(job->pool)
                     ? FL_OK
                     : ranks_receive_next(job->pool, /* wait= */ true, &err);
        }
        if (rv != FL_OK) {
            ranks_fail_job(job, rv, &err);
            fl_list_remove(&job->link);
            job->state = FL__JOB_DONE;
        }
    }
}

void fl__ranks_cancel(struct fl_pool_job *job)
{
    const struct fl__ranks_head head = {FL__RANKS_CANCEL, job->client, job->id, {0}};

    if (job->state != FL__JOB_DONE) {
        ranks_send_head(job->pool->ranks, job->process, &head);
        fl_list_remove(&job->link);
        job->state = FL__JOB_DONE;
    }
}

void fl__ranks_drop(struct fl_worker_pool *pool, uint32_t client, struct fl_round_key key)
{
    const struct fl__ranks_head head = {FL__RANKS_DROP, client, 0, key};

    ranks_send_head(pool->ranks, client % pool->ranks->of->n, &head);
}

/* --- create and free --- */

static int ranks_send_open(const struct fl_worker_pool *pool, struct fl_err *err)
{
    const struct fl__ranks_head head = {.kind = FL__RANKS_OPEN};
    const struct fl__ranks_open open = {pool->conf.seed, strlen(pool->conf.dir)};
    const struct fl_wire_command command = {.type = FL_WIRE_WELCOME,
                                            /* The message is lent. */
                                            .u.welcome = pool->conf.setup->welcome};
    struct fl_blob *blob = NULL;
    struct fl_buf message;
    struct fl_writer w = fl__ranks_start_message(&message, &head);
    unsigned k;
    int rv;

    fl_writer_add(&w, &open, sizeof(open));
    fl_writer_add(&w, pool->conf.dir, (size_t)open.dir_len);
    fl_writer_note(&w, fl_wire_command_encode(&command, &message));
    rv = fl__ranks_finish_message(&w, &blob);
    if (rv != FL_OK) {
        return rv;
    }
    for (k = 1; k < pool->ranks->of->n; k++) {
        rv = pool->ranks->of->send(pool->ranks->of->ctx, k, blob, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    fl_blob_unref(blob);
    return rv;
}

int fl__ranks_open(struct fl_worker_pool *pool, struct fl_err *err)
{
    struct fl__worker_pool_ranks *t = calloc(1, sizeof(*t));

    if (t == NULL) {
        return FL_ENOMEM;
    }
    pool->ranks = t;
    t->of = pool->conf.ranks;
    t->common.at = calloc(t->of->n, sizeof(*t->common.at));
    t->evaluated.at = calloc(t->of->n, sizeof(*t->evaluated.at));
    t->collusion.at = calloc(t->of->n, sizeof(*t->collusion.at));
    return t->common.at != NULL && t->evaluated.at != NULL && t->collusion.at != NULL
               ? ranks_send_open(pool, err)
               : FL_ENOMEM;
}

void fl__ranks_close(struct fl_worker_pool *pool)
{
    const struct fl__ranks_head head = {.kind = FL__RANKS_CLOSE};
    struct fl__worker_pool_ranks *t = pool->ranks;
    unsigned k;

    if (t == NULL) {
        return;
    }
    for (k = 1; k < t->of->n; k++) {
        ranks_send_head(t, k, &head);
    }
    fl_model_cache_unref(t->model_cache);
    fl_blob_unref(t->model);
    fl_blob_unref(t->malicious);
    fl_blob_unref(t->common.message);
    fl_blob_unref(t->evaluated.message);
    fl_blob_unref(t->collusion.message);
    free(t->common.at);
    free(t->evaluated.at);
    free(t->collusion.at);
    free(t);
    pool->ranks = NULL;
}

int fl_ranks_end(const struct fl_ranks *ranks, struct fl_err *err)
{
    const struct fl__ranks_head head = {.kind = FL__RANKS_END};
    struct fl_buf message;
    struct fl_writer w;
    unsigned k;
    int rv;

    for (k = 1; k < ranks->n; k++) {
        w = fl__ranks_start_message(&message, &head);
        rv = fl__ranks_send(ranks, k, &w, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}
