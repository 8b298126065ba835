/* Sessions of one identity that end each other: counted, and told apart from a reconnect. */

#include <check.h>

#include "server/runtime/takeovers.h"
#include "tests/lib/suites.h"

#define MINUTE UINT64_C(60000)

static struct fl_takeovers t;

static void setup(void)
{
    t = (struct fl_takeovers){0};
}

static void teardown(void)
{
    fl_takeovers_done(&t);
}

static void count(uint32_t client, uint64_t now_ms)
{
    ck_assert_int_eq(fl_takeovers_count(&t, client, now_ms), FL_OK);
}

TEST_CASE("takeovers", setup, teardown);

TEST(three_within_an_hour_are_two_machines)
{
    count(40, 5 * MINUTE);
    count(40, 20 * MINUTE);
    ck_assert(!fl_takeovers_many(&t, 40, 20 * MINUTE));
    count(40, 64 * MINUTE);
    ck_assert(fl_takeovers_many(&t, 40, 64 * MINUTE));
    ck_assert(!fl_takeovers_many(&t, 40, 65 * MINUTE));
    ck_assert(!fl_takeovers_many(&t, 39, 64 * MINUTE));
    ck_assert_uint_eq(fl_takeovers_of(&t, 40), 3);
    ck_assert_uint_eq(fl_takeovers_of(&t, 39), 0);
    ck_assert_uint_eq(fl_takeovers_of(&t, 4000), 0);
}

TEST(reconnects_that_are_rare_are_counted_only)
{
    uint64_t i;

    for (i = 1; i <= 50; i++) {
        count(0, i * 31 * MINUTE);
        ck_assert(!fl_takeovers_tell(&t, 0, i * 31 * MINUTE));
    }
    ck_assert_uint_eq(fl_takeovers_of(&t, 0), 50);
}

TEST(however_often_they_change_an_error_is_recorded_once_a_minute)
{
    uint64_t now;
    unsigned told = 0;

    for (now = 1; now < 10 * MINUTE; now += 100) {
        count(7, now);
        told += fl_takeovers_tell(&t, 7, now);
    }
    ck_assert_uint_eq(told, 10);
}

TEST(another_client_under_the_number_begins_with_none)
{
    count(3, 1);
    count(3, 2);
    count(3, 3);
    fl_takeovers_drop(&t, 3);
    fl_takeovers_drop(&t, 4000);
    ck_assert_uint_eq(fl_takeovers_of(&t, 3), 0);
    ck_assert(!fl_takeovers_many(&t, 3, 3));
}
