/* round.norm_clip (docs/algorithms.md#an-update-that-is-longer-than-others): factors of updates by
 * their norms. */
#include <check.h>
#include <math.h>

#include "server/work/clip.h"
#include "tests/lib/suites.h"

enum { N = 5 };

static size_t clipped(const double *rms, size_t n, double clip, double *factors)
{
    struct fl_participant_rec parts[N] = {{.client = 0}};
    size_t i;

    for (i = 0; i < n; i++) {
        parts[i].rms[0] = rms[i];
    }
    return fl_clip_factors(parts, n, clip, factors);
}

TEST(an_update_over_the_limit_has_the_norm_of_the_limit_and_the_others_stay)
{
    const double rms[N] = {1, 2, 100, 3, 8.5};
    double f[N];

    ck_assert_uint_eq(clipped(rms, N, 3, f), 1); /* the median is 3, the limit 9 */
    ck_assert_double_eq(f[2], 0.09);
    ck_assert_double_eq(f[0], 1);
    ck_assert_double_eq(f[4], 1);
}

TEST(two_updates_of_the_largest_floats_are_bounded_by_the_median_of_five)
{
    const double rms[N] = {3e38, 1, 1, 3e38, 1};
    double f[N];

    ck_assert_uint_eq(clipped(rms, N, 4, f), 2);
    ck_assert_double_eq_tol(f[0] * rms[0], 4, 1e-12);
    ck_assert_double_eq_tol(f[3] * rms[3], 4, 1e-12);
}

TEST(of_two_updates_none_is_known_to_be_too_long)
{
    const double rms[N] = {1, 1000};
    double f[N];

    ck_assert_uint_eq(clipped(rms, 2, 4, f), 0);
    ck_assert_double_eq(f[1], 1);
}

TEST(updates_of_zero_are_no_measure)
{
    const double rms[N] = {0, 0, 0, 2, 1000};
    double f[N];

    ck_assert_uint_eq(clipped(rms, N, 4, f), 0);
    ck_assert_double_eq(f[4], 1);
}

TEST(without_a_limit_nothing_is_shortened)
{
    const double rms[N] = {1, 1, 1, 1, 1e30};
    double f[N];

    ck_assert_uint_eq(clipped(rms, N, 0, f), 0);
    ck_assert_double_eq(f[4], 1);
}
