/* The step of a program (fl_aggregate_ops.program), which a function of the test stands for. */
#include <check.h>
#include <stdlib.h>

#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

struct made {
    struct fed *fed;
    size_t n_units;
    struct fl_agg_whole whole;
    float *updates;
    double *mean, *weights;
    double factor; /* of the mean */
    int fails;
};

static int made_make(void *ctx, double *step, struct fl_err *err)
{
    struct made *m = ctx;
    size_t i;

    if (m->fails != FL_OK) {
        return fl_err_set(err, m->fails, "the program has failed");
    }
    for (i = 0; i < m->fed->count; i++) {
        step[i] = m->factor * m->mean[i];
    }
    return FL_OK;
}

static void made_init(struct made *m, struct fed *f)
{
    size_t n = f->n * (f->count + FED_UNITS);

    *m = (struct made){.fed = f, .n_units = fl_layout_units(f->layout), .factor = 1};
    m->updates = calloc(n, sizeof(*m->updates));
    m->mean = calloc(f->count, sizeof(*m->mean));
    m->weights = calloc(n, sizeof(*m->weights));
    ck_assert(m->updates != NULL && m->mean != NULL && m->weights != NULL);
    m->whole = (struct fl_agg_whole){
        .updates = m->updates, .mean = m->mean, .weights = m->weights, .make = made_make, .ctx = m};
}

static void made_done(struct made *m)
{
    free(m->updates);
    free(m->mean);
    free(m->weights);
    fed_done(m->fed);
}

static int run_command(struct made *m)
{
    struct fl_options *o = options_of(&fl_aggregate_command.policy, "program=strategy.py", NULL);

    m->fed->whole = &m->whole;
    return fed_run(m->fed, &fl_aggregate_command, o);
}

static float *model_of_mean(struct fed *f)
{
    return fed_model(f, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL));
}

/* _i 1: with partial uploads, of which no client sends the last unit. */
TEST_EACH(a_program_that_returns_the_mean_is_the_mean_bit_for_bit, 2)
{
    struct fed f;
    struct made m;
    float *mean;

    fed_init(&f, 4);
    if (_i == 1) {
        f.units[1][0] = f.units[2][1] = 0;
        f.units[0][2] = f.units[1][2] = f.units[2][2] = f.units[3][2] = 0;
    }
    made_init(&m, &f);
    mean = model_of_mean(&f);
    ck_assert_msg(run_command(&m) == FL_OK, "%s", f.err.msg);
    ck_assert_mem_eq(f.theta_new, mean, f.count * sizeof(*mean));
    free(mean);
    made_done(&m);
}

TEST(it_gets_what_each_client_sent_and_zeros_for_the_rest)
{
    struct fed f;
    struct made m;
    const struct fl_unit *first;
    size_t i;

    fed_init(&f, 3);
    f.units[1][0] = 0;
    made_init(&m, &f);
    (void)memset(m.updates, 0x7f, 3 * f.count * sizeof(*m.updates)); /* of the round before */
    ck_assert_msg(run_command(&m) == FL_OK, "%s", f.err.msg);
    first = fl_layout_unit(f.layout, 0);
    for (i = 0; i < f.count; i++) {
        bool sent = i >= first->offset + first->count;

        ck_assert_double_eq((double)m.updates[i], (double)f.sent[0][0][i]);
        ck_assert_double_eq((double)m.updates[f.count + i], sent ? (double)f.sent[1][0][i] : 0);
    }
    ck_assert_double_eq(m.weights[m.n_units], 0);
    ck_assert_double_eq_tol(m.weights[0] + m.weights[2 * m.n_units], 1, 1e-15);
    made_done(&m);
}

TEST(its_step_does_not_touch_buffers_and_units_that_no_client_sent)
{
    struct fed f;
    struct made m;
    float *mean;
    size_t t;
    size_t i;

    fed_init(&f, 3);
    f.units[0][0] = f.units[1][0] = f.units[2][0] = 0;
    made_init(&m, &f);
    mean = model_of_mean(&f);
    m.factor = 0;
    ck_assert_msg(run_command(&m) == FL_OK, "%s", f.err.msg);
    for (t = 0; t < fl_layout_tensors(f.layout); t++) {
        const struct fl_tensor *tensor = fl_layout_tensor(f.layout, t);

        for (i = tensor->offset; i < tensor->offset + tensor->count; i++) {
            ck_assert_double_eq((double)f.theta_new[i],
                                (double)(tensor->buffer ? mean[i] : f.theta[i]));
        }
    }
    free(mean);
    made_done(&m);
}

TEST(updates_are_clipped_before_it_gets_them)
{
    const double half[FED_UNITS] = {0.5, 0.5, 0.5};
    struct fed f;
    struct made m;

    fed_init(&f, 3);
    f.clients[1].clip = half;
    made_init(&m, &f);
    ck_assert_msg(run_command(&m) == FL_OK, "%s", f.err.msg);
    ck_assert_double_eq((double)m.updates[0], (double)f.sent[0][0][0]);
    ck_assert_double_eq((double)m.updates[f.count], (double)(f.sent[1][0][0] / 2));
    made_done(&m);
}

TEST(an_error_of_it_ends_the_pass_and_blames_no_client)
{
    struct fed f;
    struct made m;

    fed_init(&f, 3);
    made_init(&m, &f);
    m.fails = FL_ETIMEOUT;
    ck_assert_int_eq(run_command(&m), FL_ETIMEOUT);
    ck_assert_uint_eq(f.blamed, f.n);
    ck_assert_ptr_nonnull(strstr(f.err.msg, "has failed"));
    made_done(&m);
}

TEST(a_policy_without_a_program_is_refused)
{
    struct fl_options *o = options_of(&fl_aggregate_command.policy, NULL);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_aggregate_command.policy.check(o, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "needs a program"));
    fl_options_free(o);
}
