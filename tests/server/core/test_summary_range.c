/* How large the values of a data summary may be, beside those of the others. */

#include <check.h>
#include <math.h>

#include "server/core/summary_range.h"
#include "tests/lib/suites.h"

#define MAX 8

static double bounds[MAX];

static void measure(const double *largest, size_t n, double factor)
{
    ck_assert_int_eq(fl_summary_bounds(largest, n, factor, bounds), FL_OK);
}

TEST(fewer_than_three_summaries_have_no_bound)
{
    const double largest[] = {1.0, 3e38};

    measure(largest, 0, 10.0);
    measure(largest, 1, 10.0);
    ck_assert(isinf(bounds[0]));
    measure(largest, 2, 10.0);
    ck_assert(isinf(bounds[0]) && isinf(bounds[1]));
}

TEST(the_bound_is_that_many_times_the_median_of_the_others)
{
    const double largest[] = {4.0, 1.0, 3e38, 2.0, 7.0};

    measure(largest, 5, 10.0);
    ck_assert_double_eq(bounds[0], 45.0); /* of 1, 2, 7, 3e38 */
    ck_assert_double_eq(bounds[1], 55.0); /* of 2, 4, 7, 3e38 */
    ck_assert_double_eq(bounds[2], 30.0); /* of 1, 2, 4, 7 */
    ck_assert_double_eq(bounds[3], 55.0); /* of 1, 4, 7, 3e38 */
    ck_assert_double_eq(bounds[4], 30.0); /* of 1, 2, 4, 3e38 */
    measure(largest, 4, 2.0);
    ck_assert_double_eq(bounds[0], 4.0); /* of 1, 2, 3e38 */
    ck_assert_double_eq(bounds[2], 4.0); /* of 1, 2, 4 */
}

TEST(equal_summaries_are_others_of_each_other)
{
    const double largest[] = {2.0, 2.0, 2.0, 6.0};

    measure(largest, 4, 10.0);
    ck_assert_double_eq(bounds[0], 20.0);
    ck_assert_double_eq(bounds[2], 20.0);
    ck_assert_double_eq(bounds[3], 20.0);
}

/* Too large it does not pass; too small it does not make the others too large. */
TEST_EACH(one_false_summary_among_three_decides_nothing, 3)
{
    static const double false_ones[] = {3e38, 1e-30, 0.0};
    double largest[] = {1.0, 1.5, false_ones[_i]};

    measure(largest, 3, 10.0);
    ck_assert(largest[0] <= bounds[0] && largest[1] <= bounds[1]);
    ck_assert((largest[2] > bounds[2]) == (_i == 0));
}

TEST(the_largest_numbers_there_are_make_a_finite_median)
{
    const double largest[] = {1.7e308, 1.7e308, 1.7e308};

    measure(largest, 3, 0.5);
    ck_assert_double_eq(bounds[1], 0.85e308);
}

TEST(without_a_factor_or_values_there_is_no_bound)
{
    const double largest[] = {1.0, 2.0, 3e38};
    const double zeros[] = {0.0, 0.0, 1.0};

    measure(largest, 3, 0.0);
    ck_assert(isinf(bounds[2]));
    measure(zeros, 3, 10.0);
    ck_assert(isinf(bounds[2]));
}
