/*
 * Results of jobs in a dry run (--no-training), without arithmetic. Sample counts, steps and
 * lengths are those of a real run; divergences of units are drawn uniformly, so no plan prefers
 * one. Losses and evaluations have their wire length only: the federation treats them as unknown.
 * Runs on the caller's thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "libfl/strategy/codec/codec_residual.h"
#include "tools/fl_sim/engine/attacker.h"
#include "tools/fl_sim/engine/worker_pool_impl.h"

/* Any number other than 0: it takes 8 bytes in a message. */
#define SOME_REAL 1.0

/* Steps as the built-in engine counts them: a short last batch of an epoch counts
   (local_steps.c). */
static uint64_t dry_steps(const struct fl_wire_training *t, uint64_t samples)
{
    return t->epochs == 0 || t->batch_size == 0
               ? t->steps
               : t->epochs * ((samples + t->batch_size - 1) / t->batch_size);
}

static struct fl_wire_evaluation dry_evaluation(const struct fl_sim_client *sim_client)
{
    return (struct fl_wire_evaluation){.samples = sim_client->evaluation_samples,
                                       .correct = sim_client->evaluation_samples / 2,
                                       .loss_sum =
                                           sim_client->evaluation_samples > 0 ? SOME_REAL : 0};
}

static int dry_train(struct fl_pool_job *job)
{
    const struct fl_worker_pool *pool = job->pool;
    const struct fl_setup *setup = pool->conf.setup;
    size_t n = fl_layout_units(setup->layout);
    struct fl_wire_report *a = &job->answer.event.u.report;
    struct fl_sim_client sim_client;
    struct fl_rng rng;
    size_t l;

    pool->conf.sim_clients->sim_client(pool->conf.sim_clients->ctx, job->client, &sim_client);
    fl_rng_key(&rng, pool->conf.seed, FL_RNG_SOLVER, job->task.key.round, job->client);
    job->answer.event.type = FL_WIRE_REPORT;
    a->round = job->task.key.round;
    a->attempt = job->task.key.attempt;
    a->samples = sim_client.samples;
    a->steps = dry_steps(&setup->welcome.training, sim_client.samples);
    a->train_loss = SOME_REAL;
    a->previous_dot =
        setup->welcome.wants_previous_dot && job->task.counted.round != 0 ? SOME_REAL : 0;
    a->has_received = sim_client.evaluation_samples > 0;
    a->has_trained = a->has_received && setup->personal->trained;
    a->received = a->trained = dry_evaluation(&sim_client);
    a->has_kept = fl_solver_keeps(setup->solver->keeps) > 0 ||
                  fl_codec_keeps_residual(setup->codec, setup->codec_options);
    a->kept_round = job->task.counted.round;
    a->kept_attempt = job->task.counted.attempt;
    a->n_divergence = n;
    a->divergence = malloc((n + 1) * sizeof(*a->divergence));
    if (a->divergence == NULL) {
        return FL_ENOMEM;
    }
    for (l = 0; l < n; l++) {
        a->divergence[l] = (float)(0.5 + fl_rng_unit(&rng));
    }
    fl_attacker_claim(sim_client.attack, a);
    return FL_OK;
}

/* --- upload lengths --- */

/* The coded length of one unit, and of the data beside it. */
static int dry_unit_bytes(const struct fl_setup *s, size_t l, const float *delta,
                          const uint8_t *keep, uint64_t *ret)
{
    const struct fl_unit *unit = fl_layout_unit(fl_space_updates(s->space, s->layout), l);
    size_t n_sent = fl_solver_names(fl_solver_sends(s->solver, s->solver_options));
    struct fl_unit_update in = {.delta = delta + unit->offset, .keep = keep};
    struct fl_buf buf;
    int rv;

    fl_buf_init(&buf, SIZE_MAX / 2);
    rv = fl_unit_encode(s->codec, s->codec_options, fl_space_updates(s->space, s->layout), l, &in,
                        &buf);
    *ret = buf.len + n_sent * unit->count * sizeof(float);
    fl_buf_done(&buf);
    return rv;
}

/* Entries of an update are drawn from a normal distribution. */
static void dry_draw_delta(const struct fl_layout *layout, float *delta)
{
    size_t n = fl_layout_units(layout);
    struct fl_rng rng;
    size_t l;
    size_t i;

    for (l = 0; l < n; l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);

        fl_rng_key(&rng, 1, FL_RNG_TEST, 0, l);
        for (i = 0; i < unit->count; i++) {
            delta[unit->offset + i] = (float)(1e-3 * fl_rng_normal(&rng));
        }
    }
}

/*
 * The neurons that a client sends (FedADP), into `keep`. The divergence of each unit equals its
 * length, so none gets more than its share of the budget; the total is the budget in any case.
 */
static int dry_draw_mask(const struct fl_setup *s, const float *delta, uint8_t *keep)
{
    return s->upload->mask(s->upload_options, s->layout, delta, delta, keep);
}

int fl__worker_pool_dry_sizes(struct fl_worker_pool *pool)
{
    const struct fl_setup *s = pool->conf.setup;
    size_t n = fl_layout_units(s->layout);
    bool masks = s->upload->mask != NULL;
    float *delta = malloc((fl_layout_count(s->layout) + 1) * sizeof(*delta));
    uint8_t *keep = masks ? malloc(fl_neurons_total(s->layout) + 1) : NULL;
    const uint8_t *at = keep;
    size_t l;
    int rv = FL_ENOMEM;

    pool->unit_bytes = calloc(n + 1, sizeof(*pool->unit_bytes));
    if (delta == NULL || (masks && keep == NULL) || pool->unit_bytes == NULL) {
        goto done;
    }
    dry_draw_delta(fl_space_updates(s->space, s->layout), delta);
    rv = masks ? dry_draw_mask(s, delta, keep) : FL_OK;
    if (rv != FL_OK) {
        goto done;
    }
    for (l = 0; l < n; l++) {
        rv = dry_unit_bytes(s, l, delta, at, &pool->unit_bytes[l]);
        if (rv != FL_OK) {
            goto done;
        }
        at = at != NULL ? at + fl_neurons(s->layout, l) : NULL;
    }
done:
    free(delta);
    free(keep);
    return rv;
}

static void dry_code(struct fl_pool_job *job)
{
    const struct fl_worker_pool *pool = job->pool;
    size_t n = fl_layout_units(pool->conf.setup->layout);
    size_t l;

    for (l = 0; l < n; l++) {
        job->answer.bytes += job->units == NULL || job->units[l] != 0 ? pool->unit_bytes[l] : 0;
    }
}

/* --- other jobs --- */

static int32_t dry_empty_sample(void *ctx, size_t i, float *x)
{
    const size_t *dim = ctx;

    (void)i;
    (void)memset(x, 0, *dim * sizeof(*x));
    return 0;
}

/* The data summary of as many empty samples has the length of the real one. */
static int dry_summarize_data(struct fl_pool_job *job)
{
    const struct fl_setup *s = job->pool->conf.setup;
    struct fl_solver_data data = {
        .dim = 1, .classes = job->pool->conf.classes, .sample = dry_empty_sample};
    struct fl_sim_client sim_client;
    struct fl_err err = {0};
    size_t i;
    int rv;

    job->pool->conf.sim_clients->sim_client(job->pool->conf.sim_clients->ctx, job->client,
                                            &sim_client);
    for (i = 0; i < s->welcome.n_input; i++) {
        data.dim *= s->welcome.input[i];
    }
    data.n = sim_client.samples;
    data.ctx = &data.dim;
    if (data.n == 0 || data.n < sim_client.least_group) {
        return FL_OK; /* The client takes part without a data summary, as with
                         fl_data_summary_make(). */
    }
    rv = s->solver->summary(s->solver_options, &data, sim_client.seed, &job->bytes, &err);
    job->answer.bytes = job->bytes.len;
    if (rv != FL_OK) {
        (void)snprintf(job->answer.why, sizeof(job->answer.why), "%s", fl_err_text(&err, rv));
    }
    return rv;
}

static void dry_evaluate(struct fl_pool_job *job)
{
    const struct fl_worker_pool *pool = job->pool;
    struct fl_wire_evaluated *evaluated = &job->answer.event.u.evaluation;
    struct fl_sim_client sim_client;

    pool->conf.sim_clients->sim_client(pool->conf.sim_clients->ctx, job->client, &sim_client);
    job->answer.event.type = FL_WIRE_EVALUATION;
    evaluated->round = job->task.key.round;
    evaluated->result = evaluated->adapted = dry_evaluation(&sim_client);
    evaluated->has_adapted =
        sim_client.evaluation_samples > 0 && pool->conf.setup->personal->adapts;
}

void fl__worker_pool_dry(struct fl_pool_job *job)
{
    switch (job->kind) {
    case FL_JOB_TRAIN:
        job->answer.code = dry_train(job);
        break;
    case FL_JOB_CODE:
        dry_code(job);
        break;
    case FL_JOB_EVALUATE:
        dry_evaluate(job);
        break;
    case FL_JOB_SUMMARY:
        job->answer.code = dry_summarize_data(job);
        break;
    }
}
