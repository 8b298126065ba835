/*
 * The order of samples in a training, and its loop (local_steps.h). Runs on the thread that trains;
 * it knows neither where samples come from nor what a step is.
 */
#include "libfl/strategy/solver/local_steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/solver/solver_impl.h"

void fl_local_steps_plan(struct fl_local_steps *s, size_t batch_size, uint32_t epochs,
                         uint32_t n_steps)
{
    s->batch = batch_size < s->samples ? batch_size : s->samples;
    s->n_batches = (s->samples + s->batch - 1) / s->batch;
    s->n_steps = epochs > 0 ? epochs * s->n_batches : n_steps;
    s->cyclic = epochs > 0 ? 0 : n_steps;
}

/* --- entries that stay fixed --- */

int fl_fixed_entries_take(struct fl_net *net, fl_fixed_choice *choose, void *ctx,
                          struct fl_fixed_entries *ret, struct fl_err *err)
{
    struct fl_fixed_entries fixed = {.n_runs = 0};
    const float *params = fl_net_params(net);
    size_t n = 0;
    size_t i;
    int rv = fl__runs_of(net, choose, ctx, &fixed.run, &fixed.n_runs, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < fixed.n_runs; i++) {
        n += fixed.run[i].n;
    }
    fixed.values = malloc((n + 1) * sizeof(*fixed.values));
    if (fixed.values == NULL) {
        fl_fixed_entries_done(&fixed);
        return fl_err_set(err, FL_ENOMEM, "%zu parameters that stay fixed: out of memory", n);
    }
    for (n = 0, i = 0; i < fixed.n_runs; n += fixed.run[i++].n) {
        (void)memcpy(fixed.values + n, params + fixed.run[i].offset,
                     fixed.run[i].n * sizeof(*params));
    }
    *ret = fixed;
    return FL_OK;
}

void fl_fixed_entries_done(struct fl_fixed_entries *fixed)
{
    free(fixed->run);
    free(fixed->values);
    *fixed = (struct fl_fixed_entries){.n_runs = 0};
}

static void steps_restore_fixed(const struct fl_fixed_entries *fixed, float *params)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < fixed->n_runs; n += fixed->run[i++].n) {
        (void)memcpy(params + fixed->run[i].offset, fixed->values + n,
                     fixed->run[i].n * sizeof(*params));
    }
}

/* --- steps --- */

/* The sample order of pass `pass` through the data. */
static void steps_shuffle(const struct fl_local_steps *s, uint64_t pass)
{
    struct fl_rng rng;
    size_t i;

    for (i = 0; i < s->samples; i++) {
        s->order[i] = (uint32_t)i;
    }
    if (s->cyclic == 0) {
        fl_rng_key(&rng, s->task->seed, FL_RNG_BATCH, pass, 0);
    } else {
        /* One order for all rounds and passes, shuffled because files are often sorted by label. */
        fl_rng_key(&rng, s->task->order_seed, FL_RNG_BATCH, 0, s->samples);
    }
    fl_rng_shuffle(&rng, s->order, s->samples);
}

static int one_step(const struct fl_local_steps *s, struct fl_solver *solver, uint64_t step,
                    struct fl_local_sums *sums, struct fl_err *err)
{
    uint64_t batch = step % s->n_batches;
    size_t at;
    size_t n;
    double loss;
    struct fl_rng rng;

    if (s->cyclic > 0) {
        batch = ((s->task->key.round - 1) % s->n_batches * (s->cyclic % s->n_batches) + step) %
                s->n_batches;
    } else if (batch == 0) {
        steps_shuffle(s, step / s->n_batches);
    }
    at = (size_t)batch * s->batch;
    n = s->samples - at < s->batch ? s->samples - at : s->batch;
    /* The seed depends on round and client only, so a step augments alike after a restart. */
    fl_rng_key(&rng, s->task->seed, FL_RNG_AUGMENT, step, 0);
    s->gather(s->ctx, &rng, s->order + at, n, s->x, s->y);
    loss = s->solver->step(solver, s->x, s->y, n);
    if (!isfinite(loss)) {
        return fl_err_set(err, FL_ENUMERIC,
                          "training diverged: the loss of step %" PRIu64 " of %" PRIu64
                          " is not finite; a smaller learning rate than %g helps",
                          step - s->first + 1, s->n_steps, s->task->learning_rate);
    }
    if (s->space != NULL) {
        fl_space_project(s->space, fl_net_params(s->net));
    }
    if (s->fixed != NULL) {
        steps_restore_fixed(s->fixed, fl_net_params(s->net));
    }
    sums->loss += loss * (double)n;
    sums->samples += n;
    return FL_OK;
}

/* One pass over all samples before the first step, in the order of the data. Its draws are those of
   steps that no training makes. */
static int steps_pass(const struct fl_local_steps *s, struct fl_solver *solver, struct fl_err *err)
{
    struct fl_rng rng;
    size_t at;
    size_t i;

    for (i = 0; i < s->samples; i++) {
        s->order[i] = (uint32_t)i;
    }
    for (at = 0; at < s->samples; at += s->batch) {
        size_t n = s->samples - at < s->batch ? s->samples - at : s->batch;

        if (s->canceled != NULL && s->canceled(s->ctx)) {
            return fl_err_set(err, FL_ECANCELED,
                              "training was cancelled in the pass before its first step");
        }
        fl_rng_key(&rng, s->task->seed, FL_RNG_AUGMENT, UINT64_MAX - at, 0);
        s->gather(s->ctx, &rng, s->order + at, n, s->x, s->y);
        s->solver->pass(solver, s->x, s->y, n, s->samples);
    }
    return FL_OK;
}

int fl_local_steps_run(const struct fl_local_steps *s, struct fl_solver *solver,
                       struct fl_local_sums *ret, struct fl_err *err)
{
    uint64_t step;

    *ret = (struct fl_local_sums){0};
    if (s->solver->wants_pass != NULL && s->solver->wants_pass(solver)) {
        int rv = steps_pass(s, solver, err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    if (s->cyclic > 0) {
        steps_shuffle(s, 0);
    }
    for (step = 0; step < s->n_steps; step++) {
        int rv;

        if (s->canceled != NULL && s->canceled(s->ctx)) {
            return fl_err_set(err, FL_ECANCELED,
                              "training was cancelled after %" PRIu64 " of %" PRIu64 " steps", step,
                              s->n_steps);
        }
        rv = one_step(s, solver, s->first + step, ret, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (s->progress != NULL) {
            s->progress(s->ctx, step + 1, s->n_steps);
        }
    }
    return FL_OK;
}
