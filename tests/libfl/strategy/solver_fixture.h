#ifndef FL_TESTS_SOLVER_FIXTURE_H
#define FL_TESTS_SOLVER_FIXTURE_H

/* A small network, batches for it, and a run of a solver over them. */

#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/solver/solver.h"
#include "tests/libfl/strategy/strategy_fixture.h"

#define INPUTS  13
#define CLASSES 4
#define BATCH   6
#define STEPS   25

struct fixture {
    struct fl_net *net;
    float *start; /* exported */
    size_t count, block;
    float x[STEPS][BATCH * INPUTS];
    int32_t y[STEPS][BATCH];
};

static inline void fixture_init_with(struct fixture *f, const char *const *layers, size_t n_layers)
{
    struct fl_net_spec spec = {
        .input = {INPUTS}, .n_input = 1, .layers = layers, .n_layers = n_layers};
    struct fl_err err = {0};
    struct fl_rng rng;
    size_t s;
    size_t i;

    ck_assert_msg(fl_net_create(&spec, BATCH, &f->net, &err) == FL_OK, "%s", err.msg);
    fl_rng_seed(&rng, 5);
    fl_net_init(f->net, &rng);
    f->count = fl_layout_count(fl_net_layout(f->net));
    f->block = fl_net_block(f->net);
    f->start = calloc(f->count, sizeof(float));
    fl_net_get(f->net, f->start);
    for (s = 0; s < STEPS; s++) {
        for (i = 0; i < (size_t)BATCH * INPUTS; i++) {
            f->x[s][i] = (float)fl_rng_normal(&rng);
        }
        for (i = 0; i < BATCH; i++) {
            f->y[s][i] = (int32_t)fl_rng_below(&rng, CLASSES);
        }
    }
}

static inline void fixture_init(struct fixture *f)
{
    /* Wide enough that a range of the model is longer than a solver's chunk. */
    static const char *const layers[] = {"dense 301", "relu", "dense 4"};

    fixture_init_with(f, layers, sizeof(layers) / sizeof(layers[0]));
}

static inline void fixture_done(struct fixture *f)
{
    fl_net_free(f->net);
    free(f->start);
}

/* STEPS steps of a solver from the start; returns the model, exported. */
static inline float *run(struct fixture *f, const struct fl_solver_ops *ops, const char *option1,
                         const char *option2, const struct fl_solver_setup *how)
{
    struct fl_options *o = options_of(&ops->policy, option1, option2, NULL);
    struct fl_solver_setup setup = *how;
    struct fl_solver *solver = NULL;
    float *model = calloc(f->count, sizeof(float));
    size_t s;

    fl_net_set(f->net, f->start);
    setup.net = f->net;
    setup.n_steps = STEPS;
    setup.round = 1;
    ck_assert_int_eq(ops->create(o, &setup, &solver, NULL), FL_OK);
    for (s = 0; s < STEPS; s++) {
        ck_assert(isfinite(ops->step(solver, f->x[s], f->y[s], BATCH)));
    }
    ops->destroy(solver);
    fl_net_get(f->net, model);
    fl_options_free(o);
    return model;
}

static const struct fl_solver_setup setups[] = {
    {.learning_rate = 0.1},
    {.learning_rate = 0.1, .momentum = 0.9},
    {.learning_rate = 0.1, .weight_decay = 0.01},
    {.learning_rate = 0.03, .momentum = 0.5, .weight_decay = 0.001},
};

#endif
