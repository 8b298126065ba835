#include "tests/lib/adnet.h"
#include "tests/lib/refnet_layers.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fixture.h"

static const char *const variants[] = {"variant=fo", "variant=hf"};

/* `n` steps from the start; the model, exported. */
static float *per_fedavg(struct fixture *f, struct fl_options *o, const struct fl_solver_setup *how,
                         size_t n)
{
    struct fl_solver_setup setup = *how;
    struct fl_solver *solver = NULL;
    float *model = calloc(f->count, sizeof(float));
    size_t s;

    fl_net_set(f->net, f->start);
    fl_net_seed(f->net, 0);
    setup.net = f->net;
    setup.n_steps = n;
    setup.round = 1;
    ck_assert_int_eq(fl_solver_per_fedavg.create(o, &setup, &solver, NULL), FL_OK);
    for (s = 0; s < n; s++) {
        ck_assert(isfinite(fl_solver_per_fedavg.step(solver, f->x[s], f->y[s], BATCH)));
    }
    fl_solver_per_fedavg.destroy(solver);
    fl_options_free(o);
    fl_net_get(f->net, model);
    return model;
}

/* Gradient at the network's parameters with weight decay, internal order. */
static void gradient(struct fixture *f, const struct fl_solver_setup *how, size_t batch, float *g)
{
    const float *x = fl_net_params(f->net);
    size_t i;

    (void)fl_net_gradient(f->net, f->x[batch], f->y[batch], BATCH, g);
    for (i = 0; i < f->block; i++) {
        g[i] = g[i] + (float)how->weight_decay * x[i];
    }
}

/* fo entry by entry. */
static float *by_hand(struct fixture *f, const struct fl_solver_setup *how, float alpha, size_t n)
{
    float *g = calloc(f->block, sizeof(float));
    float *v = calloc(f->block, sizeof(float));
    float *w = calloc(f->block, sizeof(float));
    float *model = calloc(f->count, sizeof(float));
    float *x = fl_net_params(f->net);
    size_t s;
    size_t i;

    fl_net_set(f->net, f->start);
    for (s = 0; s < n; s += 2) {
        gradient(f, how, s, g);
        for (i = 0; i < f->block; i++) {
            w[i] = x[i];
            x[i] = x[i] - alpha * g[i];
        }
        gradient(f, how, s + 1 < n ? s + 1 : s, g);
        for (i = 0; i < f->block; i++) {
            v[i] = (float)how->momentum * v[i] + g[i];
            x[i] = w[i] - (float)how->learning_rate * v[i];
        }
    }
    fl_net_get(f->net, model);
    free(g);
    free(v);
    free(w);
    return model;
}

TEST_EACH(two_steps_are_an_iteration_bit_for_bit, 4)
{
    static const size_t counts[] = {1, 2, 7, 24}; /* a single batch at the end is D1 and D2 */
    struct fixture f;
    size_t j;

    fixture_init(&f);
    for (j = 0; j < 4; j++) {
        float *want = by_hand(&f, &setups[_i], 0.3f, counts[j]);
        float *have = per_fedavg(&f, options_of(&fl_solver_per_fedavg.policy, "alpha=0.3", NULL),
                                 &setups[_i], counts[j]);

        ck_assert_mem_eq(have, want, f.count * sizeof(float));
        ck_assert_mem_ne(have, f.start, f.count * sizeof(float));
        free(want);
        free(have);
    }
    fixture_done(&f);
}

/* With alpha = 0 only D2 counts. */
TEST_EACH(with_alpha_zero_it_is_fedavg_bit_for_bit, 8)
{
    size_t every = _i < 4 ? 2 : 3;
    struct fl_options *o =
        options_of(&fl_solver_per_fedavg.policy, variants[_i / 4], "alpha=0", NULL);
    struct fl_options *none = options_of(&fl_solver_sgd.policy, NULL);
    struct fl_solver_setup setup = setups[_i % 4];
    struct fl_solver *sgd = NULL;
    struct fixture f;
    float *have;
    float *want;
    size_t s;

    fixture_init(&f);
    want = calloc(f.count, sizeof(float));
    have = per_fedavg(&f, o, &setup, 24);
    fl_net_set(f.net, f.start);
    setup.net = f.net;
    ck_assert_int_eq(fl_solver_sgd.create(none, &setup, &sgd, NULL), FL_OK);
    for (s = 1; s < 24; s += every) {
        (void)fl_solver_sgd.step(sgd, f.x[s], f.y[s], BATCH);
    }
    fl_solver_sgd.destroy(sgd);
    fl_net_get(f.net, want);
    ck_assert_mem_eq(have, want, f.count * sizeof(float));
    fl_options_free(none);
    free(have);
    free(want);
    fixture_done(&f);
}

/* Identities 12 and 14, wherever the round ends. */
TEST_EACH(with_a_rate_of_zero_the_model_is_constant_bit_for_bit, 8)
{
    struct fl_solver_setup how = setups[_i % 4];
    struct fixture f;
    size_t n;

    fixture_init(&f);
    how.learning_rate = 0;
    for (n = 1; n < 7; n++) {
        struct fl_options *o =
            options_of(&fl_solver_per_fedavg.policy, variants[_i / 4], "alpha=0.3", NULL);
        float *have = per_fedavg(&f, o, &how, n);

        ck_assert_mem_eq(have, f.start, f.count * sizeof(float));
        free(have);
    }
    fixture_done(&f);
}

/* F(w) = f(w - alpha grad f(w)) on one batch, at start + along * direction. */
static double after_a_step(struct fixture *f, double alpha, const float *direction, double along)
{
    float *at = calloc(f->count, sizeof(float));
    float *g = calloc(f->block, sizeof(float));
    float *x = fl_net_params(f->net);
    double loss;
    size_t i;

    for (i = 0; i < f->count; i++) {
        at[i] = (float)((double)f->start[i] + along * (double)direction[i]);
    }
    fl_net_set(f->net, at);
    (void)fl_net_gradient(f->net, f->x[0], f->y[0], BATCH, g);
    for (i = 0; i < f->block; i++) {
        x[i] = (float)((double)x[i] - alpha * (double)g[i]);
    }
    loss = fl_net_gradient(f->net, f->x[0], f->y[0], BATCH, g);
    free(at);
    free(g);
    return loss;
}

/*
 * With one batch for everything hf steps along the gradient of F: its derivative along itself
 * is its norm, which a difference quotient of F confirms. fo leaves the curvature out.
 */
TEST(hf_is_the_gradient_of_the_loss_after_a_step)
{
    static const char *const layers[] = {"dense 4"}; /* no kinks */
    struct fl_solver_setup how = {.learning_rate = 1};
    struct fl_options *o =
        options_of(&fl_solver_per_fedavg.policy, "variant=hf", "alpha=0.5", NULL);
    const double far = 0.02;
    struct fixture f;
    float *hf;
    float *fo;
    double norm = 0;
    double off = 0;
    double slope;
    size_t i;

    fixture_init_with(&f, layers, 1);
    hf = per_fedavg(&f, o, &how, 1);
    fo = per_fedavg(&f, options_of(&fl_solver_per_fedavg.policy, "alpha=0.5", NULL), &how, 1);
    for (i = 0; i < f.count; i++) {
        off += pow((double)hf[i] - (double)fo[i], 2);
        hf[i] = f.start[i] - hf[i];
        norm += (double)hf[i] * (double)hf[i];
    }
    norm = sqrt(norm);
    for (i = 0; i < f.count; i++) {
        hf[i] = (float)((double)hf[i] / norm);
    }
    slope = (after_a_step(&f, 0.5, hf, far) - after_a_step(&f, 0.5, hf, -far)) / (2 * far);
    ck_assert_double_eq_tol(slope / norm, 1, 5e-3);
    ck_assert_double_gt(sqrt(off) / norm, 0.1); /* it would be noticed */
    free(hf);
    free(fo);
    fixture_done(&f);
}

static const struct ref_net bent[] = {
    {.input = {INPUTS, 1, 1},
     .flat = true,
     .layers = {DENSE("dense 30", 30), RELU, DENSE("dense 9", 9), RELU, DENSE("dense 4", 4)}},
    {.input = {INPUTS, 1, 1},
     .flat = true,
     .layers = {DENSE("dense 20", 20), BN, RELU, DENSE("dense 9", 9), RELU, DENSE("dense 4", 4)}},
    {.input = {INPUTS, 1, 1},
     .flat = true,
     .layers = {DENSE("dense 40", 40), RELU, DROPOUT("dropout 0.5", 0.5), DENSE("dense 4", 4)}},
};

/* Gradient with weight decay at `at`, on one of the batches; along `v` the product instead. */
static double *oracle(const struct fixture *f, const struct ref_net *net, const double *at,
                      size_t batch, const double *v, double decay, struct fl_rng *rng)
{
    const struct ad_job job = {.net = net,
                               .params = at,
                               .x = f->x[batch],
                               .y = f->y[batch],
                               .batch = BATCH,
                               .rng = rng,
                               .along = v,
                               .loss = v == NULL,
                               .slope = v != NULL};
    double *g = calloc(f->count, sizeof(double));
    size_t t, i;

    (void)ad_gradient(&job, f->count, g);
    for (t = 0; t < fl_layout_tensors(fl_net_layout(f->net)); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(fl_net_layout(f->net), t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            g[i] = tensor->buffer ? 0 : g[i] + decay * (v != NULL ? v[i] : at[i]);
        }
    }
    return g;
}

/*
 * Three steps with three batches, ReLU, batch-norm and dropout as they come, against automatic
 * differentiation in double: g' and the curvature each from its own batch.
 */
TEST_EACH(hf_agrees_with_automatic_differentiation, 12)
{
    const struct ref_net *ref = &bent[_i / 4];
    const struct fl_solver_setup *how = &setups[_i % 4];
    struct fl_options *o =
        options_of(&fl_solver_per_fedavg.policy, "variant=hf", "alpha=0.3", NULL);
    const char *texts[REF_MAX_LAYERS];
    struct fl_net_spec spec = ref_spec(ref, texts);
    double *w, *inner, *g[3];
    double error = 0, size = 0, curved = 0;
    struct fl_rng rng;
    struct fixture f;
    float *have;
    size_t i;

    fixture_init_with(&f, spec.layers, spec.n_layers);
    have = per_fedavg(&f, o, how, 3);
    fl_rng_seed(&rng, 0);
    w = calloc(f.count, sizeof(double));
    inner = calloc(f.count, sizeof(double));
    for (i = 0; i < f.count; i++) {
        w[i] = (double)f.start[i];
    }
    g[0] = oracle(&f, ref, w, 0, NULL, how->weight_decay, &rng);
    for (i = 0; i < f.count; i++) {
        inner[i] = w[i] - 0.3 * g[0][i];
    }
    g[1] = oracle(&f, ref, inner, 1, NULL, how->weight_decay, &rng);
    g[2] = oracle(&f, ref, w, 2, g[1], how->weight_decay, &rng);
    for (i = 0; i < f.count; i++) {
        double step = how->learning_rate * (g[1][i] - 0.3 * g[2][i]);

        if (g[1][i] < 0 || g[1][i] > 0) { /* no buffer */
            error += pow((double)have[i] - (w[i] - step), 2);
        }
        size += step * step;
        curved += pow(how->learning_rate * 0.3 * g[2][i], 2);
    }
    /* Of a few times the rounding of the model; the curvature is far more. */
    ck_assert_double_lt(sqrt(error), 3e-5 * sqrt(size) + 1e-6);
    ck_assert_double_gt(sqrt(curved), 3e-3 * sqrt(size));
    for (i = 0; i < 3; i++) {
        free(g[i]);
    }
    free(w);
    free(inner);
    free(have);
    fixture_done(&f);
}

TEST(statistics_of_batches_stay_as_training_left_them)
{
    static const char *const layers[] = {"dense 7", "bn", "relu", "dense 4"};
    struct fl_solver_setup how = {.learning_rate = 0.1};
    const struct fl_layout *layout;
    struct fixture f;
    float *two;
    float *three;
    size_t n = 0;
    size_t t;
    size_t i;

    fixture_init_with(&f, layers, 4);
    layout = fl_net_layout(f.net);
    two = per_fedavg(&f, options_of(&fl_solver_per_fedavg.policy, NULL), &how, 2);
    three = per_fedavg(&f, options_of(&fl_solver_per_fedavg.policy, "variant=hf", NULL), &how, 3);
    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);

        for (i = tensor->offset; tensor->buffer && i < tensor->offset + tensor->count; i++) {
            n++;
            ck_assert_double_ne((double)two[i], (double)f.start[i]);
            /* The third batch is only looked at: the same two have moved them. */
            ck_assert_double_eq((double)three[i], (double)two[i]);
        }
    }
    ck_assert_uint_eq(n, 14);
    free(two);
    free(three);
    fixture_done(&f);
}

/* One step with alpha; the authors' code takes a second one with beta. */
TEST_EACH(adapting_is_a_step_with_alpha_and_then_with_beta, 4)
{
    struct fl_solver_setup how = {.learning_rate = 0.03, .adapting = true};
    struct fixture f;
    float *have;
    float *want;
    float *g;
    float *x;
    size_t s;
    size_t i;

    fixture_init(&f);
    how.weight_decay = _i % 2 == 0 ? 0 : 0.01;
    want = calloc(f.count, sizeof(float));
    g = calloc(f.block, sizeof(float));
    fl_net_set(f.net, f.start);
    x = fl_net_params(f.net);
    for (s = 0; s < 3; s++) {
        gradient(&f, &how, s, g);
        for (i = 0; i < f.block; i++) {
            x[i] = x[i] - (s == 0 ? 0.2f : 0.03f) * g[i];
        }
    }
    fl_net_get(f.net, want);
    have = per_fedavg(
        &f, options_of(&fl_solver_per_fedavg.policy, variants[_i / 2], "alpha=0.2", NULL), &how, 3);
    ck_assert_mem_eq(have, want, f.count * sizeof(float));
    free(have);
    free(want);
    free(g);
    fixture_done(&f);
}
