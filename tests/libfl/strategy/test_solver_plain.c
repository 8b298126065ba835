/*
 * Solvers update block by block, inside the backward pass. Here each makes its steps a second time
 * with the whole gradient first and one update behind it: the same model, bit for bit, on each row
 * of kernels. The linker puts __wrap_… below into every solver.
 */
#include "libfl/num/kernels_impl.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fixture.h"

#define N_ROWS  4
#define ROUND   6 /* steps: two iterations of three, or three of two */
#define SAMPLES 5
#define WIDE    (16 * 8 * 8)

/* --- a pass that only remembers, and the update behind it --- */

static struct {
    bool on;
    float *grad;         /* internal order */
    unsigned char *seen; /* entries that the pass visited */
    size_t block, updates;
} plain;

static void keep(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    (void)ctx;
    (void)params;
    (void)memcpy(plain.grad + offset, grad, n * sizeof(*grad));
    (void)memset(plain.seen + offset, 1, n);
}

static void update_all(struct fl_net *net, fl_net_update_cb update, void *ctx)
{
    size_t from, to;

    for (from = 0; from < plain.block; from = to + 1) {
        for (to = from; to < plain.block && plain.seen[to] != 0; to++) {
        }
        if (to > from) {
            update(ctx, from, to - from, fl_net_params(net) + from, plain.grad + from);
            plain.updates++;
        }
    }
    (void)memset(plain.seen, 0, plain.block);
}

double __real_fl_net_step(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                          fl_net_update_cb update, void *ctx);
double __wrap_fl_net_step(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                          fl_net_update_cb update, void *ctx);
double __real_fl_net_pass_jvp(struct fl_net *net, const struct fl_net_pass *how,
                              const struct fl_net_direction *direction, fl_net_update_cb update,
                              void *ctx, double *ret_slope);
double __wrap_fl_net_pass_jvp(struct fl_net *net, const struct fl_net_pass *how,
                              const struct fl_net_direction *direction, fl_net_update_cb update,
                              void *ctx, double *ret_slope);

double __wrap_fl_net_step(struct fl_net *net, const float *x, const int32_t *y, size_t batch,
                          fl_net_update_cb update, void *ctx)
{
    double loss = __real_fl_net_step(net, x, y, batch, plain.on ? keep : update, ctx);

    if (plain.on) {
        update_all(net, update, ctx);
    }
    return loss;
}

double __wrap_fl_net_pass_jvp(struct fl_net *net, const struct fl_net_pass *how,
                              const struct fl_net_direction *direction, fl_net_update_cb update,
                              void *ctx, double *ret_slope)
{
    double loss =
        __real_fl_net_pass_jvp(net, how, direction, plain.on ? keep : update, ctx, ret_slope);

    if (plain.on) {
        update_all(net, update, ctx);
    }
    return loss;
}

/* --- solvers, networks, rows --- */

static const struct {
    const struct fl_solver_ops *ops;
    const char *option1, *option2;
    struct fl_solver_setup how;
} cases[] = {
    {&fl_solver_sgd, NULL, NULL, {.learning_rate = 0.05}},
    {&fl_solver_sgd, NULL, NULL, {.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.01}},
    {&fl_solver_prox, "mu=0.5", NULL, {.learning_rate = 0.05, .momentum = 0.9}},
    {&fl_solver_prox, "mu=0.5", "anchor=moving", {.learning_rate = 0.05, .weight_decay = 0.01}},
    {&fl_solver_scaffold, "mu=0.5", NULL, {.learning_rate = 0.05, .weight_decay = 0.01}},
    {&fl_solver_feddyn, "alpha=0.5", NULL, {.learning_rate = 0.05, .momentum = 0.5}},
    {&fl_solver_igfl_c, "mu=0.5", NULL, {.learning_rate = 0.05, .momentum = 0.5}},
    {&fl_solver_pfedme, "inner_steps=3", "lambda=7", {.learning_rate = 0.02}},
    {&fl_solver_per_fedavg, "variant=fo", "alpha=0.1", {.learning_rate = 0.05, .momentum = 0.9}},
    {&fl_solver_per_fedavg, "variant=hf", "alpha=0.1", {.learning_rate = 0.05, .momentum = 0.9}},
};

static const struct {
    const char *layers[10];
    size_t n_layers;
    size_t input[3];
} networks[] = {
    /* First layer, Winograd 3x3 and 2x2. */
    {{"conv 16 5x5 pad 2", "relu", "conv 48 3x3 pad 1", "bn", "relu", "maxpool 4",
      "conv 32 3x3 pad 1", "relu", "flatten", "dense 4"},
     10,
     {3, 8, 8}},
    /* Winograd 5x5 as the lowest one, patches, and a dense layer of several blocks. */
    {{"conv 32 5x5 pad 2", "relu", "conv 7 3x3 stride 2", "bn", "relu", "dropout 0.2", "flatten",
      "dense 301", "relu", "dense 4"},
     10,
     {16, 8, 8}},
};

/* The model, exported, that the steps end with. */
static float *made_by(struct fl_net *net, const float *start, const float *moved, size_t i)
{
    const struct fl_solver_ops *ops = cases[i].ops;
    struct fl_options *o = options_of(&ops->policy, cases[i].option1,
                                      cases[i].option1 ? cases[i].option2 : NULL, NULL);
    size_t count = fl_layout_count(fl_net_layout(net));
    /* What clients and server keep: controls, displacements. */
    const struct fl_solver_bytes state = {moved, count * sizeof(float)};
    struct fl_solver_setup how = cases[i].how;
    struct fl_solver *solver = NULL;
    float *model = calloc(count, sizeof(float));
    struct fl_err err = {0};
    struct fl_rng rng;
    static float x[SAMPLES * WIDE];
    int32_t y[SAMPLES];
    size_t s, j;

    how.net = net;
    how.n_steps = ROUND;
    how.round = 1;
    how.n_selected = 4;
    how.population = 10;
    how.inputs = fl_solver_names(ops->inputs) > 0 ? &state : NULL;
    how.kept = NULL;
    fl_rng_seed(&rng, 3);
    fl_net_set(net, start);
    fl_net_seed(net, 9);
    ck_assert_msg(ops->create(o, &how, &solver, &err) == FL_OK, "%s", err.msg);
    for (s = 0; s < ROUND; s++) {
        for (j = 0; j < SAMPLES * fl_net_inputs(net); j++) {
            x[j] = (float)fl_rng_normal(&rng);
        }
        for (j = 0; j < SAMPLES; j++) {
            y[j] = (int32_t)fl_rng_below(&rng, 4);
        }
        ck_assert(isfinite(ops->step(solver, x, y, SAMPLES)));
    }
    ops->destroy(solver);
    fl_options_free(o);
    fl_net_get(net, model);
    return model;
}

static void check_network(const struct fl_kernels *row, size_t which)
{
    struct fl_net_spec spec = {
        .n_input = 3, .layers = networks[which].layers, .n_layers = networks[which].n_layers};
    struct fl_net *net = NULL;
    struct fl_err err = {0};
    struct fl_rng rng;
    float *start, *moved;
    size_t count, i;

    (void)memcpy(spec.input, networks[which].input, sizeof(spec.input));
    spec.kernels = row;
    ck_assert_msg(fl_net_create(&spec, SAMPLES, &net, &err) == FL_OK, "%s", err.msg);
    count = fl_layout_count(fl_net_layout(net));
    plain.block = fl_net_block(net);
    plain.grad = calloc(plain.block, sizeof(float));
    plain.seen = calloc(plain.block, 1);
    start = calloc(count, sizeof(float));
    moved = calloc(count, sizeof(float));
    fl_rng_seed(&rng, 5);
    fl_net_init(net, &rng);
    fl_net_get(net, start);
    for (i = 0; i < count; i++) {
        moved[i] = 0.001f * (float)(i % 7);
    }
    for (i = 0; i < ARRAY_LEN(cases); i++) {
        float *have, *want;

        plain.on = false;
        have = made_by(net, start, moved, i);
        plain.on = true;
        plain.updates = 0;
        want = made_by(net, start, moved, i);
        ck_assert_uint_ge(plain.updates, ROUND);
        ck_assert_mem_ne(have, start, count * sizeof(float));
        ck_assert_msg(memcmp(have, want, count * sizeof(float)) == 0,
                      "%s: case %zu (%s) differs from its plain update", fl_kernels_name(row), i,
                      cases[i].ops->policy.name);
        free(have);
        free(want);
    }
    free(plain.grad);
    free(plain.seen);
    free(start);
    free(moved);
    fl_net_free(net);
}

TEST_EACH(a_round_by_blocks_is_the_round_by_whole_gradients_bit_for_bit,
          ARRAY_LEN(networks) * N_ROWS)
{
    const struct fl_kernels *row = fl__kernels_row((size_t)_i % N_ROWS);

    ck_assert_ptr_nonnull(row);
    if (row->supported()) {
        check_network(row, (size_t)_i / N_ROWS);
    }
}
