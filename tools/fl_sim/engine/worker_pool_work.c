/* Runs the clients' jobs by client/work: data summaries, training, coding and evaluation. On any
   thread of the worker pool; one job of a client at a time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/shell/session_messages.h"
#include "client/work/data_summary.h"
#include "tools/fl_sim/engine/attacker.h"
#include "tools/fl_sim/engine/poison.h"
#include "tools/fl_sim/engine/worker_pool_impl.h"

/* --- members --- */

static int work_begin_member(struct fl_worker_pool *pool, uint32_t client, struct fl_member **ret,
                             struct fl_err *err)
{
    struct fl_member *m = pool->members[client];
    struct fl_member_place place = {.log = pool->conf.log};
    struct fl_sim_client sim_client;
    char dir[sizeof(m->dir)];
    int n;
    int rv;

    if (m != NULL) {
        *ret = m;
        return FL_OK;
    }
    pool->conf.sim_clients->sim_client(pool->conf.sim_clients->ctx, client, &sim_client);
    place.seed = sim_client.seed;
    place.least_group = sim_client.least_group;
    place.dir = dir;
    n = snprintf(dir, sizeof(dir), "%s/%s", pool->conf.dir, sim_client.name);
    if (n < 0 || (size_t)n >= sizeof(dir)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", pool->conf.dir);
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_member_begin(m, &place, pool->conf.setup, err);
    if (rv != FL_OK) {
        free(m);
        return rv;
    }
    pool->members[client] = m;
    *ret = m;
    return FL_OK;
}

void fl__worker_pool_close(struct fl_worker_pool *pool, uint32_t client)
{
    struct fl_member *m = pool->members[client];

    if (m != NULL) {
        fl_member_close(m);
        free(m);
        pool->members[client] = NULL;
    }
}

/* --- engines --- */

static int work_open_trainer(const struct fl_worker_pool *pool,
                             const struct fl_sim_client_data *data, struct fl_trainer **ret,
                             struct fl_err *err)
{
    const struct fl_command_conf *program = pool->conf.sim_clients->program;
    struct fl_trainer *trainer = NULL;
    uint64_t samples;
    uint64_t test_samples;
    int rv = program != NULL
                 ? fl_trainer_command(program, &trainer, err)
                 : fl_trainer_builtin(data->train, data->test, pool->conf.kernels, &trainer, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (program != NULL) {
        rv = fl_trainer_start(trainer, &samples, &test_samples, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl_worker_prepare_trainer(trainer, pool->conf.setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = trainer;
    return FL_OK;
fail:
    fl_trainer_free(trainer);
    return rv;
}

/* The program is to be this client from now on. */
static int work_act_for(const struct fl_worker_pool *pool, uint32_t client,
                        const struct fl_sim_client_data *data, struct fl_trainer *trainer,
                        struct fl_err *err)
{
    const struct fl_sim_clients *all = pool->conf.sim_clients;
    struct fl_persistent_client who = {.number = client, .of = all->n};
    struct fl_sim_client sim_client;

    all->sim_client(all->ctx, client, &sim_client);
    who.name = sim_client.name;
    who.data = data->folder[0] != '\0' ? data->folder : NULL;
    if (who.data != NULL && !data->whole) {
        who.train = data->train->items;
        who.n_train = data->train->n;
        who.test = data->test != NULL ? data->test->items : data->train->items;
        who.n_test = data->test != NULL ? data->test->n : 0;
    }
    return fl_trainer_act_for(trainer, &who, err);
}

/* An idle trainer, for this client. */
static int work_take_trainer(struct fl_worker_pool *pool, uint32_t client,
                             const struct fl_sim_client_data *data, struct fl_trainer **ret,
                             struct fl_err *err)
{
    struct fl_trainer *trainer = NULL;
    int rv = FL_OK;

    (void)pthread_mutex_lock(&pool->lock);
    if (pool->n_spare > 0) {
        trainer = pool->spare[--pool->n_spare];
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (trainer == NULL) {
        rv = work_open_trainer(pool, data, &trainer, err);
        if (rv != FL_OK) {
            return rv;
        }
    } else if (pool->conf.sim_clients->program == NULL) {
        rv = fl_trainer_set_data(trainer, data->train, data->test, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (pool->conf.sim_clients->program != NULL) {
        rv = work_act_for(pool, client, data, trainer, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = trainer;
    return FL_OK;
fail:
    fl_trainer_free(trainer);
    return rv;
}

static void work_return_trainer(struct fl_worker_pool *pool, struct fl_trainer *trainer)
{
    (void)pthread_mutex_lock(&pool->lock);
    if (pool->n_spare < pool->n_threads + 1) {
        pool->spare[pool->n_spare++] = trainer;
        trainer = NULL;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    fl_trainer_free(trainer);
}

/* --- training --- */

/* The payloads in memory that the client may fetch. */
static int work_read_payloads(const struct fl_model_cache_item *const *items, size_t n,
                              struct fl_member_payload *list, uint8_t **read, struct fl_err *err)
{
    size_t i;
    int rv;

    for (i = 0; i < n; i++) {
        const struct fl_bytes *b = &items[i]->bytes;
        size_t len = (size_t)fl_bytes_len(b);

        if (b->file != NULL) {
            read[i] = malloc(len + 1);
            rv = read[i] != NULL ? fl_file_read(b->file, 0, read[i], len) : FL_ENOMEM;
            if (rv != FL_OK) {
                return fl_err_set(err, rv, "payload '%s': %s", items[i]->name, fl_strerror(rv));
            }
        }
        list[i] = (struct fl_member_payload){.name = items[i]->name,
                                             .data = b->file != NULL   ? read[i]
                                                     : b->blob != NULL ? fl_blob_data(b->blob)
                                                                       : NULL,
                                             .len = len};
    }
    return FL_OK;
}

/* Replace the metrics, which are borrowed, by copies; false: out of memory, and none is borrowed.
 */
static bool work_own_metrics(struct fl_wire_evaluation *first, struct fl_wire_evaluation *second)
{
    struct fl_wire_evaluation *both[] = {first, second};
    bool have = true;
    size_t i;

    for (i = 0; i < 2; i++) {
        if (both[i]->metrics != NULL) {
            both[i]->metrics = fl_str_dup(both[i]->metrics);
            have = have && both[i]->metrics != NULL;
        }
    }
    return have;
}

static int work_take_result(const struct fl_result *r, const struct fl_attack *attack,
                            struct fl_job_answer *a)
{
    struct fl_wire_event event = fl_session_report(r);
    struct fl_wire_report *report = &event.u.report;
    bool have = work_own_metrics(&report->received, &report->trained);

    report->divergence = malloc((r->n_units + 1) * sizeof(*r->divergence));
    a->event = event; /* The answer owns it, also on error. */
    if (!have || report->divergence == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(report->divergence, r->divergence, r->n_units * sizeof(*r->divergence));
    fl_attacker_claim(attack, report);
    a->event = event;
    return FL_OK;
}

/* An attacker trains through a trainer that changes the update. */
static int work_run_training(const struct fl_pool_job *job, struct fl_member *m,
                             const struct fl_sim_client *sim_client, struct fl_err *err)
{
    struct fl_trainer *own = m->worker.trainer;
    struct fl_attacker attacker;
    int rv;

    if (sim_client->attack == NULL) {
        return fl_member_train(m, err);
    }
    fl_attacker_init(&attacker, own, sim_client->attack, m->worker.setup->layout, sim_client->name);
    if (job->collusion.malicious != NULL) {
        attacker.malicious = (const float *)(const void *)fl_blob_data(job->collusion.malicious);
    }
    fl_member_lend(m, &attacker.trainer);
    rv = fl_member_train(m, err);
    fl_member_lend(m, own);
    return rv;
}

/* Payloads are lent to the member until its training has ended. */
static int work_fetch_and_train(struct fl_pool_job *job, const struct fl_sim_client *sim_client,
                                struct fl_member *m, struct fl_err *err)
{
    const struct fl_model_cache_item *items[FL_PAYLOADS_MAX];
    struct fl_member_payload list[FL_PAYLOADS_MAX];
    uint8_t *read[FL_PAYLOADS_MAX] = {NULL};
    size_t n = fl_model_cache_list(job->model_cache, sim_client->name, items);
    size_t i;
    int rv = work_read_payloads(items, n, list, read, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_member_fetch(m, &job->task, list, n, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = work_run_training(job, m, sim_client, err);
done:
    for (i = 0; i < n; i++) {
        free(read[i]);
    }
    return rv;
}

static int work_train(struct fl_pool_job *job, struct fl_member *m, struct fl_err *err)
{
    struct fl_sim_client sim_client;
    int rv;

    job->pool->conf.sim_clients->sim_client(job->pool->conf.sim_clients->ctx, job->client,
                                            &sim_client);
    if (!fl_pending_result_is(&m->held, job->task.key)) {
        rv = work_fetch_and_train(job, &sim_client, m, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (job->collusion.shares) {
        rv = fl_attacker_share(m->worker.setup->layout, m->held.result->delta, &job->update);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return work_take_result(m->held.result, sim_client.attack, &job->answer);
}

/* --- other jobs --- */

static int work_code(struct fl_pool_job *job, struct fl_member *m, struct fl_err *err)
{
    struct fl_code code = {.setup = NULL};
    struct fl_sim_client sim_client;
    int rv;

    if (!fl_pending_result_is(&m->held, job->task.key)) {
        return fl_err_set(err, FL_ESTATE, "there is no pending result of round %llu",
                          (unsigned long long)job->task.key.round);
    }
    job->pool->conf.sim_clients->sim_client(job->pool->conf.sim_clients->ctx, job->client,
                                            &sim_client);
    rv = fl_member_code(m, job->units, &code, err);
    if (rv != FL_OK) {
        goto done;
    }
    job->answer.bytes = fl_blob_len(code.bytes);
    if (job->pool->conf.federation != NULL) {
        rv = fl_member_upload(job->pool->conf.federation, sim_client.name, &code,
                              &job->answer.norms, err);
        if (rv != FL_OK) {
            goto done;
        }
        job->answer.n_units = fl_layout_units(m->worker.setup->layout);
    } else {
        job->parts = code.parts;
        job->n_parts = code.n_parts;
        job->upload = fl_blob_ref(code.bytes);
        code.parts = NULL;
    }
done:
    fl_code_done(&code);
    return rv;
}

static int work_evaluate(struct fl_pool_job *job, struct fl_member *m, struct fl_err *err)
{
    struct fl_evaluation_result found = {.received = {0}};
    int rv = fl_evaluation_run(&m->worker,
                               &(struct fl_evaluation_request){
                                   .setup = job->pool->conf.setup,
                                   .task = &job->task,
                                   .model = (const float *)(const void *)fl_blob_data(job->model),
                                   .rate = job->rate,
                                   .cancel = &job->cancel},
                               &found, err);

    job->answer.event = fl_session_evaluation(job->task.key.round, &found);
    if (!work_own_metrics(&job->answer.event.u.evaluation.result,
                          &job->answer.event.u.evaluation.adapted) &&
        rv == FL_OK)
    {
        return FL_ENOMEM;
    }
    return rv;
}

static int work_summarize_data(struct fl_pool_job *job, struct fl_member *m, struct fl_err *err)
{
    struct fl_data_summary made;
    int rv = fl_data_summary_make(&m->worker, &made, err);

    if (rv != FL_OK) {
        goto done;
    }
    job->answer.bytes = made.data.len;
    rv = fl_buf_add(&job->bytes, made.data.data, made.data.len);
done:
    fl_data_summary_done(&made);
    return rv;
}

static int work_run(struct fl_pool_job *job, struct fl_member *m, struct fl_err *err)
{
    switch (job->kind) {
    case FL_JOB_TRAIN:
        return work_train(job, m, err);
    case FL_JOB_CODE:
        return work_code(job, m, err);
    case FL_JOB_EVALUATE:
        return work_evaluate(job, m, err);
    case FL_JOB_SUMMARY:
    default:
        return work_summarize_data(job, m, err);
    }
}

static int work_run_with_data(struct fl_pool_job *job, const struct fl_sim_client_data *data,
                              struct fl_err *err)
{
    struct fl_worker_pool *pool = job->pool;
    struct fl_trainer *trainer = NULL;
    struct fl_member *m = NULL;
    int rv = work_begin_member(pool, job->client, &m, err);

    if (rv != FL_OK) {
        goto done;
    }
    if (job->kind != FL_JOB_CODE) {
        rv = work_take_trainer(pool, job->client, data, &trainer, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    fl_member_lend(m, trainer);
    rv = work_run(job, m, err);
    fl_member_lend(m, NULL);
done:
    if (trainer != NULL) {
        work_return_trainer(pool, trainer);
    }
    if (m != NULL && m->held.result == NULL) {
        fl__worker_pool_close(pool, job->client);
    }
    return rv;
}

/* Attackers train on poisoned data; everything else that they do uses their own. */
static int work_run_poisoned(struct fl_pool_job *job, const struct fl_sim_client_data *data,
                             struct fl_err *err)
{
    struct fl_sim_client_data changed = *data;
    struct fl_dataset *poisoned = NULL;
    struct fl_sim_client sim_client;
    int rv;

    job->pool->conf.sim_clients->sim_client(job->pool->conf.sim_clients->ctx, job->client,
                                            &sim_client);
    if (sim_client.attack == NULL || job->kind != FL_JOB_TRAIN) {
        return work_run_with_data(job, data, err);
    }
    rv = fl_poison_make(sim_client.attack, data->train, &poisoned, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (poisoned != NULL) {
        changed.train = poisoned;
    }
    rv = work_run_with_data(job, &changed, err);
    fl_dataset_free(poisoned);
    return rv;
}

static void work_run_job(struct fl_pool_job *job)
{
    const struct fl_sim_clients *sim_clients = job->pool->conf.sim_clients;
    struct fl_sim_client_data data = {.train = NULL};
    struct fl_err err = {0};
    bool coding = job->kind == FL_JOB_CODE;
    int rv = coding ? FL_OK : sim_clients->data(sim_clients->ctx, job->client, &data, &err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = work_run_poisoned(job, &data, &err);
    if (!coding) {
        sim_clients->release(sim_clients->ctx, &data);
    }
done:
    job->answer.code = rv;
    if (rv != FL_OK) {
        (void)snprintf(job->answer.why, sizeof(job->answer.why), "%s", fl_err_text(&err, rv));
    }
}

/* --- the queue --- */

void fl__worker_pool_occupy(struct fl_worker_pool *pool, uint32_t client)
{
    FL_REQUIRE(!pool->busy[client]);
    pool->busy[client] = true;
}

/* A queued job of the client can start now. */
void fl__worker_pool_release(struct fl_worker_pool *pool, uint32_t client)
{
    pool->busy[client] = false;
    (void)pthread_cond_broadcast(&pool->done);
    (void)pthread_cond_signal(&pool->more);
}

void fl__worker_pool_run(struct fl_pool_job *job)
{
    struct fl_worker_pool *pool = job->pool;

    fl_list_remove(&job->link);
    job->state = FL__JOB_RUNNING;
    fl__worker_pool_occupy(pool, job->client);
    (void)pthread_mutex_unlock(&pool->lock);
    work_run_job(job);
    (void)pthread_mutex_lock(&pool->lock);
    job->state = FL__JOB_DONE;
    fl__worker_pool_release(pool, job->client);
}

bool fl__worker_pool_step(struct fl_worker_pool *pool)
{
    bool any;

    (void)pthread_mutex_lock(&pool->lock);
    any = fl__worker_pool_first(pool) != NULL;
    if (any) {
        fl__worker_pool_run(fl__worker_pool_first(pool));
    }
    (void)pthread_mutex_unlock(&pool->lock);
    return any;
}
