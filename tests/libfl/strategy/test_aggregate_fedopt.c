/* The adaptive server optimisers of FedOpt: fedadam, fedyogi, fedadagrad. */
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

enum { ADAM, CORRECTED, YOGI, ADAGRAD, RULES, FEDOPT_STATES = 2 };

static const struct fl_aggregate_ops *rule_ops(int rule)
{
    return rule == YOGI      ? &fl_aggregate_yogi
           : rule == ADAGRAD ? &fl_aggregate_adagrad
                             : &fl_aggregate_adam;
}

static void fedopt_init(struct fed *f)
{
    size_t b;

    fed_init(f, 4);
    for (b = 0; b < FEDOPT_STATES; b++) {
        (void)memset(f->state[b], 0, f->count * sizeof(float));
    }
}

static void fedopt_keep(struct fed *f)
{
    size_t b;

    (void)memcpy(f->theta, f->theta_new, f->count * sizeof(float));
    for (b = 0; b < FEDOPT_STATES; b++) {
        (void)memcpy(f->state[b], f->state_new[b], f->count * sizeof(float));
    }
    f->round++;
}

/* Other updates: those of the client before. */
static void fedopt_rotate(struct fed *f)
{
    float *last = f->sent[f->n - 1][0];
    size_t k;

    for (k = f->n - 1; k > 0; k--) {
        f->sent[k][0] = f->sent[k - 1][0];
    }
    f->sent[0][0] = last;
}

/* For any tau and over rounds. */
TEST_EACH(a_second_moment_that_stays_gives_fedavg, 6)
{
    static const char *const tau[] = {"tau=0.01", "tau=0.1", "tau=1"};
    static const char *const rate[] = {"server_lr=0.02", "server_lr=0.2", "server_lr=2"};
    const struct fl_aggregate_ops *ops = rule_ops(_i < 3 ? ADAM : YOGI);
    struct fed f;
    float *mean;
    size_t i;

    fedopt_init(&f);
    f.round = 3;
    mean = fed_model(&f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL));
    ck_assert_int_eq(
        fed_run(&f, ops,
                options_of(&ops->policy, "beta1=0", "beta2=1", tau[_i % 3], rate[_i % 3], NULL)),
        FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i], (double)mean[i], 1e-6);
        ck_assert(f.state_new[1][i] == 0); /* u stays tau^2 */
    }
    free(mean);
    fed_done(&f);
}

TEST(fedadagrad_with_a_large_tau_is_fedavg)
{
    const struct fl_policy *policy = &fl_aggregate_adagrad.policy;
    struct fed f;
    float *mean;
    size_t i;

    fedopt_init(&f);
    mean = fed_model(&f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL));
    ck_assert_int_eq(
        fed_run(&f, &fl_aggregate_adagrad, options_of(policy, "tau=500", "server_lr=1000", NULL)),
        FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert_double_eq_tol((double)f.theta_new[i], (double)mean[i], 1e-6);
    }
    free(mean);
    fed_done(&f);
}

TEST_EACH(a_server_rate_of_zero_freezes_the_model_bit_for_bit, RULES)
{
    const struct fl_aggregate_ops *ops = rule_ops(_i);
    struct fed f;
    size_t i;

    fedopt_init(&f);
    f.theta[0] = -0.0f;
    ck_assert_int_eq(fed_run(&f, ops, options_of(&ops->policy, "server_lr=0", NULL)), FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert(fed_is_buffer(&f, i) || memcmp(&f.theta_new[i], &f.theta[i], 4) == 0);
    }
    fed_done(&f);
}

/* Algorithm 2 of Reddi et al. for one entry, with u itself. */
static void fedopt_plainly(int rule, int t, double dbar, double *m, double *u, double *theta)
{
    double b1 = .5, b2 = .75, tau = .05, lr = .25;
    double square = dbar * dbar;
    double by_m = rule == CORRECTED ? 1 - pow(b1, t) : 1;
    double by_u = rule == CORRECTED ? 1 - pow(b2, t) : 1;

    if (t == 1) {
        *m = 0;
        *u = rule == CORRECTED ? 0 : tau * tau;
    }
    *m = b1 * *m + (1 - b1) * dbar;
    if (rule == YOGI) {
        *u -= (1 - b2) * square * (*u > square ? 1 : *u < square ? -1 : 0);
    } else if (rule == ADAGRAD) {
        *u += square;
    } else {
        *u = b2 * *u + (1 - b2) * square;
    }
    *theta += lr * (*m / by_m) / (sqrt(*u / by_u) + tau);
}

/* Five rounds of other updates; buffers take the mean and have no state. */
TEST_EACH(each_rule_is_its_formula_over_rounds, RULES)
{
    enum { ROUNDS = 5, ENTRIES = 100 };
    const struct fl_aggregate_ops *ops = rule_ops(_i);
    double m[ENTRIES], u[ENTRIES], theta[ENTRIES];
    struct fed f;
    size_t i;
    int t;

    fedopt_init(&f);
    ck_assert_uint_le(f.count, ENTRIES);
    for (i = 0; i < f.count; i++) {
        theta[i] = (double)f.theta[i];
    }
    for (t = 1; t <= ROUNDS; t++) {
        struct fl_options *o =
            options_of(&ops->policy, "beta1=0.5", "tau=0.05", "server_lr=0.25",
                       _i == ADAGRAD ? "weights=auto" : "beta2=0.75",
                       _i == CORRECTED ? "bias_correction=yes" : "weights=auto", NULL);

        for (i = 0; i < f.count; i++) {
            double dbar = fed_mean(&f, 0, i, true);

            if (fed_is_buffer(&f, i)) {
                m[i] = u[i] = 0;
                theta[i] += dbar;
            } else {
                fedopt_plainly(_i, t, dbar, &m[i], &u[i], &theta[i]);
            }
        }
        ck_assert_int_eq(fed_run(&f, ops, o), FL_OK);
        fedopt_keep(&f);
        fedopt_rotate(&f);
    }
    for (i = 0; i < f.count; i++) {
        double start = _i == CORRECTED || fed_is_buffer(&f, i) ? 0 : .05 * .05;

        ck_assert_double_eq_tol((double)f.theta[i], theta[i], 1e-5);
        ck_assert_double_eq_tol((double)f.state[0][i], m[i], 1e-6);
        ck_assert_double_eq_tol((double)f.state[1][i] + start, u[i], 1e-6);
    }
    fed_done(&f);
}

/* sign(u - Dbar^2) is -1 then, and 1 - beta2 is 1. */
TEST(fedyogi_with_beta2_zero_is_fedadagrad_while_updates_are_above_tau)
{
    const struct fl_policy *yogi = &fl_aggregate_yogi.policy;
    const struct fl_policy *adagrad = &fl_aggregate_adagrad.policy;
    struct fed f;
    float *model;
    size_t i, k;

    fedopt_init(&f);
    for (k = 0; k < f.n; k++) {
        for (i = 0; i < f.count; i++) {
            f.sent[k][0][i] = (i % 2 == 0 ? 1.0f : -1.0f) * (1 + fabsf(f.sent[k][0][i]));
        }
    }
    model = fed_model(&f, &fl_aggregate_adagrad, options_of(adagrad, "beta1=0.9", NULL));
    ck_assert_int_eq(fed_run(&f, &fl_aggregate_yogi, options_of(yogi, "beta2=0", NULL)), FL_OK);
    ck_assert_mem_eq(model, f.theta_new, f.count * sizeof(float));
    free(model);
    fed_done(&f);
}

/* It is what Yogi is for: Adam's falls by 1 - beta2 of itself. */
TEST(the_second_moment_of_fedyogi_falls_by_its_share_of_the_square_at_most)
{
    struct fed f;
    size_t i, k;

    fedopt_init(&f);
    for (k = 0; k < f.n; k++) {
        for (i = 0; i < f.count; i++) {
            f.sent[k][0][i] = 0.5f;
        }
    }
    for (i = 0; i < f.count; i++) {
        f.state[1][i] = 4;
    }
    ck_assert_int_eq(
        fed_run(&f, &fl_aggregate_yogi, options_of(&fl_aggregate_yogi.policy, "beta2=0.75", NULL)),
        FL_OK);
    for (i = 0; i < f.count; i++) {
        ck_assert(fed_is_buffer(&f, i) || f.state_new[1][i] == 4 - 0.25f * 0.25f);
    }
    fed_done(&f);
}

/* Adam's u then decays from tau^2 to 0, which the kept difference can miss by its last bit. */
TEST_EACH(the_model_stays_when_nothing_moves_for_long, RULES)
{
    const struct fl_aggregate_ops *ops = rule_ops(_i);
    struct fed f;
    size_t k;
    int t;

    fedopt_init(&f);
    for (k = 0; k < f.n; k++) {
        (void)memset(f.sent[k][0], 0, f.count * sizeof(float));
    }
    for (t = 0; t < 40; t++) {
        ck_assert_int_eq(fed_run(&f, ops,
                                 options_of(&ops->policy, "tau=0.0123",
                                            _i == ADAGRAD ? "beta1=0.9" : "beta2=0.1", NULL)),
                         FL_OK);
        ck_assert_mem_eq(f.theta_new, f.theta, f.count * sizeof(float));
        fedopt_keep(&f);
    }
    fed_done(&f);
}

/* Not fed a zero. */
TEST_EACH(the_moments_of_a_unit_that_no_client_sent_stay, RULES)
{
    const struct fl_aggregate_ops *ops = rule_ops(_i);
    const struct fl_unit *conv;
    struct fed f;
    size_t i;

    fedopt_init(&f);
    for (i = 0; i < f.count; i++) {
        f.state[0][i] = .25f;
        f.state[1][i] = .5f;
    }
    for (i = 0; i < f.n; i++) {
        f.units[i][1] = 0;
    }
    ck_assert_int_eq(fed_run(&f, ops, options_of(&ops->policy, NULL)), FL_OK);
    conv = fl_layout_unit(f.layout, 1);
    ck_assert_mem_eq(f.theta_new + conv->offset, f.theta + conv->offset, 4 * conv->count);
    for (i = 0; i < FEDOPT_STATES; i++) {
        ck_assert_mem_eq(f.state_new[i] + conv->offset, f.state[i] + conv->offset, 4 * conv->count);
        ck_assert_mem_ne(f.state_new[i], f.state[i], 4 * conv->offset);
    }
    fed_done(&f);
}
