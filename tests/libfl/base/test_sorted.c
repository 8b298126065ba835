/* libfl/base/sorted.h */
#include <check.h>

#include "libfl/base/sorted.h"
#include "tests/lib/suites.h"

TEST(of_two_in_the_middle_the_smaller_one_is_the_lower_median)
{
    double odd[] = {5, -1, 3};
    double even[] = {4, 1e300, -2, 7};
    double one[] = {9};

    ck_assert_double_eq(fl_lower_median(odd, 3), 3);
    ck_assert_double_eq(fl_lower_median(even, 4), 4);
    ck_assert_double_eq(fl_lower_median(one, 1), 9);
}

TEST(values_are_in_rising_order_afterwards)
{
    double x[] = {3, -1, 3, 0};

    fl_sort(x, 4);
    ck_assert_double_eq(x[0], -1);
    ck_assert_double_eq(x[1], 0);
    ck_assert_double_eq(x[2], 3);
    ck_assert_double_eq(x[3], 3);
}
