#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/selection/selection.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"

static const struct fl_selection_ops *const all[] = {
    &fl_selection_uniform,
    &fl_selection_weighted,
    &fl_selection_attention,
};

static void pick(const struct fl_selection_ops *ops, const struct fl_options *o, const double *p,
                 size_t n, size_t want, struct fl_rng *rng, uint32_t *chosen)
{
    struct fl_select_input in = {.n = n, .scores = p, .samples = p, .want = want};

    ck_assert_int_eq(ops->pick(o, &in, rng, chosen), FL_OK);
}

TEST_EACH(everybody_is_chosen_when_everybody_is_wanted, 3)
{
    const struct fl_selection_ops *ops = all[_i];
    struct fl_options *o = options_of(&ops->policy, NULL);
    double p[7] = {1, 2, 3, 4, 5, 6, 7};
    uint32_t chosen[7];
    struct fl_rng rng;
    uint32_t i;

    fl_rng_seed(&rng, 1);
    pick(ops, o, p, 7, 7, &rng, chosen);
    for (i = 0; i < 7; i++) {
        ck_assert_uint_eq(chosen[i], i);
    }
    fl_options_free(o);
}

TEST_EACH(choices_are_distinct_ascending_and_repeatable, 3)
{
    const struct fl_selection_ops *ops = all[_i];
    struct fl_options *o = options_of(&ops->policy, NULL);
    double p[50];
    uint32_t first[20];
    uint32_t again[20];
    struct fl_rng rng;
    uint64_t seed;
    size_t i;

    for (i = 0; i < 50; i++) {
        p[i] = 1.0 + (double)(i % 7);
    }
    for (seed = 0; seed < 50; seed++) {
        fl_rng_key(&rng, seed, FL_RNG_SELECT, 3, 0);
        pick(ops, o, p, 50, 20, &rng, first);
        fl_rng_key(&rng, seed, FL_RNG_SELECT, 3, 0);
        pick(ops, o, p, 50, 20, &rng, again);
        ck_assert_mem_eq(first, again, sizeof(first));
        ck_assert_uint_lt(first[19], 50);
        for (i = 1; i < 20; i++) {
            ck_assert_uint_lt(first[i - 1], first[i]);
        }
    }
    fl_options_free(o);
}

/* Chi-square against the probabilities; the seed is fixed, so this cannot flake. The bound is
   the 99.9 % quantile of the degrees of freedom used here. */
static double chi_square(const unsigned *seen, const double *p, size_t n, double draws)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        double d = (double)seen[i] - draws * p[i];

        sum += d * d / (draws * p[i]);
    }
    return sum;
}

TEST(uniform_pairs_are_equally_likely)
{
    struct fl_options *o = options_of(&fl_selection_uniform.policy, NULL);
    /* Very unequal samples: they must not matter. */
    double p[4] = {1000, 1, 1, 1};
    double expected[6] = {1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6, 1. / 6};
    unsigned seen[6] = {0};
    struct fl_rng rng;
    uint32_t c[2];
    int i;

    fl_rng_seed(&rng, 42);
    for (i = 0; i < 60000; i++) {
        pick(&fl_selection_uniform, o, p, 4, 2, &rng, c);
        seen[c[0] == 0 ? c[1] - 1 : c[0] + c[1]]++;
    }
    ck_assert_double_lt(chi_square(seen, expected, 6, 60000), 20.5);
    fl_options_free(o);
}

/* docs/algorithms.md#draws-without-replacement. */
TEST_ROW(weighted_pairs_have_the_probabilities_of_successive_draws, 0, 0, 1, 3)
{
    const struct fl_selection_ops *ops = all[_i];
    struct fl_options *o = options_of(&ops->policy, NULL);
    double p[3] = {.5, .3, .2};
    double expected[3] = {.5 * .3 / .5 + .3 * .5 / .7, .5 * .2 / .5 + .2 * .5 / .8,
                          .3 * .2 / .7 + .2 * .3 / .8};
    unsigned seen[3] = {0};
    struct fl_rng rng;
    uint32_t c[2];
    int i;

    ck_assert_double_eq_tol(expected[0], .514286, 1e-6);
    ck_assert_double_eq_tol(expected[1], .325, 1e-6);
    ck_assert_double_eq_tol(expected[2], .160714, 1e-6);
    fl_rng_seed(&rng, 7);
    for (i = 0; i < 100000; i++) {
        pick(ops, o, p, 3, 2, &rng, c);
        seen[c[0] + c[1] - 1]++;
    }
    ck_assert_double_lt(chi_square(seen, expected, 3, 100000), 13.8);
    fl_options_free(o);
}

TEST(single_weighted_draws_follow_p)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    double p[5] = {.4, .3, .15, .1, .05};
    unsigned seen[5] = {0};
    struct fl_rng rng;
    uint32_t c;
    int i;

    fl_rng_seed(&rng, 11);
    for (i = 0; i < 50000; i++) {
        pick(&fl_selection_attention, o, p, 5, 1, &rng, &c);
        seen[c]++;
    }
    ck_assert_double_lt(chi_square(seen, p, 5, 50000), 18.5);
    fl_options_free(o);
}

TEST(a_one_hot_p_always_gives_that_client)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    double p[4] = {0, 0, 1, 0};
    struct fl_rng rng;
    uint32_t c;
    int i;

    fl_rng_seed(&rng, 3);
    for (i = 0; i < 100; i++) {
        pick(&fl_selection_attention, o, p, 4, 1, &rng, &c);
        ck_assert_uint_eq(c, 2);
    }
    fl_options_free(o);
}

TEST(too_few_positive_p_are_filled_uniformly)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    double p[5] = {0, .7, (double)NAN, .3, -1};
    double expected[3] = {1. / 3, 1. / 3, 1. / 3};
    unsigned seen[5] = {0};
    unsigned filled[3];
    struct fl_rng rng;
    uint32_t c[3];
    int i;

    fl_rng_seed(&rng, 5);
    for (i = 0; i < 30000; i++) {
        pick(&fl_selection_attention, o, p, 5, 3, &rng, c);
        seen[c[0]]++;
        seen[c[1]]++;
        seen[c[2]]++;
    }
    ck_assert_uint_eq(seen[1], 30000);
    ck_assert_uint_eq(seen[3], 30000);
    filled[0] = seen[0];
    filled[1] = seen[2];
    filled[2] = seen[4];
    ck_assert_double_lt(chi_square(filled, expected, 3, 30000), 13.8);
    fl_options_free(o);
}

/* --- attention, docs/algorithms.md#selection-by-attention --- */

static void update(const struct fl_options *o, uint64_t round, double *a, size_t n,
                   const uint32_t *who, const double *d, size_t k)
{
    struct fl_score_sums total = {0};
    double scores[32];
    size_t i;

    (void)round;
    for (i = 0; i < n; i++) {
        total.scores += a[i];
    }
    for (i = 0; i < k; i++) {
        scores[i] = a[who[i]];
    }
    fl_selection_attention.update(o, &total, scores, d, k);
    for (i = 0; i < k; i++) {
        a[who[i]] = scores[i];
    }
}

/* Clients with samples join one after the other; then attentions are shares. */
static void join_all(const struct fl_options *o, const double *samples, size_t n, double *a)
{
    struct fl_score_sums sums = {0};
    size_t i;

    for (i = 0; i < n; i++) {
        a[i] = samples[i] > 0 ? fl_selection_attention.join(o, samples[i], &sums) : 0;
        sums.scores += a[i];
        sums.samples += samples[i];
    }
    for (i = 0; i < n && sums.scores > 0; i++) {
        a[i] /= sums.scores;
    }
}

static double sum(const double *a, size_t n)
{
    double s = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        s += a[i];
    }
    return s;
}

TEST(attention_starts_as_the_share_of_samples)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    double n[4] = {100, 300, 0, 600};
    double a[4];

    join_all(o, n, 4, a);
    ck_assert_double_eq_tol(a[0], .1, 1e-15);
    ck_assert_double_eq_tol(a[1], .3, 1e-15);
    ck_assert_double_eq(a[2], 0);
    ck_assert_double_eq_tol(a[3], .6, 1e-15);
    fl_options_free(o);
}

TEST(a_factor_on_all_scores_changes_no_attention)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    struct fl_score_sums sums = {.scores = 1, .samples = 400};
    double a[4] = {.1, .3, .2, .4};
    double b[4] = {100, 300, 200, 400};
    uint32_t who[3] = {0, 2, 3};
    double d[3] = {3, 1, 2};
    double share = fl_selection_attention.join(o, 100, &sums);
    size_t i;

    sums.scores = 1000;
    ck_assert_double_eq_tol(fl_selection_attention.join(o, 100, &sums), 1000 * share, 1e-9);
    update(o, 1, a, 4, who, d, 3);
    update(o, 1, b, 4, who, d, 3);
    for (i = 0; i < 4; i++) {
        ck_assert_double_eq_tol(b[i], 1000 * a[i], 1e-9);
    }
    fl_options_free(o);
}

TEST(a_late_newcomer_keeps_the_proportions_of_the_others)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    struct fl_score_sums others = {.scores = .8 + .2, .samples = 100 + 100};
    double newcomer = fl_selection_attention.join(o, 200, &others);
    double sum_now = others.scores + newcomer;

    ck_assert_double_eq_tol(.8 / sum_now, .4, 1e-15);
    ck_assert_double_eq_tol(.2 / sum_now, .1, 1e-15);
    ck_assert_double_eq_tol(newcomer / sum_now, .5, 1e-15);
    fl_options_free(o);
}

TEST(attention_moves_as_computed_by_hand)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, "alpha=0.75", NULL);
    double a[4] = {.1, .2, .3, .4};
    uint32_t who[2] = {1, 3};
    double d[2] = {3, 1};

    /* A = .6, shares 3/4 and 1/4: .75*.2 + .25*.75*.6 and .75*.4 + .25*.25*.6. */
    update(o, 1, a, 4, who, d, 2);
    ck_assert_double_eq(a[0], .1);
    ck_assert_double_eq_tol(a[1], .2625, 1e-15);
    ck_assert_double_eq(a[2], .3);
    ck_assert_double_eq_tol(a[3], .3375, 1e-15);
    fl_options_free(o);
}

TEST(alpha_one_never_changes_attention)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, "alpha=1", NULL);
    double a[3] = {.2, .3, .5};
    const double before[3] = {.2, .3, .5};
    uint32_t who[3] = {0, 1, 2};
    double d[3] = {9, 1, 4};
    uint64_t t;

    for (t = 1; t <= 200; t++) {
        update(o, t, a, 3, who, d, 3);
    }
    ck_assert_mem_eq(a, before, sizeof(a));
    fl_options_free(o);
}

TEST(alpha_zero_with_everybody_is_the_share_of_distance)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, "alpha=0", NULL);
    double a[3] = {.2, .3, .5};
    uint32_t who[3] = {0, 1, 2};
    double d[3] = {1, 3, 4};

    update(o, 1, a, 3, who, d, 3);
    ck_assert_double_eq_tol(a[0], .125, 1e-15);
    ck_assert_double_eq_tol(a[1], .375, 1e-15);
    ck_assert_double_eq_tol(a[2], .5, 1e-15);
    fl_options_free(o);
}

TEST_EACH(distances_that_say_nothing_leave_attention_alone, 3)
{
    static const double d[][2] = {{0, 0}, {(double)NAN, 1}, {(double)INFINITY, 1}};
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    double a[3] = {.2, .3, .5};
    const double before[3] = {.2, .3, .5};
    uint32_t who[2] = {0, 2};
    double one = 5;

    update(o, 1, a, 3, who, d[_i], 2);
    ck_assert_mem_eq(a, before, sizeof(a));
    update(o, 1, a, 3, who, &one, 1);
    ck_assert_mem_eq(a, before, sizeof(a));
    update(o, 1, a, 3, NULL, NULL, 0);
    ck_assert_mem_eq(a, before, sizeof(a));
    fl_options_free(o);
}

/* It is the new model, or its share of the distance is 1; not even rounding. */
TEST(a_single_responder_changes_nothing_bit_for_bit)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, "alpha=0.7", NULL);
    struct fl_rng rng;
    uint32_t who = 0;
    double d = 3;
    int i;

    fl_rng_seed(&rng, 1);
    for (i = 0; i < 100; i++) {
        double a[2] = {fl_rng_unit(&rng), 0};
        double before = a[0];

        update(o, 1, a, 2, &who, &d, 1);
        ck_assert_mem_eq(&a[0], &before, sizeof(before));
    }
    fl_options_free(o);
}

/* Over random rounds with drop-outs. */
TEST_EACH(attention_sums_to_one_and_keeps_alpha_of_itself, 3)
{
    static const char *const alphas[] = {"alpha=0.9", "alpha=0.5", "alpha=0.01"};
    struct fl_options *o = options_of(&fl_selection_attention.policy, alphas[_i], NULL);
    double alpha = strtod(strchr(alphas[_i], '=') + 1, NULL);
    double n[20];
    double a[20];
    double old[20];
    double d[20];
    uint32_t who[20];
    struct fl_rng rng;
    uint64_t t;
    size_t i;

    fl_rng_seed(&rng, 99);
    for (i = 0; i < 20; i++) {
        n[i] = 1.0 + (double)fl_rng_below(&rng, 1000);
    }
    join_all(o, n, 20, a);
    for (t = 1; t <= 1000; t++) {
        size_t want = 1 + (size_t)fl_rng_below(&rng, 20);
        size_t k = 0;

        pick(&fl_selection_attention, o, a, 20, want, &rng, who);
        for (i = 0; i < want; i++) {
            if (fl_rng_unit(&rng) < .7) {
                who[k] = who[i];
                d[k++] = fl_rng_unit(&rng) < .1 ? 0 : fl_rng_unit(&rng);
            }
        }
        (void)memcpy(old, a, sizeof(a));
        update(o, t, a, 20, who, d, k);
        ck_assert_double_eq_tol(sum(a, 20), 1, 1e-12);
        for (i = 0; i < 20; i++) {
            ck_assert_double_gt(a[i], 0);
            ck_assert_double_ge(a[i], alpha * old[i] * (1 - 1e-12));
        }
    }
    fl_options_free(o);
}

TEST(equal_distances_contract_to_the_mean_inside_the_responders)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, "alpha=0.5", NULL);
    double a[4] = {.1, .3, .2, .4};
    uint32_t who[2] = {0, 1};
    double d[2] = {2, 2};
    uint64_t t;

    for (t = 1; t < 60; t++) {
        update(o, t, a, 4, who, d, 2);
    }
    ck_assert_double_eq_tol(a[0], .2, 1e-12);
    ck_assert_double_eq_tol(a[1], .2, 1e-12);
    ck_assert_double_eq(a[2], .2);
    ck_assert_double_eq(a[3], .4);
    fl_options_free(o);
}

TEST(permuting_clients_permutes_attention)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    double a[3] = {.2, .3, .5};
    double b[3] = {.5, .2, .3};
    uint32_t who_a[3] = {0, 1, 2};
    uint32_t who_b[3] = {0, 1, 2};
    double d_a[3] = {1, 2, 4};
    double d_b[3] = {4, 1, 2};

    update(o, 1, a, 3, who_a, d_a, 3);
    update(o, 1, b, 3, who_b, d_b, 3);
    ck_assert_double_eq_tol(a[0], b[1], 1e-15);
    ck_assert_double_eq_tol(a[1], b[2], 1e-15);
    ck_assert_double_eq_tol(a[2], b[0], 1e-15);
    fl_options_free(o);
}

TEST(the_floor_keeps_a_client_from_vanishing)
{
    struct fl_options *o =
        options_of(&fl_selection_attention.policy, "alpha=0", "floor=0.05", NULL);
    double a[2] = {.5, .5};
    uint32_t who[2] = {0, 1};
    double d[2] = {0, 1};

    update(o, 1, a, 2, who, d, 2);
    ck_assert_double_eq_tol(a[0], .05, 1e-15);
    ck_assert_double_eq_tol(sum(a, 2), 1, 1e-15);
    fl_options_free(o);
}

TEST(the_floor_takes_from_the_responders_alone_and_no_more_than_they_have)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, "alpha=0", "floor=0.1", NULL);
    double a[5] = {.2, .1, .1, .1, .5};
    double b[3] = {.04, .06, .9};
    uint32_t who[4] = {0, 1, 2, 3};
    double d[4] = {100, 20, 1, 0};

    update(o, 1, a, 5, who, d, 4);
    ck_assert_double_eq_tol(sum(a, 5), 1, 1e-15);
    ck_assert_double_eq(a[4], .5);
    ck_assert_double_eq_tol(a[1], .1, 1e-15); /* It fell below when it gave to the others. */
    ck_assert_double_eq_tol(a[0], .2, 1e-15);
    update(o, 1, b, 3, who, d, 2);
    ck_assert_double_eq_tol(b[0], .05, 1e-15); /* Together they have less than two floors. */
    ck_assert_double_eq_tol(b[1], .05, 1e-15);
    fl_options_free(o);
}

TEST_EACH(distances_come_from_reports_when_uploads_are_partial, 5)
{
    static const struct {
        const char *reference;
        bool partial;
        enum fl_distance expected;
    } rows[] = {
        {"reference=auto", false, FL_DISTANCE_NEW}, {"reference=auto", true, FL_DISTANCE_OLD},
        {"reference=old", false, FL_DISTANCE_OLD},  {"reference=old", true, FL_DISTANCE_OLD},
        {"reference=new", false, FL_DISTANCE_NEW},
    };
    struct fl_options *o = options_of(&fl_selection_attention.policy, rows[_i].reference, NULL);

    ck_assert_int_eq(fl_selection_attention.distance(o, rows[_i].partial), rows[_i].expected);
    fl_options_free(o);
}

TEST(the_distance_is_the_norm_over_the_units)
{
    float d[3] = {2, 3, 6};

    ck_assert_double_eq_tol(fl_distance_from_divergence(d, 3), 7, 1e-15);
    ck_assert_double_eq(fl_distance_from_divergence(d, 0), 0);
}

/* --- fractions, docs/algorithms.md#fractions --- */

TEST_EACH(the_schedule_costs_exactly_what_the_paper_prints, 6)
{
    static const struct {
        const char *every;
        uint64_t round;
        size_t units;
    } rows[] = {
        {"every=200", 423, 6690},  {"every=200", 761, 18440},  {"every=200", 683, 15320},
        {"every=300", 951, 20040}, {"every=300", 1485, 44250}, {"every=300", 1103, 26120},
    };
    struct fl_options *o = options_of(&fl_fraction_stepped.policy, rows[_i].every, NULL);
    size_t units = 0;
    uint64_t t;

    for (t = 1; t <= rows[_i].round; t++) {
        units += fl_fraction_count(fl_fraction_stepped.at(o, t), 100);
    }
    ck_assert_uint_eq(units, rows[_i].units);
    fl_options_free(o);
}

TEST_EACH(a_curve_goes_from_start_to_end_and_stays_there, 2)
{
    struct fl_options *o = options_of(&fl_fraction_curve.policy, "start=0.8", "rounds=101", NULL);
    uint64_t t;

    ck_assert_int_eq(fl_options_set(o, "end", "0.2", NULL), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "shape", _i == 0 ? "linear" : "cosine", NULL), FL_OK);
    for (t = 1; t <= 101; t++) {
        double x = (double)(t - 1) / 100;
        double s = _i == 0 ? x : (1 - cos(M_PI * x)) / 2;

        ck_assert_double_eq_tol(fl_fraction_curve.at(o, t), 0.8 - 0.6 * s, 1e-12);
    }
    ck_assert_double_eq(fl_fraction_curve.at(o, 1), 0.8);
    ck_assert_double_eq(fl_fraction_curve.at(o, 101), 0.2);
    ck_assert_double_eq(fl_fraction_curve.at(o, UINT64_MAX), 0.2);
    ck_assert_int_eq(fl_options_set(o, "rounds", "1", NULL), FL_OK);
    ck_assert_double_eq(fl_fraction_curve.at(o, 1), 0.2);
    fl_options_free(o);
}

/* What AdaFL's schedule is as a list. */
TEST(listed_fractions_hold_from_their_round_on)
{
    struct fl_options *o = options_of(&fl_fraction_listed.policy, "fractions=0.1,0.2,0.3,0.4,0.5",
                                      "rounds=1,201,401,601,801", NULL);
    struct fl_options *stepped = options_of(&fl_fraction_stepped.policy, NULL);
    uint64_t t;

    ck_assert_int_eq(fl_fraction_listed.policy.check(o, NULL), FL_OK);
    for (t = 1; t < 1200; t++) {
        ck_assert_double_eq_tol(fl_fraction_listed.at(o, t), fl_fraction_stepped.at(stepped, t),
                                1e-12);
    }
    ck_assert_double_eq(fl_fraction_listed.at(o, UINT64_MAX), 0.5);
    fl_options_free(o);
    fl_options_free(stepped);
    o = options_of(&fl_fraction_listed.policy, NULL);
    ck_assert_int_eq(fl_fraction_listed.policy.check(o, NULL), FL_OK);
    ck_assert_double_eq(fl_fraction_listed.at(o, 3), 1);
    fl_options_free(o);
}

TEST_EACH(a_list_of_fractions_that_has_no_course_is_refused, 6)
{
    static const struct {
        const char *fractions, *rounds, *message;
    } rows[] = {
        {"fractions=0.1,0.2", "rounds=1",
         "as many fractions as rounds, at least one, found 2 and 1"},
        {"fractions=0.1,0.2", "rounds=2,3", "the first entry is 2, expected 1"},
        {"fractions=0.1,0.2", "rounds=1,1", "entry 2 is 1, expected more than the one before, 1"},
        {"fractions=0.1,1.5", "rounds=1,9",
         "fractions: entry 2 is '1.5', expected a number from 0"},
        {"fractions=0.1,x", "rounds=1,9", "fractions: entry 2 is 'x'"},
        {"fractions=-0.1", "rounds=1", "fractions: entry 1 is '-0.1'"},
    };
    struct fl_options *o =
        options_of(&fl_fraction_listed.policy, rows[_i].fractions, rows[_i].rounds, NULL);
    struct fl_err err = {.code = FL_OK};

    ck_assert_int_eq(fl_fraction_listed.policy.check(o, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, rows[_i].message) != NULL, "%s", err.msg);
    fl_options_free(o);
}

TEST(the_fraction_stays_at_its_end)
{
    struct fl_options *o = options_of(&fl_fraction_stepped.policy, NULL);

    ck_assert_double_eq(fl_fraction_stepped.at(o, 1), .1);
    ck_assert_double_eq(fl_fraction_stepped.at(o, 200), .1);
    ck_assert_double_eq_tol(fl_fraction_stepped.at(o, 201), .2, 1e-15);
    ck_assert_double_eq(fl_fraction_stepped.at(o, 1001), .5);
    ck_assert_double_eq(fl_fraction_stepped.at(o, UINT64_MAX), .5);
    fl_options_free(o);
    o = options_of(&fl_fraction_stepped.policy, "start=0.3", "end=0.3", NULL);
    ck_assert_double_eq(fl_fraction_stepped.at(o, 9999), .3);
    fl_options_free(o);
    o = options_of(&fl_fraction_constant.policy, "fraction=0.25", NULL);
    ck_assert_double_eq(fl_fraction_constant.at(o, 77), .25);
    fl_options_free(o);
}

TEST(counts_are_rounded_and_at_least_one)
{
    ck_assert_uint_eq(fl_fraction_count(.29, 100), 29);
    ck_assert_uint_eq(fl_fraction_count(.5, 5), 3);
    ck_assert_uint_eq(fl_fraction_count(.001, 100), 1);
    ck_assert_uint_eq(fl_fraction_count(0, 100), 1);
    ck_assert_uint_eq(fl_fraction_count(1, 7), 7);
}

/* --- share_cap --- */

static void capped_pick(const double *scores, size_t n, size_t want, double cap, uint64_t seed,
                        uint32_t *chosen, uint8_t *capped)
{
    struct fl_options *o = options_of(&fl_selection_attention.policy, NULL);
    struct fl_select_input in = {.n = n,
                                 .scores = scores,
                                 .samples = scores,
                                 .want = want,
                                 .share_cap = cap,
                                 .capped = capped};
    struct fl_rng rng;

    fl_rng_key(&rng, seed, FL_RNG_SELECT, 1, 1);
    ck_assert_int_eq(fl_selection_attention.pick(o, &in, &rng, chosen), FL_OK);
    fl_options_free(o);
}

/* 20 clients of which one has most of the attention, and of which 5 are drawn: a client with a
   probability of 1.5 / 20 in the first draw is never more probable in a later one. */
TEST(attention_draws_one_client_at_most_share_cap_times_as_often_as_a_fair_one)
{
    double scores[20];
    uint32_t chosen[5];
    uint8_t capped[20];
    unsigned seen[2] = {0};
    unsigned first = 0;
    uint64_t seed;
    size_t i;

    for (i = 0; i < 20; i++) {
        scores[i] = i == 7 ? 1000 : 1;
    }
    for (seed = 0; seed < 40000; seed++) {
        for (i = 0; i < 2; i++) {
            capped_pick(scores, 20, 5, i == 0 ? 0 : 1.5, seed, chosen, capped);
            seen[i] += chosen[0] == 7 || chosen[1] == 7 || chosen[2] == 7 || chosen[3] == 7 ||
                       chosen[4] == 7;
            ck_assert_uint_eq(capped[7], i);
        }
        capped_pick(scores, 20, 1, 1.5, seed, chosen, NULL);
        first += chosen[0] == 7;
    }
    ck_assert_uint_gt(seen[0], 39500);
    /* Four deviations above 1.5 * 5 / 20 of the rounds, and the exact law of one draw. */
    ck_assert_uint_le(seen[1], 15000 + 4 * 97);
    ck_assert_uint_ge(seen[1], 13000);
    ck_assert_double_eq_tol(first, 40000 * .075, 4 * sqrt(40000 * .075 * .925));
}

TEST(attention_within_share_cap_draws_the_same_clients)
{
    double scores[20];
    uint32_t chosen[5], same[5];
    uint8_t capped[20];
    uint64_t seed;
    size_t i;

    for (i = 0; i < 20; i++) {
        scores[i] = 1 + .02 * (double)i;
    }
    for (seed = 0; seed < 200; seed++) {
        capped_pick(scores, 20, 5, 0, seed, chosen, capped);
        capped_pick(scores, 20, 5, 1.5, seed, same, capped);
        ck_assert_mem_eq(chosen, same, sizeof(same));
        for (i = 0; i < 20; i++) {
            ck_assert_uint_eq(capped[i], 0);
        }
    }
}

/* Shares by samples and equal ones do not depend on what clients send in a round. */
TEST_EACH(share_cap_changes_no_other_selection, 2)
{
    struct fl_options *o = options_of(&all[_i]->policy, NULL);
    double samples[6] = {1000, 1, 1, 1, 1, 1};
    struct fl_select_input in = {.n = 6, .scores = samples, .samples = samples, .want = 2};
    uint32_t chosen[2], same[2];
    struct fl_rng rng;
    uint64_t seed;

    for (seed = 0; seed < 100; seed++) {
        in.share_cap = 0;
        fl_rng_key(&rng, seed, FL_RNG_SELECT, 1, 1);
        ck_assert_int_eq(all[_i]->pick(o, &in, &rng, chosen), FL_OK);
        in.share_cap = 1.5;
        fl_rng_key(&rng, seed, FL_RNG_SELECT, 1, 1);
        ck_assert_int_eq(all[_i]->pick(o, &in, &rng, same), FL_OK);
        ck_assert_mem_eq(chosen, same, sizeof(same));
    }
    fl_options_free(o);
}
