/*
 * The order of samples in a training, and its loop (local_steps.h). Runs on the thread that trains;
 * it knows neither where samples come from nor what a step is.
 */
#include "libfl/strategy/solver/local_steps.h"

#include <inttypes.h>
#include <math.h>

void fl_local_steps_plan(struct fl_local_steps *s, size_t batch_size, uint32_t epochs,
                         uint32_t n_steps)
{
    s->batch = batch_size < s->samples ? batch_size : s->samples;
    s->n_batches = (s->samples + s->batch - 1) / s->batch;
    s->n_steps = epochs > 0 ? epochs * s->n_batches : n_steps;
    s->cyclic = epochs > 0 ? 0 : n_steps;
}

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
                          step + 1, s->n_steps, s->task->learning_rate);
    }
    if (s->space != NULL) {
        fl_space_project(s->space, fl_net_params(s->net));
    }
    sums->loss += loss * (double)n;
    sums->samples += n;
    return FL_OK;
}

int fl_local_steps_run(const struct fl_local_steps *s, struct fl_solver *solver,
                       struct fl_local_sums *ret, struct fl_err *err)
{
    uint64_t step;

    *ret = (struct fl_local_sums){0};
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
        rv = one_step(s, solver, step, ret, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (s->progress != NULL) {
            s->progress(s->ctx, step + 1, s->n_steps);
        }
    }
    return FL_OK;
}
