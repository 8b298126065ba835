/* A training loss that rises, and those that only vary. */
#include <check.h>
#include <math.h>

#include "server/core/loss_trend.h"
#include "tests/lib/suites.h"

static void add(struct fl_loss_trend *t, uint64_t *round, int rounds, double loss)
{
    while (rounds-- > 0) {
        fl_loss_trend_add(t, ++*round, loss);
    }
}

TEST(a_mean_above_twice_the_lowest_one_rises_until_it_falls)
{
    struct fl_loss_trend t = {.n = 0};
    uint64_t round = 0;

    add(&t, &round, 10, 2.0);
    add(&t, &round, 10, 1.0);
    ck_assert_uint_eq(t.lowest_round, 20);
    add(&t, &round, 10, 2.0); /* Twice is not above. */
    ck_assert(!fl_loss_trend_rises(&t));
    add(&t, &round, 1, 2.1);
    ck_assert(fl_loss_trend_rises(&t));
    ck_assert_uint_eq(t.lowest_round, 20);
    add(&t, &round, 2, 1.5);
    ck_assert(!fl_loss_trend_rises(&t));
}

TEST(one_bad_round_is_no_rise)
{
    struct fl_loss_trend t = {.n = 0};
    uint64_t round = 0;

    add(&t, &round, 20, 1.0);
    add(&t, &round, 1, 10.0);
    ck_assert(!fl_loss_trend_rises(&t));
    add(&t, &round, 1, 10.0);
    ck_assert(fl_loss_trend_rises(&t));
}

TEST(losses_near_zero_vary)
{
    struct fl_loss_trend t = {.n = 0};
    uint64_t round = 0;

    add(&t, &round, 10, 0.01);
    add(&t, &round, 10, 0.5);
    ck_assert(!fl_loss_trend_rises(&t));
    add(&t, &round, 10, 0.52);
    ck_assert(fl_loss_trend_rises(&t));
}

TEST(nothing_is_known_before_ten_rounds_and_of_losses_that_are_none)
{
    struct fl_loss_trend t = {.n = 0};
    uint64_t round = 0;

    add(&t, &round, 9, 1.0);
    add(&t, &round, 50, (double)NAN);
    add(&t, &round, 50, (double)INFINITY);
    ck_assert_uint_eq(t.lowest_round, 0);
    ck_assert(!fl_loss_trend_rises(&t));
    add(&t, &round, 1, 1.0);
    ck_assert_uint_eq(t.lowest_round, 110);
}
