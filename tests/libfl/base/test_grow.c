/* Lists that double: elements stay, and without memory nothing changes. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "libfl/base/err.h"
#include "libfl/base/grow.h"
#include "tests/lib/suites.h"

TEST(elements_stay_when_the_list_grows)
{
    uint32_t *list = NULL;
    size_t cap = 0;
    uint32_t i;

    for (i = 0; i < 100; i++) {
        ck_assert_int_eq(fl_grow(&list, &cap, i, sizeof(*list)), FL_OK);
        ck_assert_uint_gt(cap, i);
        list[i] = i;
    }
    for (i = 0; i < 100; i++) {
        ck_assert_uint_eq(list[i], i);
    }
    free(list);
}

TEST(new_elements_are_zero_up_to_the_index)
{
    uint64_t *list = NULL;
    size_t n = 0;
    size_t i;

    ck_assert_int_eq(fl_grow_zeroed(&list, &n, 40, sizeof(*list)), FL_OK);
    ck_assert_uint_gt(n, 40);
    list[40] = 7;
    ck_assert_int_eq(fl_grow_zeroed(&list, &n, 200, sizeof(*list)), FL_OK);
    for (i = 0; i <= 200; i++) {
        ck_assert_uint_eq(list[i], i == 40 ? 7 : 0);
    }
    free(list);
}

TEST(a_list_that_is_too_long_is_refused_and_unchanged)
{
    char *list = NULL;
    size_t cap = SIZE_MAX / 4;

    ck_assert_int_eq(fl_grow(&list, &cap, cap, 64), FL_ENOMEM);
    ck_assert_ptr_null(list);
    ck_assert_uint_eq(cap, SIZE_MAX / 4);
}
