/* The arithmetic of simulated attackers, against numbers worked out by hand. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "tests/lib/suites.h"
#include "tools/fl_sim/attack/attack.h"

#define NEAR(found, expected, tolerance) \
    ck_assert_double_eq_tol((double)(found), (double)(expected), tolerance)

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

TEST(sign_flip_is_minus_scale_and_scaling_scale_times_the_update)
{
    const enum fl_attack_kind kinds[] = {FL_ATTACK_KIND_SIGN_FLIP, FL_ATTACK_KIND_SCALING};
    size_t k;

    for (k = 0; k < 2; k++) {
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
