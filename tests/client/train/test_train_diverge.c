#include <math.h>
#include <stdio.h>

#include "libfl/num/kernels.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/suites.h"

/*
 * Numbers that leave the finite ones end a task at the loss of the step that saw them, whatever
 * solver makes the steps and whose kernels compute: nothing is left of it that could be uploaded.
 */

#define SIDE  8
#define BATCH 10
#define STEPS ((SAMPLES + BATCH - 1) / BATCH)

/* Every way of a convolution, ReLU and pooling, which could hide a NaN; and without the former. */
static const char *const image[] = {"conv 16 3x3 pad 1",
                                    "relu",
                                    "conv 32 3x3 pad 1",
                                    "relu",
                                    "maxpool 2",
                                    "conv 16 5x5 pad 2",
                                    "relu",
                                    "maxpool 2",
                                    "conv 16 3x3 pad 1",
                                    "relu",
                                    "flatten",
                                    "dense 20",
                                    "relu",
                                    "dense 3"};
static const char *const normed[] = {"conv 16 3x3 pad 1", "bn",      "relu",
                                     "maxpool 2",         "flatten", "dense 3"};
static const char *const flat[] = {"flatten", "dense 40", "relu", "dense 20", "relu", "dense 3"};
#define NET(list)                              \
    {                                          \
        list, sizeof(list) / sizeof((list)[0]) \
    }
static const struct {
    const char *const *layers;
    size_t n;
} nets[] = {NET(image), NET(normed), NET(flat)};
#define N_NETS (sizeof(nets) / sizeof(nets[0]))

struct rig {
    struct fl_net *net;
    struct fl_options *options;
    struct fl_dataset *data;
    struct fl_trainer *trainer;
    struct fl_buf summaries;
    float *theta, *zeros;
    struct fl_solver_bytes inputs[4], kept[4];
    struct fl_train_task task;
    struct fl_err err;
};

static struct fl_dataset *pictures(void)
{
    size_t dims[3] = {1, SIDE, SIDE};
    struct fl_dataset *ds = NULL;
    struct fl_rng rng;
    float *x;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, SAMPLES, dims, 3, &ds, NULL), FL_OK);
    fl_rng_seed(&rng, 6);
    x = ds->x;
    for (i = 0; i < SAMPLES * SIDE * SIDE; i++) {
        x[i] = (float)fl_rng_normal(&rng);
    }
    for (i = 0; i < SAMPLES; i++) {
        ds->y[i] = (int32_t)(i % CLASSES);
    }
    ds->classes = CLASSES;
    return ds;
}

static void fill_task(struct rig *r, const struct fl_solver_ops *solver)
{
    size_t bytes = fl_layout_count(fl_net_layout(r->net)) * sizeof(float);
    size_t i;

    for (i = 0; i < fl_solver_names(solver->inputs); i++) {
        bool summaries =
            solver->collection != NULL && strcmp(solver->inputs[i], solver->collection) == 0;

        r->inputs[i] = summaries ? (struct fl_solver_bytes){r->summaries.data, r->summaries.len}
                                 : (struct fl_solver_bytes){r->zeros, bytes};
    }
    for (i = 0; i < fl_solver_keeps(solver->keeps); i++) {
        r->kept[i] = (struct fl_solver_bytes){r->zeros, bytes};
    }
    r->task = (struct fl_train_task){.asked.key.round = 1,
                                     .model = r->theta,
                                     .asked.learning_rate = 1e-3,
                                     .asked.seed = 77,
                                     .summary_seed = 5,
                                     .asked.n_selected = 2,
                                     .asked.population = 4,
                                     .inputs = r->inputs,
                                     .kept = r->kept};
}

static void rig_open(struct rig *r, size_t net, const struct fl_solver_ops *solver,
                     const struct fl_kernels *kernels)
{
    struct fl_train_model model = {.net = {.input = {1, SIDE, SIDE},
                                           .n_input = 3,
                                           .layers = nets[net].layers,
                                           .n_layers = nets[net].n},
                                   .solver = solver,
                                   .epochs = 1,
                                   .batch_size = BATCH};
    struct fl_rng rng;
    size_t n;

    (void)memset(r, 0, sizeof(*r));
    ck_assert_int_eq(fl_net_create_evaluator(&model.net, &r->net, NULL), FL_OK);
    n = fl_layout_count(fl_net_layout(r->net));
    r->theta = calloc(n, sizeof(float));
    r->zeros = calloc(n, sizeof(float));
    fl_rng_seed(&rng, 1);
    fl_net_init(r->net, &rng);
    fl_net_get(r->net, r->theta);
    r->data = pictures();
    ck_assert_int_eq(fl_options_create(solver->policy.options, &r->options), FL_OK);
    model.layout = fl_net_layout(r->net);
    model.solver_options = r->options;
    ck_assert_int_eq(fl_trainer_builtin(r->data, NULL, kernels, &r->trainer, &r->err), FL_OK);
    ck_assert_msg(fl_trainer_prepare(r->trainer, &model, &r->err) == FL_OK, "%s", r->err.msg);
    fl_buf_init(&r->summaries, SIZE_MAX);
    if (solver->summary != NULL) {
        ck_assert_msg(fl_trainer_summary(r->trainer, 5, &r->summaries, &r->err) == FL_OK, "%s",
                      r->err.msg);
    }
    fill_task(r, solver);
}

static void rig_close(struct rig *r)
{
    fl_trainer_free(r->trainer);
    fl_options_free(r->options);
    fl_dataset_free(r->data);
    fl_buf_done(&r->summaries);
    fl_net_free(r->net);
    free(r->theta);
    free(r->zeros);
}

/* Counted from 1: the step that is made on this sample. */
static size_t step_of(uint64_t seed, uint32_t sample)
{
    uint32_t order[SAMPLES];
    struct fl_rng rng;
    size_t i;

    for (i = 0; i < SAMPLES; i++) {
        order[i] = (uint32_t)i;
    }
    fl_rng_key(&rng, seed, FL_RNG_BATCH, 0, 0);
    fl_rng_shuffle(&rng, order, SAMPLES);
    for (i = 0; order[i] != sample; i++) {
    }
    return i / BATCH + 1;
}

static void must_fail(struct rig *r, const char *says, const char *what)
{
    struct fl_train_result result = {0};

    ck_assert_msg(fl_trainer_run(r->trainer, &r->task, &result, &r->err) == FL_ENUMERIC,
                  "%s: no error where was expected: %s; loss %g", what, says, result.train_loss);
    ck_assert_msg(strstr(r->err.msg, says) != NULL, "%s: %s", what, r->err.msg);
    ck_assert_ptr_null(result.delta);
    ck_assert_uint_eq(result.n_sent + result.n_kept, 0);
}

static void try_one(size_t net, const struct fl_solver_ops *solver, const char *row)
{
    const struct fl_kernels *kernels = NULL;
    struct fl_train_result good = {0};
    char what[96];
    char says[64];
    struct rig r;

    if (fl_kernels_named(row, &kernels, NULL) != FL_OK) {
        return;
    }
    (void)snprintf(what, sizeof(what), "%s, network %zu, %s", solver->policy.name, net, row);
    rig_open(&r, net, solver, kernels);
    ck_assert_msg(fl_trainer_run(r.trainer, &r.task, &good, &r.err) == FL_OK, "%s: %s", what,
                  r.err.msg);
    ck_assert(good.delta != NULL && isfinite(good.train_loss));
    fl_train_result_done(&good);
    /* pFedMe refuses rates by which it is not stable. */
    if (solver->fits_training == NULL ||
        solver->fits_training(r.options, 1e30, /* momentum= */ 0, &r.err) == FL_OK)
    {
        r.task.asked.learning_rate = 1e30;
        must_fail(&r, "training diverged: the loss of step ", what);
    }
    r.task.asked.learning_rate = 1e-3;
    /* One pixel of one sample, what was collection of it before. */
    ((float *)r.data->x)[42 * SIDE * SIDE + 3 * SIDE + 4] = INFINITY;
    (void)snprintf(says, sizeof(says), "the loss of step %zu of %d is not finite",
                   step_of(r.task.asked.seed, 42), STEPS);
    must_fail(&r, says, what);
    ((float *)r.data->x)[42 * SIDE * SIDE + 3 * SIDE + 4] = NAN;
    must_fail(&r, says, what);
    rig_close(&r);
}

static int n_solvers(void)
{
    int n = 0;

    while (fl_strategy_policies(FL_COMPONENT_SOLVER)[n] != NULL) {
        n++;
    }
    return n;
}

TEST_EACH(what_is_not_finite_ends_a_task_at_the_loss_of_the_step_that_saw_it, n_solvers())
{
    /* A policy is the first member. */
    const struct fl_solver_ops *solver =
        (const void *)fl_strategy_policies(FL_COMPONENT_SOLVER)[_i];
    size_t net;
    size_t row;

    for (net = 0; net < N_NETS; net++) {
        for (row = 1; fl_kernels_names[row] != NULL; row++) { /* The first is auto. */
            try_one(net, solver, fl_kernels_names[row]);
        }
    }
}
