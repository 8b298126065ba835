/* The labels of clients: what the newest Hello said, and no more than there is room for. */
#include <check.h>
#include <string.h>

#include "server/runtime/labels.h"
#include "tests/lib/suites.h"

static struct fl_pair pair_of(const char *key, const char *value)
{
    return (struct fl_pair){.key = fl_wire_lend(key), .value = fl_wire_lend(value)};
}

TEST(the_labels_of_the_newest_hello_replace_those_before)
{
    struct fl_labels labels = {.n = 0};
    struct fl_pair pairs[] = {pair_of("site", "north"), pair_of("rack", "")};

    ck_assert_ptr_null(fl_labels_find(&labels, 100));
    ck_assert_int_eq(fl_labels_set(&labels, 100, pairs, 2, false), FL_OK);
    ck_assert_ptr_null(fl_labels_find(&labels, 99));
    ck_assert_uint_eq(fl_labels_find(&labels, 100)->n, 2);
    ck_assert_str_eq(fl_labels_find(&labels, 100)->pairs[0].key, "site");
    ck_assert_str_eq(fl_labels_find(&labels, 100)->pairs[0].value, "north");
    ck_assert_str_eq(fl_labels_find(&labels, 100)->pairs[1].value, "");
    pairs[0] = pair_of("site", "south");
    ck_assert_int_eq(fl_labels_set(&labels, 100, pairs, 1, false), FL_OK);
    ck_assert_uint_eq(fl_labels_find(&labels, 100)->n, 1);
    ck_assert_str_eq(fl_labels_find(&labels, 100)->pairs[0].value, "south");
    ck_assert_int_eq(fl_labels_set(&labels, 100, NULL, 0, false), FL_OK);
    ck_assert_ptr_null(fl_labels_find(&labels, 100));
    fl_labels_done(&labels);
}

TEST(the_labels_of_who_is_nobody_any_more_are_gone)
{
    struct fl_labels labels = {.n = 0};
    struct fl_pair pair = pair_of("site", "north");

    fl_labels_drop(&labels, 3);
    ck_assert_int_eq(fl_labels_set(&labels, 3, &pair, 1, false), FL_OK);
    ck_assert_int_eq(fl_labels_set(&labels, 4, &pair, 1, false), FL_OK);
    fl_labels_drop(&labels, 3);
    ck_assert_ptr_null(fl_labels_find(&labels, 3));
    ck_assert_ptr_nonnull(fl_labels_find(&labels, 4));
    fl_labels_done(&labels);
}

TEST(a_label_that_does_not_fit_is_left_out_whole)
{
    struct fl_labels labels = {.n = 0};
    static char most[FL_LABELS_BYTES - 8];
    struct fl_pair pairs[] = {pair_of("a", most), pair_of("long", "er"), pair_of("b", "c")};

    (void)memset(most, 'x', sizeof(most) - 1);
    ck_assert_int_eq(fl_labels_set(&labels, 0, pairs, 3, false), FL_OK);
    /* "a" takes all but six bytes, "long" needs eight, "b" four. */
    ck_assert_uint_eq(fl_labels_find(&labels, 0)->n, 2);
    ck_assert_str_eq(fl_labels_find(&labels, 0)->pairs[0].value, most);
    ck_assert_str_eq(fl_labels_find(&labels, 0)->pairs[1].key, "b");
    fl_labels_done(&labels);
}
