#include "libfl/strategy/strategy.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fixture.h"

/* What a run leaves: where theta ended, the upload, the personal model. Exported. */
struct result {
    float *theta, *upload, *personal;
};

static void result_done(struct result *r)
{
    free(r->theta);
    free(r->upload);
    free(r->personal);
}

static struct fl_solver *created(struct fixture *f, struct fl_options *o,
                                 const struct fl_solver_setup *how)
{
    struct fl_solver_setup setup = *how;
    struct fl_solver *solver = NULL;
    struct fl_err err = {0};

    fl_net_set(f->net, f->start);
    setup.net = f->net;
    setup.n_steps = STEPS;
    setup.round = 1;
    ck_assert_int_eq(fl_solver_pfedme.policy.check(o, &err), FL_OK);
    ck_assert_msg(fl_solver_pfedme.create(o, &setup, &solver, &err) == FL_OK, "%s", err.msg);
    return solver;
}

static struct result pfedme(struct fixture *f, struct fl_options *o,
                            const struct fl_solver_setup *how)
{
    struct fl_solver *solver = created(f, o, how);
    struct result r = {calloc(f->count, sizeof(float)), calloc(f->count, sizeof(float)),
                       calloc(f->count, sizeof(float))};
    size_t s;

    for (s = 0; s < STEPS; s++) {
        ck_assert(isfinite(fl_solver_pfedme.step(solver, f->x[s], f->y[s], BATCH)));
    }
    fl_net_get(f->net, r.theta);
    ck_assert_int_eq(fl_solver_pfedme.finish(solver, NULL, NULL, NULL), FL_OK);
    fl_net_get(f->net, r.upload);
    fl_solver_pfedme.personal(solver);
    fl_net_get(f->net, r.personal);
    fl_solver_pfedme.destroy(solver);
    fl_options_free(o);
    return r;
}

/* pFedMe entry by entry. */
static struct result by_hand(struct fixture *f, const struct fl_solver_setup *how, size_t inner,
                             float rate, float lambda)
{
    struct result r = {calloc(f->count, sizeof(float)), calloc(f->count, sizeof(float)), NULL};
    float pull = (float)(how->learning_rate * (double)lambda);
    float *grad = calloc(f->block, sizeof(float));
    float *w = calloc(f->block, sizeof(float));
    float *x = fl_net_params(f->net);
    size_t s;
    size_t k;
    size_t i;

    fl_net_set(f->net, f->start);
    (void)memcpy(w, x, f->block * sizeof(float));
    for (s = 0; s < STEPS; s++) {
        for (k = 0; k < inner; k++) {
            (void)fl_net_gradient(f->net, f->x[s], f->y[s], BATCH, grad);
            for (i = 0; i < f->block; i++) {
                float g = grad[i] + lambda * (x[i] - w[i]);

                g = g + (float)how->weight_decay * x[i];
                x[i] = x[i] - rate * g;
            }
        }
        for (i = 0; i < f->block; i++) {
            w[i] = w[i] - pull * (w[i] - x[i]);
        }
    }
    fl_net_get(f->net, r.theta);
    fl_net_export(f->net, r.upload, w);
    free(grad);
    free(w);
    return r;
}

TEST_EACH(a_round_is_the_formula, 2)
{
    struct fl_solver_setup how = {.learning_rate = 0.02, .weight_decay = _i == 0 ? 0 : 0.01};
    struct fl_options *o = options_of(&fl_solver_pfedme.policy, "inner_steps=3",
                                      "inner_learning_rate=0.05", "lambda=7", NULL);
    struct fixture f;
    struct result want;
    struct result have;

    fixture_init(&f);
    want = by_hand(&f, &how, 3, 0.05f, 7);
    have = pfedme(&f, o, &how);
    ck_assert_mem_eq(have.theta, want.theta, f.count * sizeof(float));
    ck_assert_mem_eq(have.upload, want.upload, f.count * sizeof(float));
    ck_assert_mem_eq(have.personal, want.theta, f.count * sizeof(float));
    ck_assert_mem_ne(have.upload, have.personal, f.count * sizeof(float));
    result_done(&want);
    result_done(&have);
    fixture_done(&f);
}

TEST(the_personal_model_is_theta_or_w)
{
    struct fl_solver_setup how = {.learning_rate = 0.02};
    struct fixture f;
    struct result theta;
    struct result w;

    fixture_init(&f);
    theta = pfedme(&f, options_of(&fl_solver_pfedme.policy, NULL), &how);
    w = pfedme(&f, options_of(&fl_solver_pfedme.policy, "personal=w_local", NULL), &how);
    ck_assert_mem_eq(theta.upload, w.upload, f.count * sizeof(float));
    ck_assert_mem_eq(theta.personal, theta.theta, f.count * sizeof(float));
    ck_assert_mem_eq(w.personal, w.upload, f.count * sizeof(float));
    ck_assert_mem_ne(w.personal, theta.personal, f.count * sizeof(float));
    result_done(&theta);
    result_done(&w);
    fixture_done(&f);
}

TEST(with_eta_lambda_one_and_one_inner_step_it_is_fedavg)
{
    struct fl_solver_setup how = {.learning_rate = 0.05};
    struct fl_solver_setup inner = {.learning_rate = 0.03};
    struct fl_options *o = options_of(&fl_solver_pfedme.policy, "inner_steps=1",
                                      "inner_learning_rate=0.03", "lambda=20", NULL);
    struct fixture f;
    struct result have;
    float *sgd;
    size_t i;

    fixture_init(&f);
    have = pfedme(&f, o, &how);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &inner);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)have.upload[i], (double)sgd[i], 1e-6);
    }
    ck_assert_mem_ne(sgd, f.start, f.count * sizeof(float));
    free(sgd);
    result_done(&have);
    fixture_done(&f);
}

/* Identities 11 and 14: lambda = 0 or a rate of 0, the uploaded model does not move. */
TEST_EACH(without_a_pull_the_uploaded_model_is_constant_bit_for_bit, 2)
{
    struct fl_solver_setup how = {.learning_rate = _i == 0 ? 0.05 : 0};
    struct fixture f;
    struct result have;

    fixture_init(&f);
    have = pfedme(&f, options_of(&fl_solver_pfedme.policy, _i == 0 ? "lambda=0" : "lambda=5", NULL),
                  &how);
    ck_assert_mem_eq(have.upload, f.start, f.count * sizeof(float));
    ck_assert_mem_ne(have.theta, f.start, f.count * sizeof(float));
    result_done(&have);
    fixture_done(&f);
}

/* Running statistics belong to the network whichever model is in it. */
TEST(statistics_of_batches_are_uploaded_as_training_left_them)
{
    static const char *const layers[] = {"dense 7", "bn", "relu", "dense 4"};
    struct fl_solver_setup how = {.learning_rate = 0.02};
    const struct fl_layout *layout;
    struct fixture f;
    struct result have;
    size_t n = 0;
    size_t t;

    fixture_init_with(&f, layers, 4);
    layout = fl_net_layout(f.net);
    have = pfedme(&f, options_of(&fl_solver_pfedme.policy, NULL), &how);
    for (t = 0; t < fl_layout_tensors(layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(layout, t);
        size_t bytes = tensor->count * sizeof(float);

        /* A bias below batch-norm has no gradient; rounding may move it or not. */
        if (strcmp(tensor->name, "fc1.bias") == 0) {
            continue;
        }
        ck_assert_mem_ne(have.upload + tensor->offset, f.start + tensor->offset, bytes);
        if (tensor->buffer) {
            ck_assert_mem_eq(have.upload + tensor->offset, have.theta + tensor->offset, bytes);
            ck_assert_mem_eq(have.personal + tensor->offset, have.theta + tensor->offset, bytes);
            n++;
        } else {
            ck_assert_mem_ne(have.upload + tensor->offset, have.theta + tensor->offset, bytes);
        }
    }
    ck_assert_uint_eq(n, 2);
    result_done(&have);
    fixture_done(&f);
}

/* finish() and personal() are not called then. */
TEST_EACH(adapting_leaves_the_personal_model_in_the_network, 2)
{
    static const char *const which[] = {"personal=theta", "personal=w_local"};
    struct fl_solver_setup how = {.learning_rate = 0.02};
    struct fl_options *o = options_of(&fl_solver_pfedme.policy, which[_i], NULL);
    struct fixture f;
    struct result want;
    struct fl_solver *solver;
    float *have;
    size_t s;

    fixture_init(&f);
    have = calloc(f.count, sizeof(float));
    want = pfedme(&f, options_of(&fl_solver_pfedme.policy, which[_i], NULL), &how);
    how.adapting = true;
    solver = created(&f, o, &how);
    for (s = 0; s < STEPS; s++) {
        (void)fl_solver_pfedme.step(solver, f.x[s], f.y[s], BATCH);
    }
    fl_solver_pfedme.destroy(solver);
    fl_net_get(f.net, have);
    ck_assert_mem_eq(have, want.personal, f.count * sizeof(float));
    free(have);
    result_done(&want);
    fl_options_free(o);
    fixture_done(&f);
}

TEST(a_pull_that_overshoots_is_refused)
{
    struct fl_options *o = options_of(&fl_solver_pfedme.policy, "lambda=20", NULL);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_solver_pfedme.policy.check(o, &err), FL_ECONF); /* 0.1 * 20 */
    ck_assert_ptr_nonnull(strstr(err.msg, "0.1 * 20 = 2"));
    ck_assert_int_eq(fl_options_set(o, "lambda", "19.9", NULL), FL_OK);
    ck_assert_int_eq(fl_solver_pfedme.policy.check(o, &err), FL_OK);
    fl_options_free(o);
}

TEST_EACH(training_options_that_it_cannot_have_are_refused, 3)
{
    static const struct {
        struct fl_solver_setup setup;
        int code;
        const char *says;
    } rows[] = {
        {{.learning_rate = 0.05, .momentum = 0.9}, FL_ECONF, "does not support momentum"},
        {{.learning_rate = 0.07}, FL_ECONF, "0.07 * 15 = 1.05"},
        {{.learning_rate = 0.0666666666666667}, FL_OK, ""},
    };
    struct fl_options *o = options_of(&fl_solver_pfedme.policy, NULL);
    struct fl_solver_setup setup = rows[_i].setup;
    struct fl_solver *solver = NULL;
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};
    struct fixture f;

    fixture_init(&f);
    setup.net = f.net;
    ck_assert_int_eq(fl_solver_pfedme.create(o, &setup, &solver, &err), rows[_i].code);
    ck_assert_ptr_nonnull(strstr(err.msg, rows[_i].says));
    fl_solver_pfedme.destroy(solver);
    /* The server can know before any client does. */
    err.msg[0] = '\0';
    ck_assert_int_eq(fl_strategy_create("fedavg", &s, NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_check_training(s, setup.learning_rate, setup.momentum, &err),
                     FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_SOLVER, "pfedme", NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_check_training(s, setup.learning_rate, setup.momentum, &err),
                     rows[_i].code);
    ck_assert_ptr_nonnull(strstr(err.msg, rows[_i].says));
    fl_strategy_free(s);
    fl_options_free(o);
    fixture_done(&f);
}

/* Divergence inside a step must not pass for a finite loss. */
TEST(a_loss_that_is_not_finite_shows)
{
    struct fl_options *o = options_of(&fl_solver_pfedme.policy, "inner_learning_rate=1000",
                                      "lambda=0", "inner_steps=40", NULL);
    struct fl_solver_setup how = {.learning_rate = 0.05, .weight_decay = 10};
    struct fl_solver *solver;
    struct fixture f;

    fixture_init(&f);
    solver = created(&f, o, &how);
    ck_assert(!isfinite(fl_solver_pfedme.step(solver, f.x[0], f.y[0], BATCH)));
    fl_solver_pfedme.destroy(solver);
    fl_options_free(o);
    fixture_done(&f);
}
