/* When the training loss has stopped to fall. */
#include <check.h>
#include <math.h>

#include "libfl/strategy/plateau.h"
#include "tests/lib/suites.h"

/* Rounds 1 to n with the losses of `loss`; the round of the plateau. */
static uint64_t plateau_of(uint64_t n, double (*loss)(uint64_t round))
{
    struct fl_plateau p = {.n = 0};
    uint64_t round;

    for (round = 1; round <= n; round++) {
        fl_plateau_add(&p, round, loss(round));
    }
    return p.round;
}

static double falls(uint64_t round)
{
    return pow(0.998, (double)round);
}

static double falls_too_slowly(uint64_t round)
{
    return pow(0.9995, (double)round);
}

static double falls_until_50(uint64_t round)
{
    return round < 50 ? pow(0.97, (double)round) : pow(0.97, 50);
}

static double falls_with_noise(uint64_t round)
{
    return pow(0.99, (double)round) * (round % 3 == 0 ? 1.5 : 0.9);
}

TEST(a_loss_that_falls_by_1_percent_in_20_rounds_has_no_plateau)
{
    ck_assert_uint_eq(plateau_of(2000, falls), 0);
    ck_assert_uint_eq(plateau_of(500, falls_with_noise), 0);
}

/* The first mean is that of round 10. */
TEST(a_loss_that_falls_more_slowly_has_one_after_20_rounds)
{
    ck_assert_uint_eq(plateau_of(29, falls_too_slowly), 0);
    ck_assert_uint_eq(plateau_of(200, falls_too_slowly), 30);
}

/* Means of ten rounds fall until round 58 by 1 % or more in all. */
TEST(a_plateau_is_found_once_20_rounds_after_the_last_gain)
{
    ck_assert_uint_eq(plateau_of(300, falls_until_50), 78);
}

/* A loss that stays: the first mean is that of round 10, and again that of round 40. */
TEST(after_a_plateau_the_next_one_is_looked_for_in_the_rounds_that_follow)
{
    struct fl_plateau p = {.n = 0};
    uint64_t round;

    for (round = 1; round <= 100; round++) {
        fl_plateau_add(&p, round, 0.5);
        ck_assert_uint_eq(p.count, round / 30);
        ck_assert_uint_eq(p.newest, round / 30 * 30);
        ck_assert_uint_eq(p.round, round < 30 ? 0 : 30);
    }
}

TEST(rounds_without_a_loss_are_left_out)
{
    static const double none[] = {0, NAN, INFINITY, -1};
    struct fl_plateau p = {.n = 0};
    uint64_t round;

    for (round = 1; round <= 200; round++) {
        fl_plateau_add(&p, round, none[round % 4]);
    }
    ck_assert_uint_eq(p.n, 0);
    ck_assert_uint_eq(p.round, 0);
}
