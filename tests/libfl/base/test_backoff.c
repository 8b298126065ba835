#include <check.h>
#include <limits.h>

#include "libfl/base/backoff.h"
#include "tests/lib/suites.h"

static const struct fl_backoff doubled = {
    .first_ms = 1000, .cap_ms = 60000, .factor = 2, .jitter = 20};

TEST(waits_double_up_to_the_cap)
{
    static const uint64_t want[] = {1000, 1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000};
    unsigned i;

    for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        ck_assert_uint_eq(fl_backoff_base(&doubled, i), want[i]);
    }
    ck_assert_uint_eq(fl_backoff_base(&doubled, UINT_MAX), 60000);
}

TEST(any_factor_grows_without_overflow)
{
    const struct fl_backoff tripled = {.first_ms = 7, .cap_ms = UINT64_MAX, .factor = 3};
    const struct fl_backoff constant = {.first_ms = 7, .cap_ms = 100, .factor = 1};

    ck_assert_uint_eq(fl_backoff_base(&tripled, 3), 63);
    ck_assert_uint_eq(fl_backoff_base(&tripled, 500), UINT64_MAX);
    ck_assert_uint_eq(fl_backoff_base(&constant, UINT_MAX), 7);
}

TEST(a_cap_below_the_first_wait_is_every_wait)
{
    const struct fl_backoff rule = {.first_ms = 1000, .cap_ms = 300, .factor = 2};

    ck_assert_uint_eq(fl_backoff_base(&rule, 1), 300);
    ck_assert_uint_eq(fl_backoff_base(&rule, 9), 300);
}

TEST(jitter_stays_in_its_bounds_and_reaches_them)
{
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    struct fl_rng rng;
    unsigned i;

    fl_rng_seed(&rng, 7);
    for (i = 0; i < 20000; i++) {
        uint64_t wait = fl_backoff_wait(&doubled, 1, &rng);

        least = wait < least ? wait : least;
        most = wait > most ? wait : most;
    }
    ck_assert_uint_eq(least, 800);
    ck_assert_uint_eq(most, 1200);
}

TEST(jitter_of_one_side_does_not_cross_the_wait)
{
    struct fl_rng rng;
    unsigned i;

    fl_rng_seed(&rng, 7);
    for (i = 0; i < 1000; i++) {
        uint64_t later = fl_backoff_jitter(1000, 0, 20, &rng);
        uint64_t sooner = fl_backoff_jitter(1000, 20, 0, &rng);

        ck_assert(later >= 1000 && later <= 1200);
        ck_assert(sooner >= 800 && sooner <= 1000);
    }
    ck_assert_uint_eq(fl_backoff_jitter(0, 100, 100, &rng), 0);
    ck_assert_uint_le(fl_backoff_jitter(UINT64_MAX / 2 - 1, 100, 100, &rng), UINT64_MAX - 2);
}

TEST(the_same_seed_draws_the_same_waits)
{
    struct fl_rng a, b, c;
    unsigned differ = 0;
    unsigned i;

    fl_rng_seed(&a, 1);
    fl_rng_seed(&b, 1);
    fl_rng_seed(&c, 2);
    for (i = 1; i < 20; i++) {
        uint64_t wait = fl_backoff_wait(&doubled, i, &a);

        ck_assert_uint_eq(wait, fl_backoff_wait(&doubled, i, &b));
        differ += wait != fl_backoff_wait(&doubled, i, &c) ? 1 : 0;
    }
    ck_assert_uint_gt(differ, 15);
}
