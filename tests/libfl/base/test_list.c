#include <check.h>

#include "libfl/base/list.h"
#include "tests/lib/suites.h"

struct item {
    int number;
    struct fl_list link;
};

static struct fl_list list;
static struct item items[4];

static void setup(void)
{
    size_t i;

    list = (struct fl_list){NULL, NULL};
    for (i = 0; i < 4; i++) {
        items[i] = (struct item){.number = (int)i};
    }
}

/* The numbers from first to last and back, as digits. */
static int forward(void)
{
    struct item *item;
    int all = 0;

    FL_LIST_FOREACH (item, &list, struct item, link) {
        all = all * 10 + item->number;
    }
    return all;
}

static int backward(void)
{
    struct item *item = FL_LIST_LAST(&list, struct item, link);
    int all = 0;

    for (; item != NULL; item = FL_LIST_PREV(&list, item, struct item, link)) {
        all = all * 10 + item->number;
    }
    return all;
}

TEST_CASE("all", setup, NULL);

TEST(zero_is_an_empty_list_and_a_link_in_none)
{
    ck_assert(fl_list_is_empty(&list));
    ck_assert(!fl_list_is_linked(&items[1].link));
    ck_assert_ptr_null(FL_LIST_FIRST(&list, struct item, link));
    ck_assert_ptr_null(FL_LIST_LAST(&list, struct item, link));
    fl_list_remove(&items[1].link);
    ck_assert(!fl_list_is_linked(&items[1].link));
}

TEST(items_come_in_the_order_in_which_they_were_put_there)
{
    fl_list_append(&list, &items[2].link);
    fl_list_append(&list, &items[3].link);
    fl_list_prepend(&list, &items[1].link);
    ck_assert_int_eq(forward(), 123);
    ck_assert_int_eq(backward(), 321);
    ck_assert(!fl_list_is_empty(&list));
    ck_assert(fl_list_is_linked(&items[2].link));
}

TEST(prepending_to_an_empty_list_begins_it)
{
    fl_list_prepend(&list, &items[1].link);
    fl_list_prepend(&list, &items[2].link);
    ck_assert_int_eq(forward(), 21);
    ck_assert_int_eq(backward(), 12);
}

TEST_EACH(any_item_can_be_removed_and_put_back, 3)
{
    static const int left[] = {23, 13, 12};
    static const int then[] = {231, 132, 123};
    size_t i;

    for (i = 1; i < 4; i++) {
        fl_list_append(&list, &items[i].link);
    }
    fl_list_remove(&items[_i + 1].link);
    ck_assert(!fl_list_is_linked(&items[_i + 1].link));
    ck_assert_int_eq(forward(), left[_i]);
    fl_list_append(&list, &items[_i + 1].link);
    ck_assert_int_eq(forward(), then[_i]);
}

TEST(the_safe_loop_may_remove_its_item)
{
    struct item *item, *next;
    int all = 0;
    size_t i;

    for (i = 1; i < 4; i++) {
        fl_list_append(&list, &items[i].link);
    }
    FL_LIST_FOREACH_SAFE (item, next, &list, struct item, link) {
        all = all * 10 + item->number;
        fl_list_remove(&item->link);
    }
    ck_assert_int_eq(all, 123);
    ck_assert(fl_list_is_empty(&list));
    fl_list_append(&list, &items[2].link);
    ck_assert_int_eq(forward(), 2);
}
