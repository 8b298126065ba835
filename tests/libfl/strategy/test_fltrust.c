/*
 * The rule fltrust in the aggregation pass (docs/algorithms.md#fltrust). Its values are compared
 * with numpy in test_robust_numpy.sh; here is what follows from them.
 */
#include "libfl/strategy/strategy.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

enum { N = 6 };

static struct fed fed;
static float *reference;

/* Updates near the reference, each with some noise of its own. */
static void setup(void)
{
    size_t i, k;

    fed_init(&fed, N);
    reference = fed_floats(fed.count);
    for (i = 0; i < fed.count; i++) {
        reference[i] = i % 3 == 0 ? -0.2f : 0.1f;
    }
    for (k = 0; k < N; k++) {
        for (i = 0; i < fed.count; i++) {
            fed.sent[k][0][i] = 2 * reference[i] + 0.1f * fed.sent[k][0][i];
        }
    }
    fed.robust = &fl_robust_fltrust;
    fed.robust_options = options_of(&fl_robust_fltrust.policy, NULL);
    fed.reference = reference;
}

static void teardown(void)
{
    free(reference);
    fed_done(&fed);
}

static float *aggregated(void)
{
    return fed_model(&fed, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL));
}

static void send_all(size_t k, float factor)
{
    size_t i;

    for (i = 0; i < fed.count; i++) {
        fed.sent[k][0][i] *= factor;
    }
}

static bool stands(double used)
{
    return used > 0.9;
}

TEST_CASE("fltrust", setup, teardown);

TEST_EACH(an_update_against_the_reference_has_no_effect_however_long_it_is, 3)
{
    static const float factors[] = {-1, -1e30f, -1e-30f};
    float *model;
    float *without;
    size_t k;

    send_all(3, factors[_i]);
    model = aggregated();
    for (k = 0; k < N; k++) {
        ck_assert(k == 3 ? !(fed.used[k] > 0) : stands(fed.used[k]));
    }
    ck_assert_uint_eq(fed.info.robust_out, 1);
    /* The longest score: 1 - cosine is nearly 2, that of honest ones far below 1. */
    ck_assert_double_gt(fed.score[3], 10);
    send_all(3, 0);
    without = aggregated();
    ck_assert_mem_eq(model, without, fed.count * sizeof(float));
    free(model);
    free(without);
}

TEST(the_length_of_an_update_has_no_effect)
{
    float *model = aggregated();
    float *longer;
    size_t i;

    send_all(1, 4096);
    send_all(4, 0x1p-20f);
    longer = aggregated();
    for (i = 0; i < fed.count; i++) {
        if (!fed_is_buffer(&fed, i)) {
            ck_assert_double_eq_tol((double)longer[i], (double)model[i], 1e-6);
        }
    }
    ck_assert(stands(fed.used[1]) && stands(fed.used[4]));
    ck_assert_uint_eq(fed.info.robust_out, 0);
    free(model);
    free(longer);
}

TEST(equal_updates_of_any_length_move_the_model_by_the_reference)
{
    float *model;
    size_t i, k;

    for (k = 0; k < N; k++) {
        for (i = 0; i < fed.count; i++) {
            fed.sent[k][0][i] = (float)(k + 1) * reference[i];
        }
    }
    model = aggregated();
    for (i = 0; i < fed.count; i++) {
        double step = (double)model[i] - (double)fed.theta[i];

        /* Buffers have no length to be brought to: they take their mean. */
        ck_assert_double_eq_tol(
            step, (fed_is_buffer(&fed, i) ? (N + 1) / 2.0 : 1) * (double)reference[i], 1e-6);
    }
    free(model);
}

TEST_EACH(where_no_update_agrees_with_the_reference_model_and_state_stay_bit_for_bit, 2)
{
    float *model;
    size_t k;

    fed.distances = true;
    for (k = 0; k < N; k++) {
        send_all(k, _i == 0 ? -1 : 0);
    }
    model = fed_model(&fed, &fl_aggregate_momentum,
                      options_of(&fl_aggregate_momentum.policy, "beta=0.9", NULL));
    ck_assert_mem_eq(model, fed.theta, fed.count * sizeof(float));
    ck_assert_mem_eq(fed.state_new[0], fed.state[0], fed.count * sizeof(float));
    ck_assert_uint_eq(fed.info.robust_kept, FED_UNITS);
    ck_assert_uint_eq(fed.info.robust_out, N);
    ck_assert_double_eq(fed.info.robust_used, 0);
    for (k = 0; k < N; k++) { /* The new model is the old one. */
        ck_assert(_i == 0 ? fed.distance[k] > 0.1 : !(fed.distance[k] > 0));
    }
    free(model);
}

/* Client 5 is hostile in unit 1, where the others are; client 2 does not send it. */
TEST(with_partial_uploads_a_client_is_judged_by_each_layer_that_it_sent)
{
    const struct fl_unit *unit = fl_layout_unit(fed.layout, 1);
    float *model;
    size_t i, k;

    fed.units[2][1] = 0;
    for (i = unit->offset; i < unit->offset + unit->count; i++) {
        fed.sent[5][0][i] *= -100;
    }
    model = aggregated();
    for (i = 0; i < fed.count; i++) {
        double step = (double)model[i] - (double)fed.theta[i];

        if (!fed_is_buffer(&fed, i)) {
            ck_assert_double_eq_tol(step, (double)reference[i], 0.1);
        }
    }
    for (k = 0; k < N; k++) {
        ck_assert(k == 5 ? fed.used[k] > 0.5 && fed.used[k] < 0.9 : stands(fed.used[k]));
    }
    ck_assert_uint_eq(fed.info.robust_kept, 0);
    free(model);
}

TEST(a_layer_without_an_update_that_agrees_stays_while_the_others_move)
{
    const struct fl_unit *unit = fl_layout_unit(fed.layout, 2);
    float *model;
    size_t i, k;

    fed.units[0][2] = 0;
    for (k = 1; k < N; k++) {
        for (i = unit->offset; i < unit->offset + unit->count; i++) {
            fed.sent[k][0][i] *= -1;
        }
    }
    model = aggregated();
    ck_assert_mem_eq(model + unit->offset, fed.theta + unit->offset, unit->count * sizeof(float));
    ck_assert_mem_ne(model, fed.theta, unit->offset * sizeof(float));
    ck_assert_uint_eq(fed.info.robust_kept, 1);
    free(model);
}

TEST(a_report_of_fltrust_changes_no_bit_of_the_mean)
{
    send_all(4, -1);
    fed_check_report(&fed);
}

TEST_EACH(fltrust_gives_the_same_bits_for_any_block_size, 3)
{
    static const size_t blocks[] = {1, 7, 64};
    float *model = aggregated();
    float *other;

    fed.block = blocks[_i];
    other = aggregated();
    ck_assert_mem_eq(model, other, fed.count * sizeof(float));
    free(model);
    free(other);
}

static const struct unfit {
    const char *preset, *why;
} unfits[] = {
    {"scaffold", "over which robust 'fltrust' has no power"},
    {"fedmix", "has none of what a client with solver 'fedmix' receives or keeps"},
    {"fedmcsa", "which aggregate 'mcsa' does not take"},
    {"fedadp", "but robust 'fltrust' compares whole units"},
};

TEST_EACH(fltrust_is_refused_where_the_server_cannot_train_as_a_client, 4)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create(unfits[_i].preset, &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_ROBUST, "fltrust", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, unfits[_i].why) != NULL, "%s", err.msg);
    fl_strategy_free(s);
}
