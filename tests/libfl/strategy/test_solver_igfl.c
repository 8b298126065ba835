#include "libfl/strategy/strategy.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fed.h"
#include "tests/libfl/strategy/solver_fixture.h"

#define ROUNDS 5

/* Nothing is known yet, h = 0. */
TEST_EACH(the_first_round_is_fedavg_with_a_longer_step, 4)
{
    struct fl_solver_setup how = setups[_i];
    struct fl_solver_setup longer = setups[_i];
    struct fixture f;
    float *igfl;
    float *sgd;

    fixture_init(&f);
    how.n_selected = 4;
    longer.learning_rate *= 1.25;
    igfl = run(&f, &fl_solver_igfl_c, NULL, NULL, &how);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &longer);
    ck_assert_mem_eq(igfl, sgd, f.count * sizeof(float));
    free(igfl);
    free(sgd);
    fixture_done(&f);
}

/* What client `k` makes of `start` with sgd in this round: its displacement. */
static void sgd_delta(struct fed *f, size_t k, const float *start, double rate, float *delta)
{
    const struct fl_setup *setup = f->client[k].worker.setup;
    struct fl_options *o = options_of(&fl_solver_sgd.policy, NULL);
    const struct fl_train_model model = {.layout = f->layout,
                                         .net = f->spec,
                                         .solver = &fl_solver_sgd,
                                         .solver_options = o,
                                         .steps = (uint32_t)f->n_steps[k],
                                         .batch_size = FED_BATCH,
                                         .momentum = f->how.momentum,
                                         .weight_decay = f->how.weight_decay,
                                         .personal = setup->personal,
                                         .personal_options = setup->personal_options};
    const struct fl_train_task task = {.asked.key.round = f->round,
                                       .asked.key.attempt = 1,
                                       .model = start,
                                       .asked.learning_rate = rate,
                                       .asked.seed = fed_seed(f, k)};
    struct fl_train_result made = {0};
    struct fl_trainer *trainer = NULL;

    ck_assert_int_eq(fl_trainer_builtin(f->data[k], NULL, NULL, &trainer, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(trainer, &model, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_run(trainer, &task, &made, NULL), FL_OK);
    (void)memcpy(delta, made.delta, f->count * sizeof(float));
    fl_train_result_done(&made);
    fl_trainer_free(trainer);
    fl_options_free(o);
}

/* Second part: S = 1 and the same client every round, h = 0 always. */
TEST_EACH(one_client_every_round_is_fedavg_with_twice_the_step, 4)
{
    struct fed_plan plan = fed_everybody();
    struct fed f;
    float *want;
    size_t k;
    int t;

    fed_init(&f, &fl_solver_igfl_c, NULL, &setups[_i]);
    want = calloc(f.count, sizeof(float));
    f.n_selected = 1;
    for (k = 0; k < FED_CLIENTS; k++) {
        plan.trains[k] = k == 2;
    }
    for (t = 0; t < ROUNDS; t++) {
        fed_round(&f, &plan);
        sgd_delta(&f, 2, f.before, 2 * setups[_i].learning_rate, want);
        ck_assert_mem_eq(f.delta[2], want, f.count * sizeof(float));
    }
    free(want);
    fed_done(&f);
}

/* Mean over the clients of what the gradients alone moved, entry by entry, exported. */
static void mean_moved(const struct fed *f, float *internal, float *mean)
{
    size_t i;
    size_t k;

    for (i = 0; i < fl_net_block(f->net); i++) {
        double sum = 0;

        for (k = 0; k < FED_CLIENTS; k++) {
            sum += f->moved[k][i] / FED_CLIENTS;
        }
        internal[i] = (float)sum;
    }
    fl_net_export(f->net, mean, internal);
}

/*
 * docs/algorithms.md#displacements-of-igfl-c: with all clients in every round
 *     delta_ps <- (1 + 1/S) ubar + (1 - 1/S) delta_ps.
 * The recursion is exact; models and displacements are float here, numbers around 1 added up
 * over the steps, so that 1e-6 is what can be asked.
 */
TEST_EACH(with_everybody_the_displacement_is_a_momentum, 2)
{
    struct fed_plan plan = fed_everybody();
    double largest = 0;
    struct fed f;
    float *scratch;
    float *mean;
    float *old;
    size_t i;
    size_t t;
    size_t r;

    fed_init(&f, &fl_solver_igfl_c, _i == 0 ? "denominator=S" : "denominator=P", &setups[0]);
    f.sums = true;
    scratch = calloc(fl_net_block(f.net), sizeof(float));
    mean = calloc(f.count, sizeof(float));
    old = calloc(f.count, sizeof(float));
    for (r = 0; r < ROUNDS; r++) {
        (void)memcpy(old, f.state, f.count * sizeof(float));
        fed_round(&f, &plan);
        mean_moved(&f, scratch, mean);
        for (t = 0; t < fl_layout_tensors(f.layout); t++) {
            const struct fl_tensor *tensor = fl_layout_tensor(f.layout, t);

            for (i = tensor->offset; !tensor->buffer && i < tensor->offset + tensor->count; i++) {
                double want = (1 + 1.0 / FED_CLIENTS) * (double)mean[i] +
                              (1 - 1.0 / FED_CLIENTS) * (double)old[i];

                ck_assert_double_eq_tol((double)f.state[i], want, 1e-6);
                largest = fmax(largest, fabs((double)old[i]));
            }
        }
    }
    ck_assert_double_gt(largest, 0.01);
    free(scratch);
    free(mean);
    free(old);
    fed_done(&f);
}

/* One round of Algorithm 2 entry by entry, with momentum, weight decay and a pull. */
static void by_hand(struct fixture *f, const struct fl_solver_setup *how, double over,
                    const float *ps, const float *own, float *want)
{
    float *h = calloc(f->block, sizeof(float));
    float *start = calloc(f->block, sizeof(float));
    float *grad = calloc(f->block, sizeof(float));
    float *v = calloc(f->block, sizeof(float));
    float *drift = calloc(f->count, sizeof(float));
    float rate = (float)(how->learning_rate * (1 + 1 / over));
    size_t s;
    size_t i;

    fl_net_set(f->net, f->start);
    (void)memcpy(start, fl_net_params(f->net), f->block * sizeof(float));
    for (i = 0; i < f->count; i++) {
        drift[i] = (float)(((double)ps[i] - (double)own[i] / over) / STEPS);
    }
    fl_net_import(f->net, h, drift);
    for (s = 0; s < STEPS; s++) {
        float *x = fl_net_params(f->net);

        (void)fl_net_gradient(f->net, f->x[s], f->y[s], BATCH, grad);
        for (i = 0; i < f->block; i++) {
            float g = grad[i] + 0.5f * (x[i] - start[i]);

            g = g + (float)how->weight_decay * x[i];
            v[i] = (float)how->momentum * v[i] + g;
            x[i] = x[i] - rate * v[i];
            x[i] = x[i] + h[i];
        }
    }
    fl_net_get(f->net, want);
    free(h);
    free(start);
    free(grad);
    free(v);
    free(drift);
}

TEST_EACH(a_round_is_the_formula, 8)
{
    struct fl_solver_setup how = setups[_i % 4];
    struct fl_solver_bytes input;
    struct fl_solver_bytes kept;
    struct fixture f;
    float *ps;
    float *own;
    float *want;
    float *have;
    size_t i;

    fixture_init(&f);
    ps = calloc(f.count, sizeof(float));
    own = calloc(f.count, sizeof(float));
    want = calloc(f.count, sizeof(float));
    for (i = 0; i < f.count; i++) {
        ps[i] = 0.01f * (float)(i % 7);
        own[i] = 0.03f * (float)(i % 5);
    }
    by_hand(&f, &how, _i < 4 ? 4 : 10, ps, own, want);
    input = (struct fl_solver_bytes){ps, f.count * sizeof(float)};
    kept = (struct fl_solver_bytes){own, f.count * sizeof(float)};
    how.inputs = &input;
    how.kept = &kept;
    how.n_selected = 4;
    how.population = 10;
    have = run(&f, &fl_solver_igfl_c, "mu=0.5", _i < 4 ? "denominator=S" : "denominator=P", &how);
    ck_assert_mem_eq(have, want, f.count * sizeof(float));
    free(ps);
    free(own);
    free(want);
    free(have);
    fixture_done(&f);
}

/* Whatever was uploaded of it. */
TEST(a_client_keeps_its_whole_displacement)
{
    struct fed_plan plan = fed_everybody();
    struct fed f;
    float *zeros;
    size_t t;

    fed_init(&f, &fl_solver_igfl_c, NULL, &setups[1]);
    zeros = calloc(f.count, sizeof(float));
    plan.counted[2][1] = false;
    plan.counted[3][0] = false;
    plan.counted[3][1] = false;
    fed_round(&f, &plan);
    for (t = 0; t < fl_layout_tensors(f.layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(f.layout, t);
        const float *own = f.own[2] + tensor->offset;
        const float *delta = f.delta[2] + tensor->offset;

        /* Buffers are averaged: they have no displacement. */
        ck_assert_mem_eq(own, tensor->buffer ? zeros : delta, tensor->count * sizeof(float));
    }
    ck_assert_mem_ne(f.own[2] + fl_layout_unit(f.layout, 1)->offset, zeros,
                     fl_layout_unit(f.layout, 1)->count * sizeof(float));
    ck_assert_mem_eq(f.own[3], zeros, f.count * sizeof(float)); /* lost: not its displacement */
    free(zeros);
    fed_done(&f);
}

/* theta^r - theta^{r-1} (eq. 7): of a unit that nobody sent it is 0. */
TEST(the_displacement_is_the_servers_step)
{
    struct fed_plan plan = fed_everybody();
    const struct fl_unit *unit;
    struct fed f;
    float *old;
    size_t i;
    size_t k;

    fed_init(&f, &fl_solver_igfl_c, NULL, &setups[0]);
    unit = fl_layout_unit(f.layout, 1);
    old = calloc(f.count, sizeof(float));
    fed_round(&f, &plan);
    for (i = unit->offset; i < unit->offset + unit->count; i++) {
        ck_assert_double_eq_tol((double)f.state[i], (double)f.theta[i] - (double)f.before[i], 1e-7);
    }
    (void)memcpy(old, f.state, f.count * sizeof(float));
    for (k = 0; k < FED_CLIENTS; k++) {
        plan.counted[k][1] = false;
    }
    fed_round(&f, &plan);
    for (i = unit->offset; i < unit->offset + unit->count; i++) {
        ck_assert_double_eq((double)f.state[i], 0);
    }
    ck_assert_mem_ne(old, f.state, unit->offset * sizeof(float));
    free(old);
    fed_done(&f);
}

/* Identity 14, from rest. */
TEST_EACH(a_rate_of_zero_leaves_the_model_bit_for_bit, 4)
{
    struct fl_solver_setup how = setups[_i];
    struct fixture f;
    float *have;

    fixture_init(&f);
    how.learning_rate = 0;
    how.n_selected = 3;
    have = run(&f, &fl_solver_igfl_c, NULL, NULL, &how);
    ck_assert_mem_eq(have, f.start, f.count * sizeof(float));
    free(have);
    fixture_done(&f);
}

TEST_EACH(a_server_that_does_not_tell_the_counts_is_refused, 2)
{
    static const char *const which[] = {"denominator=S", "denominator=P"};
    struct fl_options *o = options_of(&fl_solver_igfl_c.policy, which[_i], NULL);
    struct fl_solver_setup setup = {.learning_rate = 0.1, .n_steps = 1, .round = 1};
    struct fl_solver *solver = NULL;
    struct fl_err err = {0};
    struct fixture f;

    fixture_init(&f);
    setup.net = f.net;
    setup.n_selected = _i == 0 ? 0 : 3;
    setup.population = _i == 0 ? 3 : 0;
    ck_assert_int_eq(fl_solver_igfl_c.create(o, &setup, &solver, &err), FL_ESTATE);
    ck_assert_ptr_nonnull(strstr(err.msg, _i == 0 ? "selected clients" : "all clients"));
    ck_assert_ptr_nonnull(strstr(err.msg, "the server did not send"));
    setup.n_selected = 3;
    setup.population = 3;
    ck_assert_int_eq(fl_solver_igfl_c.create(o, &setup, &solver, &err), FL_OK);
    fl_solver_igfl_c.destroy(solver);
    fl_solver_igfl_c.destroy(NULL);
    fl_options_free(o);
    fixture_done(&f);
}

/* The copy that is fitted before it is evaluated knows nothing of rounds. */
TEST_EACH(adapting_is_sgd, 4)
{
    struct fl_solver_setup how = setups[_i];
    struct fl_solver_bytes ones;
    struct fixture f;
    float *data;
    float *igfl;
    float *sgd;
    size_t i;

    fixture_init(&f);
    data = calloc(f.count, sizeof(float));
    for (i = 0; i < f.count; i++) {
        data[i] = 1;
    }
    ones = (struct fl_solver_bytes){data, f.count * sizeof(float)};
    how.adapting = true;
    how.inputs = &ones; /* and nothing of its own, nor the counts */
    igfl = run(&f, &fl_solver_igfl_c, NULL, NULL, &how);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &how);
    ck_assert_mem_eq(igfl, sgd, f.count * sizeof(float));
    free(data);
    free(igfl);
    free(sgd);
    fixture_done(&f);
}

TEST(momentum_on_the_server_is_refused_unless_asked_for)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedavg", &s, NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_SOLVER, "igfl_c", NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_AGGREGATE, "fedadam", NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_AGGREGATE, "momentum", NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "doubles"));
    ck_assert_int_eq(
        fl_options_set(s->options[FL_COMPONENT_SOLVER], "server_momentum", "yes", NULL), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_OK);
    fl_strategy_free(s);
}
