#include <float.h>

#include "tests/lib/suites.h"
#include "tests/libfl/strategy/solver_fed.h"
#include "tests/libfl/strategy/solver_fixture.h"

#define ROUNDS 15

static void leave_parameters(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    (void)ctx;
    (void)offset;
    (void)n;
    (void)params;
    (void)grad;
}

/* Random selections, drop-outs and plans, the same for each seed. */
static struct fed_plan random_plan(struct fl_rng *rng)
{
    struct fed_plan plan;
    size_t k;
    size_t l;

    for (k = 0; k < FED_CLIENTS; k++) {
        bool arrives = fl_rng_below(rng, 4) > 0;

        plan.trains[k] = fl_rng_below(rng, 3) > 0;
        for (l = 0; l < FED_UNITS; l++) {
            plan.counted[k][l] = arrives && fl_rng_below(rng, 3) > 0;
        }
    }
    return plan;
}

/* What the next round is told is the mean; returns its largest entry. */
static double check_told(struct fed *f)
{
    double largest = 0;
    size_t i;
    size_t k;

    fed_tell(f);
    for (i = 0; i < f->count; i++) {
        double mean = 0;

        for (k = 0; k < FED_CLIENTS; k++) {
            mean += (double)f->own[k][i] / (double)f->members;
        }
        ck_assert_double_eq_tol((double)f->described[i], mean, 1e-6);
        largest = fmax(largest, fabs(mean));
    }
    return largest;
}

static void check_invariant(struct fed *f)
{
    ck_assert_double_gt(check_told(f), 0.01);
}

/* docs/algorithms.md#control-variates. */
TEST_EACH(control_is_the_mean_of_the_controls_with_drop_outs_and_plans, 12)
{
    static const char *const how[] = {NULL, "rebuild_dc=yes", "control=gradient"};
    struct fl_rng rng;
    struct fed f;
    int t;

    fl_rng_seed(&rng, 3);
    fed_init(&f, &fl_solver_scaffold, how[_i / 4], &setups[_i % 4]);
    for (t = 0; t < ROUNDS; t++) {
        struct fed_plan plan = random_plan(&rng);

        fed_round(&f, &plan);
    }
    check_invariant(&f);
    fed_done(&f);
}

/* Clients join while it runs, one every third round: those before it are all members there are. */
TEST_EACH(control_is_the_mean_of_the_controls_while_clients_join, 8)
{
    struct fl_rng rng;
    struct fed f;
    size_t k;
    int t;

    fl_rng_seed(&rng, 5);
    fed_init(&f, &fl_solver_scaffold, _i >= 4 ? "rebuild_dc=yes" : NULL, &setups[_i % 4]);
    for (t = 0; t < ROUNDS; t++) {
        struct fed_plan plan = random_plan(&rng);

        f.members = 1 + (size_t)t / 3;
        for (k = f.members; k < FED_CLIENTS; k++) {
            plan.trains[k] = false;
        }
        (void)check_told(&f); /* The newcomer brings nothing, and counts. */
        fed_round(&f, &plan);
        (void)check_told(&f);
    }
    check_invariant(&f);
    fed_done(&f);
}

/* The mean gradient of all samples of client k at the model before the round, in float64, with
   finite differences of the loss: independent of the backward pass. Returns that of entry i. */
static double difference_of_loss(struct fed *f, size_t k, size_t i, double h)
{
    const struct fl_dataset *ds = f->data[k];
    float *x = calloc(f->count, sizeof(*x));
    double loss[2] = {0, 0};
    size_t side;
    size_t at;

    for (side = 0; side < 2; side++) {
        (void)memcpy(x, f->before, f->count * sizeof(*x));
        x[i] += (float)(side == 0 ? -h : h);
        fl_net_set(f->net, x);
        for (at = 0; at < FED_SAMPLES; at += FED_BATCH) {
            const float *rows = (const float *)ds->x + at * FED_INPUTS;
            const struct fl_net_pass pass = {.x = rows, .y = ds->y + at, .batch = FED_BATCH};

            /* A pass that does not move: with the statistics of its batch, as in training. */
            loss[side] += fl_net_pass(f->net, &pass, leave_parameters, NULL) * FED_BATCH;
        }
    }
    free(x);
    return (loss[1] - loss[0]) / (2 * h * FED_SAMPLES);
}

/* Karimireddy et al. 2020, eq. 4, option I. */
TEST_EACH(a_control_of_option_one_is_the_gradient_of_all_samples_at_the_received_model, 2)
{
    struct fed_plan plan = fed_everybody();
    double decay = setups[2 * _i].weight_decay;
    size_t checked = 0;
    struct fed f;
    size_t t;
    size_t i;
    size_t k;

    fed_init(&f, &fl_solver_scaffold, "control=gradient", &setups[2 * _i]);
    fed_round(&f, &plan);
    fed_round(&f, &plan);
    for (t = 0; t < fl_layout_tensors(f.layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(f.layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i += 3) {
            for (k = 0; tensor->buffer && k < FED_CLIENTS; k++) {
                ck_assert_double_eq((double)f.own[k][i], 0);
            }
            for (k = 0; !tensor->buffer && k < FED_CLIENTS; k += 2, checked++) {
                double want = difference_of_loss(&f, k, i, 1e-3) + decay * (double)f.before[i];

                ck_assert_double_eq_tol((double)f.own[k][i], want, 2e-3);
            }
        }
    }
    ck_assert_uint_gt(checked, 60);
    fed_done(&f);
}

/* What is sent is the change of the control, whatever the client did in its steps. */
TEST(under_option_one_the_sent_change_is_that_of_the_control)
{
    struct fed_plan plan = fed_everybody();
    float *own;
    struct fed f;
    size_t moved = 0;
    size_t i;

    fed_init(&f, &fl_solver_scaffold, "control=gradient", &setups[1]);
    fed_round(&f, &plan);
    own = calloc(f.count, sizeof(*own));
    (void)memcpy(own, f.own[2], f.count * sizeof(*own));
    fed_round(&f, &plan);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.sent[2][i], (double)f.own[2][i] - (double)own[i], 1e-6);
        moved += f.own[2][i] < own[i] || f.own[2][i] > own[i];
    }
    ck_assert_uint_gt(moved, f.count / 2);
    free(own);
    fed_done(&f);
}

/* With one step on all samples without momentum both options are the same gradient. */
TEST(with_one_step_on_all_samples_both_options_agree)
{
    struct fed_plan plan = fed_everybody();
    struct fed f[2];
    size_t i;
    size_t k;
    int which;
    int t;

    for (which = 0; which < 2; which++) {
        fed_init_steps(&f[which], &fl_solver_scaffold, which == 0 ? NULL : "control=gradient",
                       &setups[0], FED_SAMPLES);
        for (t = 0; t < 3; t++) {
            fed_round(&f[which], &plan);
        }
    }
    for (k = 0; k < FED_CLIENTS; k++) {
        for (i = 0; i < f[0].count; i++) {
            ck_assert_double_eq_tol((double)f[0].own[k][i], (double)f[1].own[k][i], 2e-5);
        }
    }
    fed_done(&f[0]);
    fed_done(&f[1]);
}

TEST(a_change_cannot_be_rebuilt_under_option_one)
{
    struct fl_options *o = options_of(&fl_solver_scaffold.policy, "control=gradient", NULL);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_solver_scaffold.policy.check(o, &err), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "rebuild_dc", "yes", &err), FL_OK);
    ck_assert_int_eq(fl_solver_scaffold.policy.check(o, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "option I"));
    fl_options_free(o);
}

/* A unit that nobody sent keeps its control on both sides. */
TEST(a_unit_that_is_not_counted_keeps_its_controls)
{
    const struct fl_unit *unit;
    struct fed_plan plan = fed_everybody();
    struct fed f;
    float *c;
    float *own;
    size_t changed = 0;
    size_t k;
    size_t i;

    fed_init(&f, &fl_solver_scaffold, NULL, &setups[0]);
    unit = fl_layout_unit(f.layout, 1);
    fed_round(&f, &plan);
    c = calloc(f.count, sizeof(float));
    own = calloc(f.count, sizeof(float));
    (void)memcpy(c, f.state, f.count * sizeof(float));
    (void)memcpy(own, f.own[2], f.count * sizeof(float));
    for (k = 0; k < FED_CLIENTS; k++) {
        plan.counted[k][1] = false;
    }
    fed_round(&f, &plan);
    ck_assert_mem_eq(c + unit->offset, f.state + unit->offset, unit->count * sizeof(float));
    ck_assert_mem_eq(own + unit->offset, f.own[2] + unit->offset, unit->count * sizeof(float));
    ck_assert_mem_ne(c, f.state, unit->offset * sizeof(float));
    ck_assert_mem_ne(own, f.own[2], unit->offset * sizeof(float));
    for (i = unit->offset; i < unit->offset + unit->count; i++) { /* It was there to be taken. */
        changed += f.sent[2][i] < 0 || f.sent[2][i] > 0;
    }
    ck_assert_uint_gt(changed, 0);
    for (i = 0; i < f.count; i++) {
        ck_assert(isfinite(f.theta[i]));
    }
    check_invariant(&f);
    free(c);
    free(own);
    fed_done(&f);
}

TEST_EACH(a_rebuilt_change_is_the_one_that_would_be_sent, 4)
{
    struct fed_plan plan = fed_everybody();
    struct fed sent;
    struct fed built;
    size_t i;
    size_t k;
    int t;

    plan.counted[1][0] = false;
    plan.trains[3] = false;
    fed_init(&sent, &fl_solver_scaffold, NULL, &setups[_i]);
    fed_init(&built, &fl_solver_scaffold, "rebuild_dc=yes", &setups[_i]);
    ck_assert_uint_eq(fl_solver_names(fl_solver_sends(built.ops, built.o)), 0);
    ck_assert_uint_eq(fl_solver_names(fl_solver_sends(sent.ops, sent.o)), 1);
    ck_assert_ptr_null(fl_agg_part_takes(built.ops->server, built.o));
    ck_assert_ptr_nonnull(fl_agg_part_takes(sent.ops->server, sent.o));
    for (t = 0; t < 3; t++) {
        fed_round(&sent, &plan);
        fed_round(&built, &plan);
        for (i = 0; i < sent.count; i++) {
            ck_assert_double_eq_tol((double)sent.state[i], (double)built.state[i], 1e-6);
            for (k = 0; k < FED_CLIENTS; k++) {
                ck_assert_double_eq_tol((double)sent.own[k][i], (double)built.own[k][i], 1e-6);
            }
        }
    }
    fed_done(&sent);
    fed_done(&built);
}

/* Controls of a client and of the server, exported, and what a run under them made. */
struct controlled {
    float *own, *c;
    float *want, *have;
    struct fl_buf kept, sent;
};

static void controlled_init(struct controlled *r, const struct fixture *f)
{
    size_t i;

    r->own = calloc(f->count, sizeof(float));
    r->c = calloc(f->count, sizeof(float));
    r->want = calloc(f->count, sizeof(float));
    r->have = calloc(f->count, sizeof(float));
    fl_buf_init(&r->kept, SIZE_MAX);
    fl_buf_init(&r->sent, SIZE_MAX);
    for (i = 0; i < f->count; i++) {
        r->own[i] = 0.01f * (float)(i % 7);
        r->c[i] = 0.02f * (float)(i % 5);
    }
}

static void controlled_done(struct controlled *r)
{
    fl_buf_done(&r->kept);
    fl_buf_done(&r->sent);
    free(r->own);
    free(r->c);
    free(r->want);
    free(r->have);
}

/* The steps of SCAFFOLD entry by entry; returns a_k. */
static double controlled_by_hand(struct controlled *r, struct fixture *f,
                                 const struct fl_solver_setup *how, float mu)
{
    float *own = calloc(f->block, sizeof(float));
    float *c = calloc(f->block, sizeof(float));
    float *grad = calloc(f->block, sizeof(float));
    float *v = calloc(f->block, sizeof(float));
    float *start = calloc(f->block, sizeof(float));
    double steps = 0;
    size_t s;
    size_t q;
    size_t i;

    fl_net_import(f->net, own, r->own);
    fl_net_import(f->net, c, r->c);
    (void)memcpy(start, fl_net_params(f->net), f->block * sizeof(float));
    for (s = 0; s < STEPS; s++) {
        float *x = fl_net_params(f->net);

        (void)fl_net_gradient(f->net, f->x[s], f->y[s], BATCH, grad);
        for (i = 0; i < f->block; i++) {
            float g = grad[i] - own[i];

            g = g + c[i];
            g = g + mu * (x[i] - start[i]);
            g = g + (float)how->weight_decay * x[i];
            v[i] = (float)how->momentum * v[i] + g;
            x[i] = x[i] - (float)how->learning_rate * v[i];
        }
        for (q = 0; q <= s; q++) {
            steps += pow(how->momentum, (double)q);
        }
    }
    fl_net_get(f->net, r->want);
    free(own);
    free(c);
    free(grad);
    free(v);
    free(start);
    return steps;
}

static void controlled_run(struct controlled *r, struct fixture *f,
                           const struct fl_solver_setup *how)
{
    struct fl_options *o = options_of(&fl_solver_scaffold.policy, "mu=0.5", NULL);
    struct fl_solver_bytes control = {r->c, f->count * sizeof(float)};
    struct fl_solver_bytes own = {r->own, f->count * sizeof(float)};
    struct fl_solver_setup setup = *how;
    struct fl_solver *solver = NULL;
    size_t s;

    fl_net_set(f->net, f->start);
    setup.net = f->net;
    setup.n_steps = STEPS;
    setup.round = 1;
    setup.inputs = &control;
    setup.kept = &own;
    ck_assert_int_eq(fl_solver_scaffold.create(o, &setup, &solver, NULL), FL_OK);
    for (s = 0; s < STEPS; s++) {
        (void)fl_solver_scaffold.step(solver, f->x[s], f->y[s], BATCH);
    }
    ck_assert_int_eq(fl_solver_scaffold.finish(solver, &r->kept, &r->sent, NULL), FL_OK);
    fl_solver_scaffold.destroy(solver);
    fl_net_get(f->net, r->have);
    fl_options_free(o);
}

TEST_EACH(a_round_is_the_formula, 4)
{
    struct controlled r;
    struct fixture f;
    double steps;
    size_t i;

    fixture_init(&f);
    controlled_init(&r, &f);
    steps = controlled_by_hand(&r, &f, &setups[_i], 0.5f);
    controlled_run(&r, &f, &setups[_i]);
    ck_assert_mem_eq(r.have, r.want, f.count * sizeof(float));
    ck_assert_uint_eq(r.sent.len, f.count * sizeof(float));
    ck_assert_uint_eq(r.kept.len, f.count * sizeof(float));
    for (i = 0; i < f.count; i++) {
        double moved = (double)f.start[i] - (double)r.have[i];
        double dc = -(double)r.c[i] + moved / (setups[_i].learning_rate * steps);
        float sent;
        float kept;

        (void)memcpy(&sent, r.sent.data + i * sizeof(float), sizeof(float));
        (void)memcpy(&kept, r.kept.data + i * sizeof(float), sizeof(float));
        ck_assert_double_eq_tol((double)sent, dc, 1e-6);
        ck_assert_double_eq_tol((double)kept, (double)r.own[i] + dc, 1e-6);
    }
    controlled_done(&r);
    fixture_done(&f);
}

/* Identity 3: zeros from the first round on, or fed as vectors of zeros. */
TEST_EACH(controls_frozen_at_zero_are_fedavg_bit_for_bit, 8)
{
    struct fl_solver_setup how = setups[_i % 4];
    struct fl_solver_bytes zeros;
    struct fixture f;
    float *data;
    float *scaffold;
    float *sgd;

    fixture_init(&f);
    data = calloc(f.count, sizeof(float));
    zeros = (struct fl_solver_bytes){data, f.count * sizeof(float)};
    if (_i >= 4) {
        how.inputs = &zeros;
        how.kept = &zeros;
    }
    scaffold = run(&f, &fl_solver_scaffold, NULL, NULL, &how);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &how);
    ck_assert_mem_eq(scaffold, sgd, f.count * sizeof(float));
    free(data);
    free(scaffold);
    free(sgd);
    fixture_done(&f);
}

/* a_k: sum over q = 1..steps of (1 - m^q) / (1 - m). */
TEST_EACH(the_step_count_knows_momentum, 5)
{
    static const double momenta[] = {0, 0.5, 0.9, 0.99, 0.9999};
    static const uint64_t counts[] = {1, 2, 25, 4096, 4097, 30000};
    struct fl_options *o = options_of(&fl_solver_scaffold.policy, NULL);
    double m = momenta[_i];
    size_t j;

    for (j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
        double sum = 0;
        uint64_t q;

        for (q = 1; q <= counts[j]; q++) {
            sum += (1 - pow(m, (double)q)) / (1 - m);
        }
        ck_assert_double_eq_tol(fl_solver_scaffold.factor(o, 0.1, m, counts[j]) * 0.1 * sum, 1,
                                1e-9);
    }
    ck_assert_double_eq(fl_solver_scaffold.factor(o, 0.5, 0, 4), 0.5);
    fl_options_free(o);
}

/* What a peer reports or an operator sets: no division by zero, no endless loop. */
TEST(a_factor_is_always_finite)
{
    struct fl_options *o = options_of(&fl_solver_scaffold.policy, NULL);

    ck_assert_double_eq(fl_solver_scaffold.factor(o, 0, 0.9, 10), 0);
    ck_assert_double_eq(fl_solver_scaffold.factor(o, 0.1, 0.9, 0), 0);
    ck_assert_double_eq(fl_solver_scaffold.factor(o, DBL_TRUE_MIN, 0, 1), 0);
    ck_assert_double_eq(fl_solver_scaffold.factor(o, 0.1, 1, 10), 0);
    ck_assert_double_gt(fl_solver_scaffold.factor(o, 0.1, 0.9999, UINT64_MAX), 0);
    fl_options_free(o);
}

/* Identity 14. */
TEST_EACH(a_rate_of_zero_leaves_everything_unchanged, 4)
{
    struct fed_plan plan = fed_everybody();
    struct fed f;
    float *theta;
    float *c;
    float *own;
    size_t i;
    size_t t;

    fed_init(&f, &fl_solver_scaffold, NULL, &setups[_i]);
    fed_round(&f, &plan);
    theta = calloc(f.count, sizeof(float));
    c = calloc(f.count, sizeof(float));
    own = calloc(f.count, sizeof(float));
    (void)memcpy(theta, f.theta, f.count * sizeof(float));
    (void)memcpy(c, f.state, f.count * sizeof(float));
    (void)memcpy(own, f.own[1], f.count * sizeof(float));
    f.how.learning_rate = 0;
    fed_round(&f, &plan);
    ck_assert_mem_eq(f.state, c, f.count * sizeof(float));
    ck_assert_mem_eq(f.own[1], own, f.count * sizeof(float));
    for (t = 0; t < fl_layout_tensors(f.layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(f.layout, t);

        for (i = tensor->offset; !tensor->buffer && i < tensor->offset + tensor->count; i++) {
            ck_assert(f.theta[i] <= theta[i] && f.theta[i] >= theta[i]);
        }
    }
    free(theta);
    free(c);
    free(own);
    fed_done(&f);
}

TEST(a_rate_of_zero_with_rebuild_dc_stays_finite_and_true)
{
    struct fed_plan plan = fed_everybody();
    struct fed f;

    fed_init(&f, &fl_solver_scaffold, "rebuild_dc=yes", &setups[0]);
    plan.trains[2] = false;
    fed_round(&f, &plan);
    fed_round(&f, &plan);
    f.how.learning_rate = 0;
    plan.trains[0] = false;
    fed_round(&f, &plan);
    check_invariant(&f);
    fed_done(&f);
}

/* docs/algorithms.md#buffers. */
TEST(buffers_have_no_control)
{
    struct fed_plan plan = fed_everybody();
    struct fed f;
    size_t n = 0;
    size_t k;
    size_t i;
    size_t t;

    fed_init(&f, &fl_solver_scaffold, NULL, &setups[1]);
    fed_round(&f, &plan);
    fed_round(&f, &plan);
    for (t = 0; t < fl_layout_tensors(f.layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(f.layout, t);

        for (i = tensor->offset; tensor->buffer && i < tensor->offset + tensor->count; i++) {
            n++;
            ck_assert_double_eq((double)f.state[i], 0);
            for (k = 0; k < FED_CLIENTS; k++) {
                ck_assert_double_eq((double)f.own[k][i], 0);
                ck_assert_double_eq((double)f.sent[k][i], 0);
                ck_assert_double_ne((double)f.delta[k][i], 0);
            }
        }
    }
    ck_assert_uint_gt(n, 0);
    fed_done(&f);
}

/* The copy that is fitted before it is evaluated knows nothing of rounds. */
TEST(adapting_is_sgd)
{
    struct fl_solver_setup how = {.learning_rate = 0.1, .momentum = 0.5, .adapting = true};
    struct fl_solver_bytes ones;
    struct fixture f;
    float *data;
    float *scaffold;
    float *sgd;
    size_t i;

    fixture_init(&f);
    data = calloc(f.count, sizeof(float));
    for (i = 0; i < f.count; i++) {
        data[i] = 1;
    }
    ones = (struct fl_solver_bytes){data, f.count * sizeof(float)};
    how.inputs = &ones; /* and none of its own */
    scaffold = run(&f, &fl_solver_scaffold, NULL, NULL, &how);
    sgd = run(&f, &fl_solver_sgd, NULL, NULL, &how);
    ck_assert_mem_eq(scaffold, sgd, f.count * sizeof(float));
    free(data);
    free(scaffold);
    free(sgd);
    fixture_done(&f);
}

TEST_EACH(a_control_that_does_not_fit_is_refused, 2)
{
    struct fl_options *o = options_of(&fl_solver_scaffold.policy, NULL);
    struct fl_solver_setup setup = {.learning_rate = 0.1, .n_steps = 1, .round = 1};
    struct fl_solver_bytes bytes[2] = {{NULL, 0}, {NULL, 0}};
    struct fl_solver *solver = NULL;
    struct fl_err err = {0};
    struct fixture f;
    float *bad;

    fixture_init(&f);
    bad = calloc(f.count, sizeof(float));
    setup.net = f.net;
    setup.inputs = &bytes[0];
    setup.kept = &bytes[1];
    bytes[_i] = (struct fl_solver_bytes){bad, f.count * sizeof(float) - 1};
    ck_assert_int_eq(fl_solver_scaffold.create(o, &setup, &solver, &err), FL_EFORMAT);
    ck_assert_ptr_nonnull(strstr(err.msg, _i == 0 ? "'control'" : "'this client's control'"));
    bytes[_i].len++;
    bad[f.count - 1] = NAN;
    ck_assert_int_eq(fl_solver_scaffold.create(o, &setup, &solver, &err), FL_ENUMERIC);
    bad[f.count - 1] = 0;
    ck_assert_int_eq(fl_solver_scaffold.create(o, &setup, &solver, &err), FL_OK);
    fl_solver_scaffold.destroy(solver);
    fl_solver_scaffold.destroy(NULL);
    free(bad);
    fl_options_free(o);
    fixture_done(&f);
}
