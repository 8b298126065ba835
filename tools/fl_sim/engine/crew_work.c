/* The clients' work itself, by client/work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/work/evaluation.h"
#include "client/work/offer.h"
#include "tools/fl_sim/engine/crew_impl.h"

/* --- a client's member --- */

static int begin_member(struct fl_crew *crew, uint32_t client, struct fl_member **ret,
                        struct fl_err *err)
{
    struct fl_member *m = crew->members[client];
    struct fl_member_place place = {.log = crew->conf.log};
    struct fl_person person;
    char dir[sizeof(m->dir)];
    int n;
    int rv;

    if (m != NULL) {
        *ret = m;
        return FL_OK;
    }
    crew->conf.people->person(crew->conf.people->ctx, client, &person);
    place.seed = person.seed;
    place.least_group = person.least_group;
    place.dir = dir;
    n = snprintf(dir, sizeof(dir), "%s/%s", crew->conf.dir, person.name);
    if (n < 0 || (size_t)n >= sizeof(dir)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", crew->conf.dir);
    }
    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return FL_ENOMEM;
    }
    rv = fl_member_begin(m, &place, crew->conf.setup, err);
    if (rv != FL_OK) {
        free(m);
        return rv;
    }
    crew->members[client] = m;
    *ret = m;
    return FL_OK;
}

void fl__crew_close(struct fl_crew *crew, uint32_t client)
{
    struct fl_member *m = crew->members[client];

    if (m != NULL) {
        fl_member_close(m);
        free(m);
        crew->members[client] = NULL;
    }
}

/* --- an engine --- */

/* One over this data, that nobody else works with. */
static int take_trainer(struct fl_crew *crew, const struct fl_person_data *data,
                        struct fl_trainer **ret, struct fl_err *err)
{
    struct fl_trainer *trainer = NULL;
    int rv;

    (void)pthread_mutex_lock(&crew->lock);
    if (crew->n_spare > 0) {
        trainer = crew->spare[--crew->n_spare];
    }
    (void)pthread_mutex_unlock(&crew->lock);
    if (trainer != NULL) {
        rv = fl_trainer_set_data(trainer, data->train, data->test, err);
    } else {
        rv = fl_trainer_builtin(data->train, data->test, crew->conf.kernels, &trainer, err);
        rv = rv == FL_OK ? fl_worker_prepare_trainer(trainer, crew->conf.setup, err) : rv;
    }
    if (rv != FL_OK) {
        fl_trainer_free(trainer);
        return rv;
    }
    *ret = trainer;
    return FL_OK;
}

static void give_trainer(struct fl_crew *crew, struct fl_trainer *trainer)
{
    (void)pthread_mutex_lock(&crew->lock);
    if (crew->n_spare < crew->n_threads + 1) {
        crew->spare[crew->n_spare++] = trainer;
        trainer = NULL;
    }
    (void)pthread_mutex_unlock(&crew->lock);
    fl_trainer_free(trainer);
}

/* --- training --- */

/* What the client may fetch, in memory. */
static int read_bundles(const struct fl_shelf_item *const *items, size_t n,
                        struct fl_member_bundle *list, uint8_t **read, struct fl_err *err)
{
    size_t i;
    int rv = FL_OK;

    for (i = 0; rv == FL_OK && i < n; i++) {
        const struct fl_bytes *b = &items[i]->bytes;
        size_t len = (size_t)fl_bytes_len(b);

        if (b->file != NULL) {
            read[i] = malloc(len + 1);
            rv = read[i] != NULL ? fl_file_read(b->file, 0, read[i], len) : FL_ENOMEM;
            if (rv != FL_OK) {
                rv = fl_err_set(err, rv, "bundle '%s': %s", items[i]->name, fl_strerror(rv));
            }
        }
        list[i] = (struct fl_member_bundle){.name = items[i]->name,
                                            .data = b->file != NULL   ? read[i]
                                                    : b->blob != NULL ? fl_blob_data(b->blob)
                                                                      : NULL,
                                            .len = len,
                                            .has_digest = items[i]->has_digest};
    }
    return rv;
}

static struct fl_eval_rec eval_rec(const struct fl_result_evaluation *e)
{
    return (struct fl_eval_rec){e->samples, e->correct, e->loss_sum};
}

static int take_result(const struct fl_result *r, struct fl_job_answer *a)
{
    a->samples = r->samples;
    a->steps = r->steps;
    a->train_loss = r->train_loss;
    a->previous_dot = r->previous_dot;
    a->has_received = r->has_received;
    a->has_trained = r->has_trained;
    a->received = r->has_received ? eval_rec(&r->received) : (struct fl_eval_rec){0};
    a->trained = r->has_trained ? eval_rec(&r->trained) : (struct fl_eval_rec){0};
    a->n_units = r->n_units;
    a->divergence = malloc((r->n_units + 1) * sizeof(*a->divergence));
    if (a->divergence == NULL) {
        return FL_ENOMEM;
    }
    (void)memcpy(a->divergence, r->divergence, r->n_units * sizeof(*a->divergence));
    return FL_OK;
}

/* Bundles are lent to the member until it is trained. */
static int fetch_and_train(struct fl_job *job, struct fl_member *m, struct fl_err *err)
{
    const struct fl_shelf_item *items[FL_BUNDLES_MAX];
    struct fl_member_bundle list[FL_BUNDLES_MAX];
    uint8_t *read[FL_BUNDLES_MAX] = {NULL};
    struct fl_person person;
    size_t n;
    size_t i;
    int rv;

    job->crew->conf.people->person(job->crew->conf.people->ctx, job->client, &person);
    n = fl_shelf_list(job->shelf, person.name, items);
    rv = read_bundles(items, n, list, read, err);
    rv = rv == FL_OK ? fl_member_fetch(m, &job->task, list, n, err) : rv;
    rv = rv == FL_OK ? fl_member_train(m, err) : rv;
    for (i = 0; i < n; i++) {
        free(read[i]);
    }
    return rv;
}

static int train(struct fl_job *job, struct fl_member *m, struct fl_err *err)
{
    int rv = fl_held_is(&m->held, job->task.key) ? FL_OK : fetch_and_train(job, m, err);

    return rv == FL_OK ? take_result(m->held.result, &job->answer) : rv;
}

/* --- the others --- */

static int code(struct fl_job *job, struct fl_member *m, struct fl_err *err)
{
    struct fl_code code = {.setup = NULL};
    struct fl_norms norms;
    struct fl_person person;
    int rv;

    if (!fl_held_is(&m->held, job->task.key)) {
        return fl_err_set(err, FL_ESTATE, "nothing is held of round %llu",
                          (unsigned long long)job->task.key.round);
    }
    job->crew->conf.people->person(job->crew->conf.people->ctx, job->client, &person);
    rv = fl_member_code(m, job->units, &code, err);
    if (rv == FL_OK) {
        job->answer.bytes = fl_blob_len(code.bytes);
        if (job->crew->conf.federation != NULL) {
            rv = fl_member_upload(job->crew->conf.federation, person.name, &code, &norms, err);
            if (rv == FL_OK) {
                fl_job_answer_coded(&job->answer, &norms, fl_layout_units(m->worker.setup->layout));
            }
        } else {
            job->parts = code.parts;
            job->n_parts = code.n_parts;
            job->upload = fl_blob_ref(code.bytes);
            code.parts = NULL;
        }
    }
    fl_code_done(&code);
    return rv;
}

static struct fl_eval_rec measured(const struct fl_train_evaluation *e)
{
    return (struct fl_eval_rec){e->samples, e->correct, e->loss_sum};
}

static int evaluate(struct fl_job *job, struct fl_member *m, struct fl_err *err)
{
    struct fl_evaluation found = {.received = {0}};
    int rv = fl_evaluation_run(&m->worker, job->crew->conf.setup, &job->task,
                               (const float *)(const void *)fl_blob_data(job->model), job->rate,
                               &job->cancel, &found, err);

    job->answer.received = measured(&found.received);
    job->answer.trained = measured(&found.adapted);
    job->answer.has_received = found.received.samples > 0;
    job->answer.has_trained = found.adapted.samples > 0;
    return rv;
}

static int offer(struct fl_job *job, struct fl_member *m, struct fl_err *err)
{
    struct fl_offer made;
    int rv = fl_offer_make(&m->worker, &made, err);

    if (rv == FL_OK) {
        rv = fl_buf_add(&job->bytes, made.data.data, made.data.len);
        job->answer.bytes = made.data.len;
    }
    fl_offer_done(&made);
    return rv;
}

static int carry_out(struct fl_job *job, struct fl_member *m, struct fl_err *err)
{
    switch (job->kind) {
    case FL_JOB_TRAIN:
        return train(job, m, err);
    case FL_JOB_CODE:
        return code(job, m, err);
    case FL_JOB_EVALUATE:
        return evaluate(job, m, err);
    case FL_JOB_OFFER:
    default:
        return offer(job, m, err);
    }
}

static int run_with(struct fl_job *job, const struct fl_person_data *data, struct fl_err *err)
{
    struct fl_crew *crew = job->crew;
    struct fl_trainer *trainer = NULL;
    struct fl_member *m = NULL;
    int rv = begin_member(crew, job->client, &m, err);

    if (rv == FL_OK && job->kind != FL_JOB_CODE) {
        rv = take_trainer(crew, data, &trainer, err);
    }
    if (rv == FL_OK) {
        fl_member_lend(m, trainer);
        rv = carry_out(job, m, err);
        fl_member_lend(m, NULL);
    }
    if (trainer != NULL) {
        give_trainer(crew, trainer);
    }
    if (m != NULL && m->held.result == NULL) {
        fl__crew_close(crew, job->client);
    }
    return rv;
}

void fl__crew_run(struct fl_job *job)
{
    const struct fl_people *people = job->crew->conf.people;
    struct fl_person_data data = {.train = NULL};
    struct fl_err err = {0};
    bool coding = job->kind == FL_JOB_CODE;
    int rv = coding ? FL_OK : people->data(people->ctx, job->client, &data, &err);

    if (rv == FL_OK) {
        rv = run_with(job, &data, &err);
        if (!coding) {
            people->release(people->ctx, &data);
        }
    }
    job->answer.code = rv;
    if (rv != FL_OK) {
        (void)snprintf(job->answer.why, sizeof(job->answer.why), "%s", fl_err_text(&err, rv));
    }
}
