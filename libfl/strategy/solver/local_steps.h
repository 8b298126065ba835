#ifndef FL_STRATEGY_LOCAL_STEPS_H
#define FL_STRATEGY_LOCAL_STEPS_H

/*
 * The steps of one training with the built-in engine: which samples, in which order
 * (docs/algorithms.md#local-steps). A client makes them on its own data, a server that trains a
 * reference update (robust: fltrust) on its root data set.
 *
 * Epochs: each visits the data once in a fresh order drawn from (seed, epoch); the last short batch
 * is used. Steps (epochs 0): R batches that walk through one fixed order, drawn from the order
 * seed, cyclically across rounds; where a round begins follows from its number, so that nothing has
 * to survive a restart.
 *
 * Where samples come from, and cancelling, are callbacks: the room knows neither data nor threads.
 */

#include "libfl/model/task.h"
#include "libfl/strategy/solver/solver.h"
#include "libfl/strategy/space/space.h"

/*
 * Entries that steps leave as they are: those of some tensors, with their values at the time of
 * fl_fixed_entries_take(). Running statistics of batch-norms are never among them: every pass
 * updates them.
 */
struct fl_fixed_entries {
    struct fl_entry_run {
        size_t offset, n; /* of the network's internal block */
    } * run;
    size_t n_runs;
    float *values; /* of the runs, one after the other */
};
typedef bool fl_fixed_choice(void *ctx, const struct fl_layout *layout,
                             const struct fl_tensor *tensor);
/* The current values of the entries of all tensors that `choose` names. FL_ENOMEM. */
FL_MUST_CHECK int fl_fixed_entries_take(struct fl_net *net, fl_fixed_choice *choose, void *ctx,
                                        struct fl_fixed_entries *ret, struct fl_err *err);
void fl_fixed_entries_done(struct fl_fixed_entries *fixed);

struct fl_local_steps {
    struct fl_net *net; /* that of the solver */
    const struct fl_solver_ops *solver;
    const struct fl_space_steps *space;   /* NULL: steps are in all entries */
    const struct fl_fixed_entries *fixed; /* NULL: none */
    /* Steps of the same task before these, whose batches and draws these continue; 0 with steps
       in one fixed order. */
    uint64_t first;
    size_t samples;
    /* Copies the n samples `idx` to x and y; changes of training samples are draws of `rng`. */
    void (*gather)(void *ctx, struct fl_rng *rng, const uint32_t *idx, size_t n, float *x,
                   int32_t *y);
    bool (*canceled)(void *ctx);                             /* NULL: never */
    void (*progress)(void *ctx, uint64_t done, uint64_t of); /* may be NULL */
    void *ctx;
    const struct fl_task *task; /* its round, seeds, and the learning rate, which a message names */
    uint32_t *order;            /* [samples] scratch */
    float *x;                   /* [batch][values of a sample] scratch */
    int32_t *y;                 /* [batch] scratch */
    /* fl_local_steps_plan() */
    size_t batch;
    uint64_t n_batches; /* per pass through the data */
    uint64_t n_steps;
    uint32_t cyclic; /* steps per round in one fixed order; 0: shuffled passes */
};

/* Sums over all steps. */
struct fl_local_sums {
    uint64_t samples;
    double loss; /* sum of batch mean times batch size */
};

/* `epochs` passes, or `steps` steps when it is 0, in batches of at most all samples. */
void fl_local_steps_plan(struct fl_local_steps *steps, size_t batch_size, uint32_t epochs,
                         uint32_t n_steps);
/* Makes all steps. FL_ECANCELED; FL_ENUMERIC: diverged. */
FL_MUST_CHECK int fl_local_steps_run(const struct fl_local_steps *steps, struct fl_solver *solver,
                                     struct fl_local_sums *ret, struct fl_err *err);

#endif
