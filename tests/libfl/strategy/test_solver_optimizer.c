/* The solver "optimizer" against the formulas of PyTorch's optimizers in double, entry by entry. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fixture.h"

struct formula {
    const char *option1, *option2; /* of the solver */
    enum { PLAIN, NESTEROV, ADAM, ADAMW } rule;
    double clip;
    double (*share)(size_t s); /* of the learning rate; NULL: all of it */
};

static double half_cosine(size_t s)
{
    return 0.5 * (1.0 + cos(acos(-1.0) * (double)s / STEPS));
}

static double falling(size_t s)
{
    return 1.0 - (double)s / STEPS;
}

static double in_steps(size_t s)
{
    return s < 100 ? 1.0 : 0.1;
}

static double rising(size_t s)
{
    return s < 10 ? (double)(s + 1) / 10.0 : 1.0;
}

static const struct formula formulas[] = {
    {"rule=nesterov", NULL, NESTEROV, 0, NULL},
    {"rule=adam", NULL, ADAM, 0, NULL},
    {"rule=adamw", NULL, ADAMW, 0, NULL},
    {"rule=sgd", "clip=0.1", PLAIN, 0.1, NULL},
    {"rule=adamw", "clip=0.2", ADAMW, 0.2, NULL},
    {"rule=nesterov", "clip=1000", NESTEROV, 1000, NULL},
    {"rule=sgd", "schedule=cosine", PLAIN, 0, half_cosine},
    {"rule=adam", "schedule=linear", ADAM, 0, falling},
    {"rule=sgd", "schedule=step", PLAIN, 0, in_steps},
    {"rule=sgd", "warmup=10", PLAIN, 0, rising},
};

/* Number i of one step. */
static void formula_step(const struct formula *formula, const struct fl_solver_setup *how,
                         double rate, double g, double t, double *x, double *m, double *v)
{
    double wd = how->weight_decay;

    if (formula->rule == ADAMW) {
        *x -= rate * wd * *x;
    } else {
        g += wd * *x;
    }
    if (formula->rule == ADAM || formula->rule == ADAMW) {
        *m = 0.9 * *m + 0.1 * g;
        *v = 0.999 * *v + 0.001 * g * g;
        *x -= rate * (*m / (1.0 - pow(0.9, t))) / (sqrt(*v / (1.0 - pow(0.999, t))) + 1e-8);
        return;
    }
    *v = how->momentum * *v + g;
    *x -= rate * (formula->rule == NESTEROV ? g + how->momentum * *v : *v);
}

/* The model after STEPS steps, of gradients that the network computes at the model in single. */
static double *by_formula(struct fixture *f, const struct formula *formula,
                          const struct fl_solver_setup *how)
{
    float *grad = calloc(f->block, sizeof(float));
    float *exported = calloc(f->count, sizeof(float));
    double *x = calloc(3 * f->count, sizeof(double));
    double *m = x + f->count;
    double *v = m + f->count;
    size_t s, i;

    ck_assert(grad != NULL && exported != NULL && x != NULL);
    for (i = 0; i < f->count; i++) {
        x[i] = (double)f->start[i];
    }
    for (s = 0; s < STEPS; s++) {
        double rate = how->learning_rate * (formula->share != NULL ? formula->share(s) : 1.0);
        double norm = 0.0;
        double factor;

        for (i = 0; i < f->count; i++) {
            exported[i] = (float)x[i];
        }
        fl_net_set(f->net, exported);
        (void)fl_net_gradient(f->net, f->x[s], f->y[s], BATCH, grad);
        fl_net_export(f->net, exported, grad);
        for (i = 0; i < f->count; i++) {
            norm += (double)exported[i] * (double)exported[i];
        }
        factor = formula->clip > 0 && sqrt(norm) > formula->clip ? formula->clip / sqrt(norm) : 1.0;
        for (i = 0; i < f->count; i++) {
            formula_step(formula, how, rate, (double)exported[i] * factor, (double)(s + 1), &x[i],
                         &m[i], &v[i]);
        }
    }
    free(grad);
    free(exported);
    return x;
}

TEST_EACH(an_optimizer_is_its_formula, 4 * ARRAY_LEN(formulas))
{
    const struct formula *formula = &formulas[(size_t)_i / 4];
    struct fl_solver_setup how = setups[_i % 4];
    struct fixture f;
    double *want;
    float *have;
    size_t i;

    how.learning_rate *= formula->rule == ADAM || formula->rule == ADAMW ? 0.05 : 0.5;
    fixture_init(&f);
    have = run(&f, &fl_solver_optimizer, formula->option1, formula->option2, &how);
    want = by_formula(&f, formula, &how);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)have[i], want[i], 2e-4);
    }
    ck_assert_mem_ne(have, f.start, f.count * sizeof(float));
    free(have);
    free(want);
    fixture_done(&f);
}

TEST_EACH(rule_sgd_with_nothing_else_is_sgd_bit_for_bit, 4)
{
    struct fixture f;
    float *have;
    float *want;

    fixture_init(&f);
    have = run(&f, &fl_solver_optimizer, "rule=sgd", NULL, &setups[_i]);
    want = run(&f, &fl_solver_sgd, NULL, NULL, &setups[_i]);
    ck_assert_mem_eq(have, want, f.count * sizeof(float));
    free(have);
    free(want);
    fixture_done(&f);
}

/* Running statistics have no gradient: clipping, which passes whole blocks, must not decay them. */
TEST(clipping_leaves_buffers_to_the_batch)
{
    static const char *const layers[] = {"dense 8", "bn", "relu", "dense 4"};
    const struct fl_solver_setup how = {.learning_rate = 0.01, .weight_decay = 0.1};
    const struct fl_tensor *mean, *var;
    struct fixture f;
    float *clipped, *plain;
    size_t i;

    fixture_init_with(&f, layers, ARRAY_LEN(layers));
    mean = fl_layout_find(fl_net_layout(f.net), "bn1.running_mean");
    var = fl_layout_find(fl_net_layout(f.net), "bn1.running_var");
    clipped = run(&f, &fl_solver_optimizer, "rule=sgd", "clip=1e6", &how);
    plain = run(&f, &fl_solver_optimizer, "rule=sgd", NULL, &how);
    for (i = 0; i < 8; i++) {
        ck_assert(clipped[mean->offset + i] == plain[mean->offset + i]);
        ck_assert(clipped[var->offset + i] == plain[var->offset + i]);
    }
    ck_assert_mem_eq(clipped, plain, f.count * sizeof(float));
    free(clipped);
    free(plain);
    fixture_done(&f);
}

/* The first step of plain gradient descent shows the gradient of the loss. */
static float *first_gradient(struct fixture *f, const char *option1, const char *option2)
{
    struct fl_options *o =
        options_of(&fl_solver_optimizer.policy, "rule=sgd", option1, option2, NULL);
    const struct fl_solver_setup how = {
        .net = f->net, .learning_rate = 1.0, .n_steps = 1, .round = 1};
    struct fl_solver *solver = NULL;
    struct fl_err err = {0};
    float *moved = calloc(f->count, sizeof(float));
    size_t i;

    ck_assert_ptr_nonnull(moved);
    fl_net_set(f->net, f->start);
    ck_assert_msg(fl_solver_optimizer.create(o, &how, &solver, &err) == FL_OK, "%s", err.msg);
    (void)fl_solver_optimizer.step(solver, f->x[0], f->y[0], BATCH);
    fl_solver_optimizer.destroy(solver);
    fl_options_free(o);
    fl_net_get(f->net, moved);
    for (i = 0; i < f->count; i++) {
        moved[i] = f->start[i] - moved[i];
    }
    return moved;
}

/* Losses of single samples with one label each, weighted by hand. */
static void assert_mixture(struct fixture *f, const float *have, double smoothing,
                           const double *weight)
{
    float *grad = calloc(f->block, sizeof(float));
    float *exported = calloc(f->count, sizeof(float));
    double *want = calloc(f->count, sizeof(double));
    double sum = 0.0;
    size_t b, i;
    int32_t c;

    ck_assert(grad != NULL && exported != NULL && want != NULL);
    fl_net_set(f->net, f->start);
    for (b = 0; b < BATCH; b++) {
        sum += weight[f->y[0][b]];
    }
    for (b = 0; b < BATCH; b++) {
        for (c = 0; c < CLASSES; c++) {
            double share = smoothing / CLASSES + (f->y[0][b] == c ? 1.0 - smoothing : 0.0);

            (void)fl_net_gradient(f->net, f->x[0] + b * INPUTS, &c, 1, grad);
            fl_net_export(f->net, exported, grad);
            for (i = 0; i < f->count; i++) {
                want[i] += share * weight[c] / sum * (double)exported[i];
            }
        }
    }
    for (i = 0; i < f->count; i++) {
        ck_assert_double_eq_tol((double)have[i], want[i], 1e-5);
    }
    free(grad);
    free(exported);
    free(want);
}

TEST(label_smoothing_mixes_the_losses_of_all_classes)
{
    static const double even[CLASSES] = {1, 1, 1, 1};
    struct fixture f;
    float *have;

    fixture_init(&f);
    have = first_gradient(&f, "label_smoothing=0.3", NULL);
    assert_mixture(&f, have, 0.3, even);
    free(have);
    fixture_done(&f);
}

TEST(class_weights_weigh_the_mean_of_the_losses)
{
    static const double weight[CLASSES] = {1, 2, 0.5, 3};
    struct fixture f;
    float *have;

    fixture_init(&f);
    have = first_gradient(&f, "class_weights=1,2,0.5,3", NULL);
    assert_mixture(&f, have, 0, weight);
    free(have);
    have = first_gradient(&f, "class_weights=1,2,0.5,3", "label_smoothing=0.2");
    assert_mixture(&f, have, 0.2, weight);
    free(have);
    fixture_done(&f);
}

TEST(class_weights_that_do_not_fit_are_refused)
{
    struct fl_options *few = options_of(&fl_solver_optimizer.policy, "class_weights=1,2", NULL);
    struct fl_options *odd = options_of(&fl_solver_optimizer.policy, "class_weights=1,x", NULL);
    struct fl_solver_setup how = {.learning_rate = 1.0, .n_steps = 1, .round = 1};
    struct fl_solver *solver = NULL;
    struct fl_err err = {0};
    struct fixture f;

    fixture_init(&f);
    how.net = f.net;
    ck_assert_int_eq(fl_solver_optimizer.create(few, &how, &solver, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "2 entries, expected one for each of the model's 4"));
    ck_assert_ptr_null(solver);
    ck_assert_int_eq(fl_solver_optimizer.policy.check(few, &err), FL_OK);
    ck_assert_int_eq(fl_solver_optimizer.policy.check(odd, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "entry 2 is 'x', expected a number from 0 to 1e6"));
    fl_options_free(few);
    fl_options_free(odd);
    fixture_done(&f);
}
