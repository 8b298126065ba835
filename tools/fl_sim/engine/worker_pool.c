/*
 * The worker pool for the clients' work (worker_pool.h): threads, queue, and states of jobs. All
 * calls come from one thread; jobs run on the pool's threads, or on the caller's while it waits.
 * The work itself is in worker_pool_work.c.
 */
#include "tools/fl_sim/engine/worker_pool.h"

#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/engine/worker_pool_impl.h"

static void *pool_thread(void *arg)
{
    struct fl_worker_pool *pool = arg;

    (void)pthread_mutex_lock(&pool->lock);
    while (!pool->ending) {
        if (fl__worker_pool_first(pool) != NULL) {
            fl__worker_pool_run(fl__worker_pool_first(pool));
        } else {
            (void)pthread_cond_wait(&pool->more, &pool->lock);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return NULL;
}

/* --- jobs --- */

static struct fl_pool_job *pool_begin(struct fl_worker_pool *pool, enum fl_job_kind kind,
                                      uint32_t client)
{
    struct fl_pool_job *job = calloc(1, sizeof(*job));

    if (job != NULL) {
        job->pool = pool;
        job->kind = kind;
        job->client = client;
        job->process = pool->ranks != NULL ? client % pool->conf.ranks->n : 0;
        atomic_init(&job->cancel, false);
        fl_buf_init(&job->bytes, SIZE_MAX / 2);
    }
    return job;
}

static struct fl_pool_job *pool_submit(struct fl_pool_job *job)
{
    struct fl_worker_pool *pool = job->pool;

    if (pool->conf.dry) {
        fl__worker_pool_dry(job);
        job->state = FL__JOB_DONE;
        return job;
    }
    if (job->process != 0) {
        fl__ranks_begin(job);
        return job;
    }
    (void)pthread_mutex_lock(&pool->lock);
    fl_list_append(&pool->queue, &job->link);
    (void)pthread_cond_signal(&pool->more);
    (void)pthread_mutex_unlock(&pool->lock);
    return job;
}

struct fl_pool_job *fl_worker_pool_summary(struct fl_worker_pool *pool, uint32_t client)
{
    struct fl_pool_job *job = pool_begin(pool, FL_JOB_SUMMARY, client);

    return job != NULL ? pool_submit(job) : NULL;
}

struct fl_pool_job *fl_worker_pool_train(struct fl_worker_pool *pool, uint32_t client,
                                         const struct fl_task *task,
                                         struct fl_model_cache *model_cache,
                                         const struct fl_pool_collusion *collusion)
{
    struct fl_pool_job *job = pool_begin(pool, FL_JOB_TRAIN, client);

    if (job == NULL) {
        return NULL;
    }
    job->task = *task;
    job->model_cache = fl_model_cache_ref(model_cache);
    job->collusion = *collusion;
    if (collusion->malicious != NULL) {
        (void)fl_blob_ref(collusion->malicious);
    }
    return pool_submit(job);
}

struct fl_pool_job *fl_worker_pool_code(struct fl_worker_pool *pool, uint32_t client,
                                        struct fl_round_key key, const uint8_t *units)
{
    size_t n = fl_layout_units(pool->conf.setup->layout);
    struct fl_pool_job *job = pool_begin(pool, FL_JOB_CODE, client);

    if (job == NULL) {
        return NULL;
    }
    job->task.key = key;
    if (units != NULL) {
        job->units = malloc(n + 1);
        if (job->units == NULL) {
            free(job);
            return NULL;
        }
        (void)memcpy(job->units, units, n);
    }
    return pool_submit(job);
}

struct fl_pool_job *fl_worker_pool_evaluate(struct fl_worker_pool *pool, uint32_t client,
                                            const struct fl_task *task, struct fl_blob *model,
                                            double rate)
{
    struct fl_pool_job *job = pool_begin(pool, FL_JOB_EVALUATE, client);

    if (job == NULL) {
        return NULL;
    }
    job->task = *task;
    job->model = fl_blob_ref(model);
    job->rate = rate;
    return pool_submit(job);
}

/* The waiting thread runs the job itself when no other has started it. */
static void pool_finish(struct fl_pool_job *job)
{
    struct fl_worker_pool *pool = job->pool;

    if (pool->conf.dry) {
        return;
    }
    if (job->process != 0) {
        fl__ranks_wait(job);
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    while (job->state != FL__JOB_DONE) {
        /* Others are those that the caller will wait for next. */
        struct fl_pool_job *next = job->state == FL__JOB_QUEUED && !pool->busy[job->client]
                                       ? job
                                       : fl__worker_pool_first(pool);

        if (next != NULL) {
            fl__worker_pool_run(next);
        } else {
            (void)pthread_cond_wait(&pool->done, &pool->lock);
        }
    }
    (void)pthread_mutex_unlock(&pool->lock);
}

void fl_job_take(struct fl_pool_job *job, struct fl_job_answer *ret)
{
    pool_finish(job);
    *ret = job->answer;
    job->answer = (struct fl_job_answer){.code = FL_OK};
}

const struct fl_buf *fl_job_bytes(const struct fl_pool_job *job)
{
    return &job->bytes;
}

struct fl_blob *fl_job_update(const struct fl_pool_job *job)
{
    return job->update;
}

/* The job was cancelled. */
static void pool_stop_job(struct fl_pool_job *job)
{
    struct fl_worker_pool *pool = job->pool;
    bool queued;

    if (job->process != 0) {
        fl__ranks_cancel(job);
        return;
    }
    atomic_store(&job->cancel, true);
    (void)pthread_mutex_lock(&pool->lock);
    queued = job->state == FL__JOB_QUEUED;
    if (queued) {
        fl_list_remove(&job->link);
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (!queued) {
        pool_finish(job);
    }
}

void fl_pool_job_free(struct fl_pool_job *job)
{
    if (job == NULL) {
        return;
    }
    pool_stop_job(job);
    fl_model_cache_unref(job->model_cache);
    fl_blob_unref(job->model);
    fl_buf_done(&job->bytes);
    fl_job_answer_done(&job->answer);
    fl_blob_unref(job->upload);
    fl_blob_unref(job->update);
    fl_blob_unref(job->collusion.malicious);
    free(job->parts);
    free(job->units);
    free(job);
}

void fl_worker_pool_drop(struct fl_worker_pool *pool, uint32_t client, struct fl_round_key key)
{
    struct fl_member *member;

    if (pool->ranks != NULL && client % pool->conf.ranks->n != 0) {
        fl__ranks_drop(pool, client, key);
        return;
    }
    /* A cancelled upload may be coded still. */
    (void)pthread_mutex_lock(&pool->lock);
    while (pool->busy[client]) {
        (void)pthread_cond_wait(&pool->done, &pool->lock);
    }
    fl__worker_pool_occupy(pool, client);
    (void)pthread_mutex_unlock(&pool->lock);
    member = pool->members[client];
    if (member != NULL) {
        fl_pending_result_drop(&member->held, key);
        if (member->held.result == NULL) {
            fl__worker_pool_close(pool, client);
        }
    }
    (void)pthread_mutex_lock(&pool->lock);
    fl__worker_pool_release(pool, client);
    (void)pthread_mutex_unlock(&pool->lock);
}

/* --- create and free --- */

static int pool_start_threads(struct fl_worker_pool *pool, struct fl_err *err)
{
    unsigned more = pool->conf.threads > 1 ? pool->conf.threads - 1 : 0;

    pool->threads = calloc(more + 1, sizeof(*pool->threads));
    if (pool->threads == NULL) {
        return FL_ENOMEM;
    }
    while (pool->n_threads < more) {
        if (pthread_create(&pool->threads[pool->n_threads], NULL, pool_thread, pool) != 0) {
            return fl_err_set(err, FL_ELIMIT, "cannot start thread %u of %u for the clients' work",
                              pool->n_threads + 2, more + 1);
        }
        pool->n_threads++;
    }
    return FL_OK;
}

int fl_worker_pool_create(const struct fl_worker_pool_conf *conf, struct fl_worker_pool **ret,
                          struct fl_err *err)
{
    struct fl_worker_pool *pool = calloc(1, sizeof(*pool));
    int rv;

    if (pool == NULL) {
        return FL_ENOMEM;
    }
    pool->conf = *conf;
    pool->conf.setup = fl_setup_ref(conf->setup);
    (void)pthread_mutex_init(&pool->lock, NULL);
    (void)pthread_cond_init(&pool->more, NULL);
    (void)pthread_cond_init(&pool->done, NULL);
    pool->members = calloc(conf->sim_clients->n + 1, sizeof(struct fl_member *));
    pool->busy = calloc(conf->sim_clients->n + 1, sizeof(*pool->busy));
    pool->spare = calloc((size_t)conf->threads + 1, sizeof(struct fl_trainer *));
    if (pool->members == NULL || pool->busy == NULL || pool->spare == NULL) {
        rv = FL_ENOMEM;
        goto fail;
    }
    rv = conf->dry ? fl__worker_pool_dry_sizes(pool) : pool_start_threads(pool, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (conf->ranks != NULL && conf->ranks->n > 1 && !conf->dry) {
        rv = fl__ranks_open(pool, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = pool;
    return FL_OK;
fail:
    fl_worker_pool_free(pool);
    return rv;
}

void fl_worker_pool_free(struct fl_worker_pool *pool)
{
    uint32_t i;

    if (pool == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    (void)pthread_cond_broadcast(&pool->more);
    (void)pthread_mutex_unlock(&pool->lock);
    while (pool->n_threads > 0) {
        (void)pthread_join(pool->threads[--pool->n_threads], NULL);
    }
    fl__ranks_close(pool);
    for (i = 0; pool->members != NULL && i < pool->conf.sim_clients->n; i++) {
        fl__worker_pool_close(pool, i);
    }
    while (pool->n_spare > 0) {
        fl_trainer_stop(pool->spare[pool->n_spare - 1]);
        fl_trainer_free(pool->spare[--pool->n_spare]);
    }
    free(pool->spare);
    free(pool->members);
    free(pool->busy);
    free(pool->unit_bytes);
    free(pool->threads);
    fl_setup_unref(pool->conf.setup);
    (void)pthread_cond_destroy(&pool->more);
    (void)pthread_cond_destroy(&pool->done);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool);
}
