/*
 * Robust rules in the aggregation pass (docs/algorithms.md#robust-aggregation). Their values are
 * compared with numpy in test_robust_numpy.sh; here is what follows from them.
 */
#include "libfl/strategy/strategy.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/aggregate_fixture.h"

static const struct fl_robust_ops *const rules[] = {
    &fl_robust_median,           &fl_robust_trimmed_mean,
    &fl_robust_meamed,           &fl_robust_krum,
    &fl_robust_multi_krum,       &fl_robust_mda,
    &fl_robust_geometric_median, &fl_robust_centered_clipping,
    &fl_robust_clipping,         &fl_robust_dnc,
    &fl_robust_signguard,
};
enum { RULES = sizeof(rules) / sizeof(rules[0]), N = 6 };

static const char *const mixes[] = {"mix=none", "mix=bucketing", "mix=nnm"};
enum { MIXES = sizeof(mixes) / sizeof(mixes[0]) };

static struct fed fed;

static void setup(void)
{
    fed_init(&fed, N);
    fed.seed = 11;
}

static void teardown(void)
{
    fed_done(&fed);
}

static void choose(const struct fl_robust_ops *rule, const char *option, const char *other)
{
    fl_options_free(fed.robust_options);
    fed.robust = rule;
    fed.robust_options = options_of(&rule->policy, option, other, NULL);
}

static float *aggregated(void)
{
    return fed_model(&fed, &fl_aggregate_mean, options_of(&fl_aggregate_mean.policy, NULL));
}

static float *equally(void)
{
    float *model;

    fed.robust = NULL;
    model = fed_model(&fed, &fl_aggregate_mean,
                      options_of(&fl_aggregate_mean.policy, "weights=equal", NULL));
    return model;
}

static void assert_near(const float *a, const float *b, double tolerance)
{
    size_t i;

    for (i = 0; i < fed.count; i++) {
        ck_assert_msg(fabs((double)a[i] - (double)b[i]) <= tolerance, "entry %zu: %.9g, %.9g", i,
                      (double)a[i], (double)b[i]);
    }
}

TEST_CASE("pass", setup, teardown);

TEST_EACH(a_rule_gives_the_same_bits_for_any_block_size, RULES *MIXES)
{
    float *whole;
    float *pieces;

    choose(rules[_i / MIXES], "f=1", mixes[_i % MIXES]);
    if (fl_robust_needs(fed.robust, fed.robust_options) > N ||
        (fed.robust->policy.check != NULL &&
         fed.robust->policy.check(fed.robust_options, NULL) != FL_OK))
    {
        return;
    }
    whole = aggregated();
    fed.block = 7;
    pieces = aggregated();
    ck_assert_mem_eq(whole, pieces, fed.count * sizeof(float));
    free(whole);
    free(pieces);
}

/* Client 2 sends the largest floats; every rule keeps each entry near those of the other clients.
 */
TEST_EACH(one_client_with_the_largest_floats_cannot_move_the_model_beyond_the_others, RULES)
{
    float *model;
    size_t i, k;

    choose(rules[_i], "f=1", "mix=none");
    for (i = 0; i < fed.count; i++) {
        fed.state[0][i] = 0;
        fed.sent[2][0][i] = i % 2 == 0 ? 3.4e38f : -3.4e38f;
    }
    model = aggregated();
    for (i = 0; i < fed.count; i++) {
        double most = 0;
        double step = (double)model[i] - (double)fed.theta[i];

        for (k = 0; k < N; k++) {
            most = k == 2 ? most : fmax(most, fabs((double)fed.sent[k][0][i]));
        }
        /* Clipping keeps the direction: two median norms of it, one of six updates. */
        ck_assert_double_le(fabs(step), rules[_i]->by_samples || rules[_i]->centred != NULL
                                            ? most + 3
                                            : most + 1e-6);
    }
    ck_assert_double_lt(fed.used[2], FL_AGG_LEFT_OUT);
    ck_assert_uint_ge(fed.info.robust_out, 1);
    /* Far more than the median of the six; projections of dnc are from the mean, which moved. */
    ck_assert_double_gt(fed.score[2], rules[_i] == &fl_robust_dnc ? 4 : 1e6);
    for (k = 0; k < N; k++) {
        ck_assert(k == 2 || (fed.score[k] >= 0 && fed.score[k] < fed.score[2] / 4));
    }
    free(model);
}

/* For the distances all, then the one that Krum takes; for AdaFL's distances all a second time. */
TEST_EACH(updates_without_weight_are_not_read_again, 2)
{
    choose(&fl_robust_krum, "f=1", "mix=none");
    fed.distances = _i == 1;
    fed.opened = 0;
    free(aggregated());
    ck_assert_uint_eq(fed.opened, (size_t)(_i == 1 ? 2 * N : N + 1) * FED_UNITS);
}

TEST_EACH(with_f_0_choosing_and_trimming_are_the_plain_mean, 4)
{
    static const struct fl_robust_ops *const plain[] = {&fl_robust_trimmed_mean, &fl_robust_meamed,
                                                        &fl_robust_multi_krum, &fl_robust_mda};
    float *model;
    float *mean;

    choose(plain[_i], "f=0", "mix=none");
    model = aggregated();
    mean = equally();
    assert_near(model, mean, 1e-6);
    free(model);
    free(mean);
}

TEST(updates_within_the_threshold_are_weighted_by_samples_as_without_a_rule)
{
    float *clipped;
    float *mean;

    fed.robust = &fl_robust_clipping;
    fed.robust_options = options_of(&fl_robust_clipping.policy, "threshold=static", "c=1e9", NULL);
    clipped = aggregated();
    fed.robust = NULL;
    mean = aggregated();
    ck_assert_mem_eq(clipped, mean, fed.count * sizeof(float));
    free(clipped);
    free(mean);
}

TEST_EACH(a_report_changes_no_bit_of_the_model_and_has_the_same_figures, RULES)
{
    size_t i;

    choose(rules[_i], "f=1", "mix=none");
    for (i = 0; i < fed.count; i++) {
        fed.sent[4][0][i] *= 1000;
    }
    fed_check_report(&fed);
    ck_assert_double_lt(fed.used[4], FL_AGG_LEFT_OUT);
}

/* Client 5 is hostile in unit 1, and only clients 0, 1, 2, 5 send it. */
TEST_EACH(the_senders_of_a_unit_decide_among_themselves, 2)
{
    const struct fl_unit *unit = fl_layout_unit(fed.layout, 1);
    float *model;
    size_t i;

    choose(_i == 0 ? &fl_robust_median : &fl_robust_mda, "f=1", "mix=none");
    fed.units[3][1] = 0;
    fed.units[4][1] = 0;
    for (i = unit->offset; i < unit->offset + unit->count; i++) {
        fed.sent[5][0][i] = 1e9f;
    }
    model = aggregated();
    for (i = unit->offset; i < unit->offset + unit->count; i++) {
        ck_assert_double_lt(fabs((double)model[i] - (double)fed.theta[i]), 2);
    }
    free(model);
}

TEST(a_unit_with_too_few_senders_for_the_rule_keeps_its_value)
{
    const struct fl_unit *unit = fl_layout_unit(fed.layout, 2);
    float *model;
    size_t k;

    choose(&fl_robust_krum, "f=1", "mix=none"); /* needs 5 */
    fed.units[0][2] = 0;
    fed.units[1][2] = 0;
    model = aggregated();
    ck_assert_mem_eq(model + unit->offset, fed.theta + unit->offset, unit->count * sizeof(float));
    ck_assert_mem_ne(model, fed.theta, unit->offset * sizeof(float));
    for (k = 0; k < N; k++) {
        fed.units[k][2] = k > 0; /* five of them */
    }
    free(model);
    model = aggregated();
    ck_assert_mem_ne(model + unit->offset, fed.theta + unit->offset, unit->count * sizeof(float));
    free(model);
}

TEST(the_centre_is_the_last_result)
{
    float *model;
    size_t i;

    choose(&fl_robust_centered_clipping, "f=1", "mix=none");
    for (i = 0; i < fed.count; i++) {
        fed.state[0][i] = 0;
    }
    model = aggregated();
    for (i = 0; i < fed.count; i++) {
        double step = (double)model[i] - (double)fed.theta[i];

        ck_assert_double_eq_tol((double)fed.state_new[0][i], fed_is_buffer(&fed, i) ? 0 : step,
                                1e-6);
    }
    free(model);
}

/* All have the same norm; the entries of client 1 have the signs of the others reversed. */
TEST(signguard_leaves_out_an_update_of_the_usual_norm_with_flipped_signs)
{
    float *model;
    size_t i, k;

    choose(&fl_robust_signguard, "f=1", "mix=none");
    for (k = 0; k < N; k++) {
        for (i = 0; i < fed.count; i++) {
            fed.sent[k][0][i] = (i + k) % 5 == 0 ? -0.1f : 0.1f;
            fed.sent[k][0][i] *= k == 1 ? -1.0f : 1.0f;
        }
    }
    model = aggregated();
    for (k = 0; k < N; k++) {
        ck_assert(k == 1 ? !(fed.used[k] > 0) : fed.used[k] > 0.99);
    }
    ck_assert_uint_eq(fed.info.robust_out, 1);
    free(model);
}

TEST(signguard_leaves_out_norms_beyond_its_limits_and_clips_the_others_to_the_median)
{
    static const float scale[N] = {1, 1, 0.05f, 2, 4, 1};
    float *model;
    size_t i, k;

    choose(&fl_robust_signguard, "f=1", "mix=none");
    for (k = 0; k < N; k++) {
        for (i = 0; i < fed.count; i++) {
            fed.sent[k][0][i] = fed_is_buffer(&fed, i) ? 0 : scale[k];
        }
    }
    model = aggregated();
    ck_assert(!(fed.used[2] > 0) && !(fed.used[4] > 0));
    for (i = 0; i < fed.count; i++) {
        ck_assert_double_eq_tol((double)model[i] - (double)fed.theta[i],
                                fed_is_buffer(&fed, i) ? 0 : 1, 1e-6);
    }
    free(model);
}

/* The two with common signs are too long, and no two of the others have the same signs. */
TEST(when_signguard_keeps_no_update_the_model_stays)
{
    float *model;
    size_t i, k;

    choose(&fl_robust_signguard, "bandwidth_quantile=0", NULL);
    for (k = 0; k < N; k++) {
        for (i = 0; i < fed.count; i++) {
            fed.sent[k][0][i] = k < 2 ? 9 : i < 5 * k ? -1 : 1;
            fed.sent[k][0][i] = fed_is_buffer(&fed, i) ? 0 : fed.sent[k][0][i];
        }
    }
    model = aggregated();
    ck_assert_mem_eq(model, fed.theta, fed.count * sizeof(float));
    ck_assert_uint_eq(fed.info.robust_out, N);
    free(model);
}

/* The mean of three equal features is not always equal to them: 3 a / 3 is rounded. */
TEST(updates_with_equal_signs_are_one_cluster_whatever_the_mean_of_their_features_is_rounded_to)
{
    static const size_t positive[N] = {46, 46, 46, 67, 10, 20};
    float *model;
    size_t i, k;

    choose(&fl_robust_signguard, "bandwidth_quantile=0", NULL);
    for (k = 0; k < N; k++) {
        size_t n = 0;

        for (i = 0; i < fed.count; i++) {
            fed.sent[k][0][i] = n < positive[k] ? 0.1f : -0.1f;
            n += !fed_is_buffer(&fed, i);
        }
    }
    model = aggregated();
    for (k = 0; k < N; k++) {
        ck_assert(k < 3 ? fed.used[k] > 0.99 : !(fed.used[k] > 0));
    }
    free(model);
}

/* Signs and lengths are the usual ones; the last result says which direction is new. */
TEST_EACH(with_a_reference_signguard_also_compares_directions, 3)
{
    static const char *const kinds[] = {"feature=similarity", "feature=distance", "feature=none"};
    float *model;
    size_t i, k, n;

    choose(&fl_robust_signguard, kinds[_i], "bandwidth_quantile=0.6");
    for (i = 0, n = 0; i < fed.count; i++) {
        fed.state[0][i] = n < 33 ? 1 : -1;
        for (k = 0; k < N; k++) {
            /* 33 of the 67 entries are positive in all, but not the same ones. */
            fed.sent[k][0][i] = ((k == 2 ? n >= 34 : n < 33) ? 1.0f : -1.0f) *
                                (1 + (float)((i * 7 + k * 3) % 10) / 50);
        }
        n += !fed_is_buffer(&fed, i);
    }
    model = aggregated();
    for (k = 0; k < N; k++) {
        ck_assert(k == 2 && _i < 2 ? !(fed.used[k] > 0) : fed.used[k] > 0.9);
    }
    for (i = 0; i < fed.count; i++) { /* The result is the next reference. */
        ck_assert(_i == 2 || fed_is_buffer(&fed, i) ||
                  fabs((double)fed.state_new[0][i] - ((double)model[i] - (double)fed.theta[i])) <
                      1e-6);
    }
    free(model);
}

TEST_EACH(without_a_last_result_signguard_compares_signs_alone, 2)
{
    static const char *const kinds[] = {"feature=similarity", "feature=distance"};
    float *plain;
    float *model;

    choose(&fl_robust_signguard, "f=1", "mix=none");
    plain = aggregated();
    ck_assert_int_eq(
        fl_options_set(fed.robust_options, "feature", strchr(kinds[_i], '=') + 1, NULL), FL_OK);
    (void)memset(fed.state[0], 0, fed.count * sizeof(float));
    model = aggregated();
    ck_assert_mem_eq(plain, model, fed.count * sizeof(float));
    free(plain);
    free(model);
}

TEST_EACH(signguard_refuses_what_has_no_signs_of_single_updates, 2)
{
    struct fl_options *o = options_of(&fl_robust_signguard.policy, mixes[1 + _i], NULL);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_robust_signguard.policy.check(o, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "set mix to 'none'"));
    fl_options_free(o);
}

/* round.norm_clip: a factor of one client's trainable entries, whatever path reads them. */
TEST_EACH(a_clipped_update_counts_as_one_that_was_sent_shorter, 2)
{
    double quarter[8];
    float *clipped;
    float *shorter;
    size_t i;

    ck_assert_uint_le(fl_layout_units(fed.layout), 8);
    for (i = 0; i < 8; i++) {
        quarter[i] = 0.25;
    }
    fed.robust = NULL;
    fed.distances = _i == 1;
    fed.clients[3].clip = quarter;
    clipped = aggregated();
    fed.clients[3].clip = NULL;
    for (i = 0; i < fed.count; i++) {
        fed.sent[3][0][i] *= fed_is_buffer(&fed, i) ? 1.0f : 0.25f;
    }
    shorter = aggregated();
    ck_assert_mem_eq(clipped, shorter, fed.count * sizeof(float));
    free(clipped);
    free(shorter);
}

TEST(a_mask_is_refused_where_whole_units_are_compared)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedavg", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_ROBUST, "median", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_UPLOAD, "fedadp", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "robust 'median' compares whole units"));
    fl_strategy_free(s);
}

static const struct {
    enum fl_component component;
    const char *name, *why;
} unfit[] = {
    {FL_COMPONENT_SOLVER, "scaffold", "solver 'scaffold' sends a vector beside the update"},
    {FL_COMPONENT_AGGREGATE, "igfl_s", "which aggregate 'igfl_s' does not take"},
    {FL_COMPONENT_UPLOAD, "ldf",
     "robust 'krum' with these options needs 5 senders of every layer: set option n of upload "
     "'ldf' "
     "to 5 or more, it is 0 (a share of the selected clients)"},
};

TEST_EACH(what_a_rule_has_no_power_over_is_refused_with_the_reason, 3)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedavg", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_ROBUST, "krum", &err), FL_OK);
    ck_assert_int_eq(fl_options_set(s->options[FL_COMPONENT_ROBUST], "f", "1", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, unfit[_i].component, unfit[_i].name, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, unfit[_i].why) != NULL, "%s", err.msg);
    fl_strategy_free(s);
}

TEST(partial_uploads_with_enough_senders_of_each_layer_are_allowed)
{
    struct fl_strategy *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_strategy_create("fedldf", &s, &err), FL_OK);
    ck_assert_int_eq(fl_strategy_set(s, FL_COMPONENT_ROBUST, "krum", &err), FL_OK);
    ck_assert_int_eq(fl_options_set(s->options[FL_COMPONENT_ROBUST], "f", "1", &err), FL_OK);
    ck_assert_int_eq(fl_options_set(s->options[FL_COMPONENT_UPLOAD], "n", "4", &err), FL_OK);
    ck_assert_int_eq(fl_strategy_check(s, &err), FL_ECONF);
    ck_assert_int_eq(fl_options_set(s->options[FL_COMPONENT_UPLOAD], "n", "5", &err), FL_OK);
    ck_assert_msg(fl_strategy_check(s, &err) == FL_OK, "%s", err.msg);
    fl_strategy_free(s);
}

TEST(bucketing_needs_its_senders_in_whole_buckets)
{
    struct fl_options *o =
        options_of(&fl_robust_krum.policy, "f=1", "mix=bucketing", "bucket=3", NULL);

    /* Five buckets, of which the last may hold one update. */
    ck_assert_uint_eq(fl_robust_needs(&fl_robust_krum, o), 13);
    fl_options_free(o);
}

TEST(every_update_is_in_one_bucket_and_another_round_has_other_ones)
{
    struct fl_options *o = options_of(&fl_robust_median.policy, "mix=bucketing", "bucket=4", NULL);
    struct fl_robust_updates in = {.n = 10};
    struct fl_robust_mixtures x[2];
    size_t round, a, i;

    for (round = 0; round < 2; round++) {
        struct fl_rng rng;

        fl_rng_key(&rng, 5, FL_RNG_BUCKETS, round, 0);
        ck_assert_int_eq(fl_robust_mix_updates(o, &in, &rng, &x[round]), FL_OK);
        ck_assert_uint_eq(x[round].m, 3);
        for (i = 0; i < 10; i++) {
            size_t found = 0;

            for (a = 0; a < 3; a++) {
                double w = x[round].mix[a * 10 + i];

                ck_assert(w == 0 || w == (a < 2 ? 0.25 : 0.5));
                found += w > 0;
            }
            ck_assert_uint_eq(found, 1);
        }
    }
    ck_assert_mem_ne(x[0].mix, x[1].mix, 30 * sizeof(double));
    fl_robust_mixtures_done(&x[0]);
    fl_robust_mixtures_done(&x[1]);
    fl_options_free(o);
}

TEST(a_search_of_2_to_the_power_of_f_is_refused_above_16)
{
    struct fl_options *o = options_of(&fl_robust_mda.policy, "f=17", NULL);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_robust_mda.policy.check(o, &err), FL_ECONF);
    ck_assert_str_eq(err.msg,
                     "f is 17, expected at most 16: the search takes up to 2^f steps; choose "
                     "'multi_krum'");
    fl_options_free(o);
}
