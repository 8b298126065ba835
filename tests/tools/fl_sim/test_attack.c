/* The arithmetic of simulated attackers, against numbers worked out by hand and slow searches. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/lib/suites.h"
#include "tools/fl_sim/attack/attack.h"

#define NEAR(found, expected, tolerance) \
    ck_assert_double_eq_tol((double)(found), (double)(expected), tolerance)

/* Three honest updates of two entries: mean (3, 2), deviations sqrt(8/3) and sqrt(2/3). */
#define HONEST 3
#define N      2
static const float one[N] = {1, 2};
static const float two[N] = {3, 1};
static const float three[N] = {5, 3};
static const float *const honest[HONEST] = {one, two, three};
static const struct fl_attack_view view = {
    .honest = honest, .n_honest = HONEST, .n_attackers = 2, .n = N};

static void collude(const struct fl_attack *attack, float ret[N])
{
    ck_assert_int_eq(fl_attack_collude(attack, &view, ret), FL_OK);
}

/* --- who is an attacker --- */

TEST(the_number_of_attackers_is_the_share_rounded_down)
{
    ck_assert_uint_eq(fl_attack_count(0.2, 10), 2);
    ck_assert_uint_eq(fl_attack_count(0.29, 100), 29);
    ck_assert_uint_eq(fl_attack_count(0.19, 10), 1);
    ck_assert_uint_eq(fl_attack_count(0.0999, 10), 0);
    ck_assert_uint_eq(fl_attack_count(1, 7), 7);
    ck_assert_uint_eq(fl_attack_count(0, 7), 0);
}

TEST(more_attackers_with_one_seed_contain_fewer_and_another_seed_has_others)
{
    bool few[50];
    bool many[50];
    bool other[50];
    size_t n = 0;
    size_t i;

    ck_assert_int_eq(fl_attack_choose(1, 50, 10, few), FL_OK);
    ck_assert_int_eq(fl_attack_choose(1, 50, 20, many), FL_OK);
    ck_assert_int_eq(fl_attack_choose(2, 50, 10, other), FL_OK);
    for (i = 0; i < 50; i++) {
        n += few[i];
        ck_assert(!few[i] || many[i]);
    }
    ck_assert_uint_eq(n, 10);
    ck_assert_int_ne(memcmp(few, other, sizeof(few)), 0);
}

/* --- a client's own update --- */

TEST(sign_flip_is_minus_scale_and_scaling_and_backdoor_are_scale_times_the_update)
{
    const enum fl_attack_kind kinds[] = {FL_ATTACK_KIND_SIGN_FLIP, FL_ATTACK_KIND_SCALING,
                                         FL_ATTACK_KIND_BACKDOOR};
    size_t k;

    for (k = 0; k < 3; k++) {
        const struct fl_attack attack = {.kind = kinds[k], .scale = 3};
        const float sign = kinds[k] == FL_ATTACK_KIND_SIGN_FLIP ? -1.0f : 1.0f;
        float update[3] = {1, -2, 0.5f};

        fl_attack_alter(&attack, NULL, update, 3);
        NEAR(update[0], sign * 3, 1e-30);
        NEAR(update[1], sign * -6, 1e-30);
        NEAR(update[2], sign * 1.5f, 1e-30);
    }
}

static double rms(const float *x, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sqrt(sum / (double)n);
}

TEST(gaussian_noise_has_scale_times_the_rms_of_the_honest_update_and_a_free_rider_an_absolute_one)
{
    struct fl_attack attack = {.kind = FL_ATTACK_KIND_GAUSSIAN, .scale = 2};
    static float update[20000];
    struct fl_rng rng;
    size_t i;

    for (i = 0; i < 20000; i++) {
        update[i] = i % 2 == 0 ? 0.3f : -0.1f; /* RMS sqrt(0.05). */
    }
    fl_rng_seed(&rng, 5);
    fl_attack_alter(&attack, &rng, update, 20000);
    NEAR(rms(update, 20000), 2 * sqrt(0.05), 0.02);
    attack = (struct fl_attack){.kind = FL_ATTACK_KIND_FREE_RIDER, .scale = 1e-6};
    fl_attack_alter(&attack, &rng, update, 20000);
    NEAR(rms(update, 20000), 1e-6, 5e-8);
    attack.scale = 0;
    fl_attack_alter(&attack, &rng, update, 20000);
    NEAR(rms(update, 20000), 0, 1e-30);
}

TEST(an_attack_on_the_claims_leaves_the_update_and_an_attack_on_the_update_the_claims)
{
    struct fl_attack attack = {.kind = FL_ATTACK_KIND_FALSE_SAMPLES, .scale = 2.5};
    float update[1] = {7};

    fl_attack_alter(&attack, NULL, update, 1);
    NEAR(update[0], 7, 1e-30);
    ck_assert_uint_eq(fl_attack_claimed_samples(&attack, 10), 25);
    NEAR(fl_attack_claimed_divergence(&attack, 3), 3, 1e-30);
    attack.scale = 0;
    ck_assert_uint_eq(fl_attack_claimed_samples(&attack, 10), 1);
    attack = (struct fl_attack){.kind = FL_ATTACK_KIND_INFLATED_DIVERGENCE, .scale = 4};
    NEAR(fl_attack_claimed_divergence(&attack, 3), 12, 1e-30);
    ck_assert_uint_eq(fl_attack_claimed_samples(&attack, 10), 10);
    attack.kind = FL_ATTACK_KIND_SIGN_FLIP;
    NEAR(fl_attack_claimed_divergence(&attack, 3), 3, 1e-30);
}

/* --- updates of all attackers --- */

TEST(z_of_alie_is_that_of_the_papers_formula)
{
    /* n = 50, m = 24: s = 2, (50 - 24 - 2) / 26 = 0.923, z = 1.43. */
    NEAR(fl_attack_alie_z(50, 24), 1.4260769, 1e-6);
    /* n = 20, m = 8: s = 3, 9 / 12 = 0.75, the upper quartile. */
    NEAR(fl_attack_alie_z(20, 8), 0.6744898, 1e-6);
    /* n = 10, m = 2: s = 4, 4 / 8 = 0.5. */
    NEAR(fl_attack_alie_z(10, 2), 0, 1e-30);
    NEAR(fl_attack_alie_z(10, 1), 0, 1e-30);
    /* A majority needs no supporters: (4 - 1) / 4. */
    NEAR(fl_attack_alie_z(10, 6), 0.6744898, 1e-6);
}

TEST(alie_is_mean_plus_z_deviations_ipm_minus_epsilon_means_and_imitation_scale_means)
{
    struct fl_attack attack = {.kind = FL_ATTACK_KIND_ALIE, .z = 1.5};
    float ret[N];

    collude(&attack, ret);
    NEAR(ret[0], 3 + 1.5 * sqrt(8.0 / 3), 1e-6);
    NEAR(ret[1], 2 + 1.5 * sqrt(2.0 / 3), 1e-6);
    attack.z = (double)NAN; /* n = 5, m = 2: s = 1, 2 / 3. */
    collude(&attack, ret);
    NEAR(ret[0], 3 + 0.4307273 * sqrt(8.0 / 3), 1e-6);
    attack = (struct fl_attack){.kind = FL_ATTACK_KIND_IPM, .epsilon = 0.5};
    collude(&attack, ret);
    NEAR(ret[0], -1.5, 1e-30);
    NEAR(ret[1], -1, 1e-30);
    attack = (struct fl_attack){.kind = FL_ATTACK_KIND_IMITATION, .scale = 4};
    collude(&attack, ret);
    NEAR(ret[0], 12, 1e-30);
    NEAR(ret[1], 8, 1e-30);
}

static double distance_sq(const float *a, const float *b)
{
    double x = (double)a[0] - (double)b[0];
    double y = (double)a[1] - (double)b[1];

    return x * x + y * y;
}

/* Does mean + gamma p keep the bound of Min-Max, or of Min-Sum? Squared distances of the honest
   updates: 5, 17, 8; the sums of each to all others: 22, 13, 25. */
static bool keeps_bound(enum fl_attack_kind kind, const double p[N], double gamma)
{
    const float at[N] = {(float)(3 + gamma * p[0]), (float)(2 + gamma * p[1])};
    double most = 0;
    double sum = 0;
    size_t k;

    for (k = 0; k < HONEST; k++) {
        double d = distance_sq(at, honest[k]);

        most = d > most ? d : most;
        sum += d;
    }
    return kind == FL_ATTACK_KIND_MIN_MAX ? most <= 17 : sum <= 25;
}

TEST(min_max_and_min_sum_go_as_far_as_their_bound_allows)
{
    const double mean_norm = sqrt(13);
    const double p[3][N] = {
        {-sqrt(8.0 / 3), -sqrt(2.0 / 3)}, {-3 / mean_norm, -2 / mean_norm}, {-1, -1}};
    int kind;
    int k;

    for (kind = FL_ATTACK_KIND_MIN_MAX; kind <= FL_ATTACK_KIND_MIN_SUM; kind++) {
        for (k = 0; k < 3; k++) {
            const struct fl_attack attack = {.kind = (enum fl_attack_kind)kind,
                                             .perturbation = (enum fl_attack_perturbation)k};
            double gamma = 0;
            float ret[N];

            while (keeps_bound(attack.kind, p[k], gamma + 1e-4)) {
                gamma += 1e-4;
            }
            ck_assert_double_gt(gamma, 0.3);
            collude(&attack, ret);
            NEAR(ret[0], 3 + gamma * p[k][0], 1e-3);
            NEAR(ret[1], 2 + gamma * p[k][1], 1e-3);
        }
    }
}

TEST(mimic_copies_the_client_that_is_furthest_along_the_direction_of_largest_variance)
{
    const struct fl_attack attack = {.kind = FL_ATTACK_KIND_MIMIC};
    static const float a[N] = {0, 1};
    static const float b[N] = {1, -3};
    static const float c[N] = {9, 1}; /* Furthest along x, where the variance is largest. */
    static const float d[N] = {2, 2};
    const float *const four[] = {a, b, c, d};
    const struct fl_attack_view wide = {.honest = four, .n_honest = 4, .n_attackers = 1, .n = N};
    float ret[N];

    ck_assert_int_eq(fl_attack_collude(&attack, &wide, ret), FL_OK);
    ck_assert_mem_eq(ret, c, sizeof(ret));
}

TEST(of_one_honest_update_or_equal_ones_colluding_attackers_send_that_one)
{
    static const float *const equal[] = {two, two};
    const enum fl_attack_kind kinds[] = {FL_ATTACK_KIND_ALIE, FL_ATTACK_KIND_MIN_MAX,
                                         FL_ATTACK_KIND_MIN_SUM, FL_ATTACK_KIND_MIMIC,
                                         FL_ATTACK_KIND_TAILORED};
    size_t k;
    size_t n;

    for (n = 1; n <= 2; n++) {
        for (k = 0; k < 5; k++) {
            const struct fl_attack attack = {.kind = kinds[k], .z = 2};
            const struct fl_attack_view same = {
                .honest = equal, .n_honest = n, .n_attackers = 1, .n = N};
            float ret[N];

            ck_assert_int_eq(fl_attack_collude(&attack, &same, ret), FL_OK);
            ck_assert_mem_eq(ret, two, sizeof(ret));
        }
    }
}
