#include <check.h>
#include <stdlib.h>

#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fixture.h"

/* The formulas of sgd and prox written down entry by entry. */
static float *by_hand(struct fixture *f, const struct fl_solver_setup *how, float mu)
{
    float lr = (float)how->learning_rate;
    float m = (float)how->momentum;
    float wd = (float)how->weight_decay;
    float *grad = calloc(f->block, sizeof(float));
    float *v = calloc(f->block, sizeof(float));
    float *anchor = calloc(f->block, sizeof(float));
    float *model = calloc(f->count, sizeof(float));
    size_t s;
    size_t i;

    fl_net_set(f->net, f->start);
    (void)memcpy(anchor, fl_net_params(f->net), f->block * sizeof(float));
    for (s = 0; s < STEPS; s++) {
        float *x = fl_net_params(f->net);

        (void)fl_net_gradient(f->net, f->x[s], f->y[s], BATCH, grad);
        for (i = 0; i < f->block; i++) {
            float g = grad[i];

            g = g + mu * (x[i] - anchor[i]);
            g = g + wd * x[i];
            v[i] = m * v[i] + g;
            x[i] = x[i] - lr * v[i];
        }
    }
    fl_net_get(f->net, model);
    free(grad);
    free(v);
    free(anchor);
    return model;
}

TEST_EACH(sgd_is_the_formula_bit_for_bit, 4)
{
    struct fixture f;
    float *have;
    float *want;

    fixture_init(&f);
    have = run(&f, &fl_solver_sgd, NULL, NULL, &setups[_i]);
    want = by_hand(&f, &setups[_i], 0);
    ck_assert_mem_eq(have, want, f.count * sizeof(float));
    ck_assert_mem_ne(have, f.start, f.count * sizeof(float));
    free(have);
    free(want);
    fixture_done(&f);
}

TEST_EACH(prox_with_mu_zero_is_sgd_bit_for_bit, 4)
{
    struct fixture f;
    float *prox;
    float *sgd;

    fixture_init(&f);
    prox = run(&f, &fl_solver_prox, "mu=0", NULL, &setups[_i]);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &setups[_i]);
    ck_assert_mem_eq(prox, sgd, f.count * sizeof(float));
    free(prox);
    free(sgd);
    fixture_done(&f);
}

TEST_EACH(prox_is_the_formula_bit_for_bit, 4)
{
    struct fixture f;
    float *have;
    float *want;
    float *sgd;

    fixture_init(&f);
    have = run(&f, &fl_solver_prox, "mu=0.5", NULL, &setups[_i]);
    want = by_hand(&f, &setups[_i], 0.5f);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &setups[_i]);
    ck_assert_mem_eq(have, want, f.count * sizeof(float));
    ck_assert_mem_ne(have, sgd, f.count * sizeof(float));
    free(have);
    free(want);
    free(sgd);
    fixture_done(&f);
}

/* With mu * eta = 1 a step from anywhere ends at theta - eta g. */
TEST(prox_with_mu_eta_one_comes_back_every_step)
{
    struct fl_options *o = options_of(&fl_solver_prox.policy, "mu=8", NULL);
    struct fl_solver_setup how = {.learning_rate = 0.125, .n_steps = 1, .round = 1};
    struct fl_solver *solver = NULL;
    struct fixture f;
    float *model;
    float *grad;
    float *pull;
    size_t i;

    fixture_init(&f);
    model = calloc(f.count, sizeof(float));
    pull = calloc(f.count, sizeof(float));
    grad = calloc(f.block, sizeof(float));
    how.net = f.net;
    ck_assert_int_eq(fl_solver_prox.create(o, &how, &solver, NULL), FL_OK);
    for (i = 0; i < f.count; i++) {
        model[i] = f.start[i] + (float)(i % 3); /* wander off */
    }
    fl_net_set(f.net, model);
    (void)fl_net_gradient(f.net, f.x[0], f.y[0], BATCH, grad);
    fl_net_export(f.net, pull, grad);
    (void)fl_solver_prox.step(solver, f.x[0], f.y[0], BATCH);
    fl_net_get(f.net, model);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)model[i], (double)f.start[i] - 0.125 * (double)pull[i],
                                1e-5);
    }
    fl_solver_prox.destroy(solver);
    free(model);
    free(grad);
    free(pull);
    fl_options_free(o);
    fixture_done(&f);
}

/* FedMCSA as released: the anchor is where x is, so that mu does nothing. */
TEST_EACH(a_moving_anchor_makes_mu_irrelevant_bit_for_bit, 4)
{
    struct fl_solver_setup how = setups[_i];
    struct fixture f;
    float *other;
    float *moving;
    float *sgd;
    size_t i;

    fixture_init(&f);
    other = calloc(f.count, sizeof(float));
    for (i = 0; i < f.count; i++) {
        other[i] = f.start[i] + 1;
    }
    how.anchor = other;
    moving = run(&f, &fl_solver_prox, "mu=0.5", "anchor=moving", &how);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &how);
    ck_assert_mem_eq(moving, sgd, f.count * sizeof(float));
    free(other);
    free(moving);
    free(sgd);
    fixture_done(&f);
}

/* docs/algorithms.md#personalized-models-by-component. */
TEST_EACH(without_lambda_and_decay_fixed_and_moving_anchors_agree_bit_for_bit, 2)
{
    struct fl_solver_setup how = {.learning_rate = 0.1, .momentum = _i * 0.9};
    struct fixture f;
    float *fixed;
    float *moving;

    fixture_init(&f);
    fixed = run(&f, &fl_solver_prox, "mu=0", "anchor=fixed", &how);
    moving = run(&f, &fl_solver_prox, "mu=5", "anchor=moving", &how);
    ck_assert_mem_eq(fixed, moving, f.count * sizeof(float));
    free(fixed);
    free(moving);
    fixture_done(&f);
}

/* A client that trains on from its own model is pulled to the one it received. */
TEST(a_fixed_anchor_is_the_one_given)
{
    struct fl_solver_setup how = {.learning_rate = 0.125, .n_steps = 1, .round = 1};
    struct fl_options *o = options_of(&fl_solver_prox.policy, "mu=8", NULL);
    struct fl_solver *solver = NULL;
    struct fixture f;
    float *anchor;
    float *model;
    float *grad;
    float *pull;
    size_t i;

    fixture_init(&f);
    anchor = calloc(f.count, sizeof(float));
    model = calloc(f.count, sizeof(float));
    pull = calloc(f.count, sizeof(float));
    grad = calloc(f.block, sizeof(float));
    for (i = 0; i < f.count; i++) {
        anchor[i] = f.start[i] + (float)(i % 5);
    }
    (void)fl_net_gradient(f.net, f.x[0], f.y[0], BATCH, grad);
    fl_net_export(f.net, pull, grad);
    how.net = f.net;
    how.anchor = anchor;
    ck_assert_int_eq(fl_solver_prox.create(o, &how, &solver, NULL), FL_OK);
    (void)fl_solver_prox.step(solver, f.x[0], f.y[0], BATCH);
    fl_net_get(f.net, model);
    for (i = 0; i < f.count; i++) { /* mu * eta = 1: at the anchor, but for the gradient */
        ck_assert_double_eq_tol((double)model[i], (double)anchor[i] - 0.125 * (double)pull[i],
                                1e-5);
    }
    fl_solver_prox.destroy(solver);
    free(anchor);
    free(model);
    free(grad);
    free(pull);
    fl_options_free(o);
    fixture_done(&f);
}

/* Identity 14. */
TEST_EACH(a_rate_of_zero_leaves_the_model_bit_for_bit, 4)
{
    struct fl_solver_setup how = setups[_i];
    struct fixture f;
    float *sgd;
    float *prox;

    how.learning_rate = 0;
    fixture_init(&f);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &how);
    prox = run(&f, &fl_solver_prox, "mu=1", NULL, &how);
    ck_assert_mem_eq(sgd, f.start, f.count * sizeof(float));
    ck_assert_mem_eq(prox, f.start, f.count * sizeof(float));
    free(sgd);
    free(prox);
    fixture_done(&f);
}

TEST(the_velocity_is_new_each_round)
{
    struct fixture f;
    float *first;
    float *second;

    fixture_init(&f);
    first = run(&f, &fl_solver_sgd, NULL, NULL, &setups[1]);
    second = run(&f, &fl_solver_sgd, NULL, NULL, &setups[1]);
    ck_assert_mem_eq(first, second, f.count * sizeof(float));
    free(first);
    free(second);
    fixture_done(&f);
}

TEST(names_are_counted)
{
    static const char *const two[] = {"a", "b", NULL};

    ck_assert_uint_eq(fl_solver_names(NULL), 0);
    ck_assert_uint_eq(fl_solver_names(two), 2);
    ck_assert_uint_eq(fl_solver_names(two + 2), 0);
    fl_solver_sgd.destroy(NULL);
    fl_solver_prox.destroy(NULL);
}
