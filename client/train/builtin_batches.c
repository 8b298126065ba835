/*
 * The steps of one task of the built-in engine: which samples, in which order
 * (docs/algorithms.md#local-steps).
 *
 * Epochs: each visits the data once in a fresh order drawn from (task seed, epoch); the
 * last short batch is used. Steps (epochs 0): R batches that walk through one fixed order, drawn
 * from the order seed, cyclically across rounds; where a round begins follows from its number,
 * so that nothing has to survive a restart.
 */
#include <inttypes.h>
#include <math.h>

#include "client/train/builtin_impl.h"

struct fl__walk fl__walk_passes(struct fl__builtin *b, const struct fl_train_task *task,
                                const struct fl_dataset *ds, uint32_t epochs, uint32_t steps)
{
    struct fl__walk w = {.b = b, .task = task, .ds = ds};

    w.batch = b->batch_size < ds->n ? b->batch_size : ds->n;
    w.n_batches = (ds->n + w.batch - 1) / w.batch;
    w.n_steps = epochs > 0 ? epochs * w.n_batches : steps;
    w.cyclic = epochs > 0 ? 0 : steps;
    return w;
}

/* The sample order of pass `pass` through the data. */
static void batches_shuffle(const struct fl__walk *w, uint64_t pass)
{
    uint32_t *order = w->b->order;
    struct fl_rng rng;
    size_t n = w->ds->n;
    size_t i;

    for (i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
    }
    if (w->cyclic == 0) {
        fl_rng_key(&rng, w->task->seed, FL_RNG_BATCH, pass, 0);
    } else {
        /* One order for all rounds and passes, shuffled because files are often sorted by label. */
        fl_rng_key(&rng, w->task->order_seed, FL_RNG_BATCH, 0, n);
    }
    fl_rng_shuffle(&rng, order, n);
}

static int one_step(const struct fl__walk *w, struct fl_solver *solver, uint64_t step,
                    struct fl__walk_sums *sums, struct fl_err *err)
{
    struct fl__builtin *b = w->b;
    uint64_t batch = step % w->n_batches;
    size_t at;
    size_t n;
    double loss;
    struct fl_rng rng;

    if (w->cyclic > 0) {
        batch = ((w->task->round - 1) % w->n_batches * (w->cyclic % w->n_batches) + step) %
                w->n_batches;
    } else if (batch == 0) {
        batches_shuffle(w, step / w->n_batches);
    }
    at = (size_t)batch * w->batch;
    n = w->ds->n - at < w->batch ? w->ds->n - at : w->batch;
    /*
     * Copy the samples of a training batch into b->x and b->y, which are valid until the next
     * batch. The task's seed depends on round and client only, so a step augments alike after a
     * restart.
     */
    fl_rng_key(&rng, w->task->seed, FL_RNG_AUGMENT, step, 0);
    fl_dataset_gather_train(w->ds, &rng, b->order + at, n, w->b->x, w->b->y);
    loss = b->solver->step(solver, b->x, b->y, n);
    if (!isfinite(loss)) {
        return fl_err_set(err, FL_ENUMERIC,
                          "training diverged: the loss of step %" PRIu64 " of %" PRIu64
                          " is not finite; a smaller learning rate than %g helps",
                          step + 1, w->n_steps, w->task->learning_rate);
    }
    if (w->space != NULL) {
        fl_space_project(w->space, fl_net_params(b->net));
    }
    sums->loss += loss * (double)n;
    sums->samples += n;
    return FL_OK;
}

int fl__walk_run(const struct fl__walk *walk, struct fl_solver *solver, struct fl__walk_sums *ret,
                 struct fl_err *err)
{
    uint64_t step;

    *ret = (struct fl__walk_sums){0};
    if (walk->cyclic > 0) {
        batches_shuffle(walk, 0);
    }
    for (step = 0; step < walk->n_steps; step++) {
        int rv;

        if (fl__train_canceled(walk->task)) {
            return fl_err_set(err, FL_ECANCELED,
                              "training was cancelled after %" PRIu64 " of %" PRIu64 " steps", step,
                              walk->n_steps);
        }
        rv = one_step(walk, solver, step, ret, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (walk->task->progress != NULL) {
            walk->task->progress(walk->task->ctx, step + 1, walk->n_steps);
        }
    }
    return FL_OK;
}
