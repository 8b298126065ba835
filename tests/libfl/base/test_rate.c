#include <check.h>

#include "libfl/base/rate.h"
#include "tests/lib/suites.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

TEST(a_bucket_starts_empty_and_earns_its_rate)
{
    struct fl_bucket b;

    fl_bucket_start(&b, 1000, 500, 7 * S + 3);
    ck_assert_uint_eq(fl_bucket_have(&b, 7 * S + 3), 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 7 * S + 3 + MS - 1), 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 7 * S + 3 + MS), 1);
    ck_assert_uint_eq(fl_bucket_have(&b, 7 * S + 3 + 100 * MS), 100);
    fl_bucket_take(&b, 60);
    ck_assert_uint_eq(fl_bucket_have(&b, 7 * S + 3 + 100 * MS), 40);
}

TEST(a_bucket_saves_no_more_than_its_burst)
{
    struct fl_bucket b;

    fl_bucket_start(&b, 1000, 500, 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 3 * S), 500);
    fl_bucket_take(&b, 500);
    ck_assert_uint_eq(fl_bucket_have(&b, 3 * S), 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 3 * S + 20 * MS), 20);
}

TEST(a_debt_is_earned_back_first)
{
    struct fl_bucket b;

    fl_bucket_start(&b, 1000, 500, 0);
    fl_bucket_take(&b, 30);
    ck_assert_uint_eq(fl_bucket_have(&b, 20 * MS), 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 31 * MS), 1);
}

/* Rates with and without a whole number of nanoseconds a byte, the least and the most. */
static const uint64_t rates[] = {1, 7, 1000, 187500, 12500000, 333333333, FL_RATE_MAX};

TEST_EACH(it_is_the_earliest_time_at_which_the_bytes_may_go, ARRAY_LEN(rates))
{
    uint64_t rate = rates[_i];
    uint64_t start = UINT64_C(123456789012345);
    uint64_t n;

    for (n = 1; n < 3000; n = n * 5 / 3 + 1) {
        struct fl_bucket b;
        uint64_t at;

        fl_bucket_start(&b, rate, 1u << 20, start);
        fl_bucket_take(&b, 11);
        at = fl_bucket_when(&b, n);
        ck_assert_uint_ge(fl_bucket_have(&b, at), n);
        ck_assert_uint_lt(fl_bucket_have(&b, at - 1), n);
    }
}

TEST_EACH(nothing_is_lost_or_won_by_asking_at_odd_times, ARRAY_LEN(rates))
{
    uint64_t rate = rates[_i];
    struct fl_bucket b;
    uint64_t now = 5;
    uint64_t sent = 0;
    uint64_t i;

    fl_bucket_start(&b, rate, 1u << 30, now);
    for (i = 0; i < 20000; i++) {
        uint64_t have;

        now += (i * 2654435761u) % (3 * MS); /* up to 3 ms, never the same */
        have = fl_bucket_have(&b, now);
        fl_bucket_take(&b, have);
        sent += have;
    }
    ck_assert_uint_eq(sent, (now - 5) / S * rate + (now - 5) % S * rate / S);
}
