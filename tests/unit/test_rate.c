#include <check.h>
#include <stdlib.h>

#include "libfl/base/rate.h"

#define MS UINT64_C(1000000)
#define S  UINT64_C(1000000000)

static const struct {
    const char *text;
    uint64_t rate;
    const char *back;
} good[] = {
    {"2Mbit/s", 250000, "2Mbit/s"},
    {"1.5 Mbit/s", 187500, "1500kbit/s"},
    {"500KB/s", 500000, "4Mbit/s"},
    {"64kB/s", 64000, "64kB/s"},
    {"250kbit/s", 31250, "250kbit/s"},
    {"60Kbit/s", 7500, "60kbit/s"},
    {"100Gbit/s", FL_RATE_MAX, "100Gbit/s"},
    {"12.5GB/s", FL_RATE_MAX, "100Gbit/s"},
    {"9bit/s", 1, "1B/s"},
    {"1234567B/s", 1234567, "1234567B/s"},
    {"none", 0, "none"},
    {"0", 0, "none"},
};

START_TEST(a_rate_is_read_with_the_unit_that_links_are_named_in)
{
    char text[FL_RATE_TEXT];
    uint64_t rate = 1;
    uint64_t again = 1;

    ck_assert_int_eq(fl_rate_parse(good[_i].text, &rate), FL_OK);
    ck_assert_uint_eq(rate, good[_i].rate);
    ck_assert_str_eq(fl_rate_text(text, sizeof(text), rate), good[_i].back);
    ck_assert_int_eq(fl_rate_parse(text, &again), FL_OK);
    ck_assert_uint_eq(again, rate);
}
END_TEST

static const struct {
    const char *text;
    int code;
} bad[] = {
    {"", FL_EINVAL},          {"250000", FL_EINVAL},
    {"0.0", FL_EINVAL},       {"2Mb/s", FL_EINVAL},
    {"2Mbps", FL_EINVAL},     {"2Mbit", FL_EINVAL},
    {"2MBIT/S", FL_EINVAL},   {"2  Mbit/s", FL_EINVAL},
    {"2Mbit/s ", FL_EINVAL},  {" 2Mbit/s", FL_EINVAL},
    {"-2Mbit/s", FL_EINVAL},  {"1e6bit/s", FL_EINVAL},
    {"0x2Mbit/s", FL_EINVAL}, {"1.2.3Mbit/s", FL_EINVAL},
    {".5Mbit/s", FL_EINVAL},  {"5.Mbit/s", FL_EINVAL},
    {"None", FL_EINVAL},      {"1000000000000000000000000kbit/s", FL_EINVAL},
    {"101Gbit/s", FL_ERANGE}, {"999999999999999999999999GB/s", FL_ERANGE},
    {"0Mbit/s", FL_ERANGE},   {"3bit/s", FL_ERANGE},
};

START_TEST(what_is_no_rate_is_refused)
{
    uint64_t rate = 77;

    ck_assert_int_eq(fl_rate_parse(bad[_i].text, &rate), bad[_i].code);
    ck_assert_uint_eq(rate, 77);
}
END_TEST

START_TEST(a_bucket_starts_empty_and_earns_its_rate)
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
END_TEST

START_TEST(a_bucket_saves_no_more_than_its_burst)
{
    struct fl_bucket b;

    fl_bucket_start(&b, 1000, 500, 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 3 * S), 500);
    fl_bucket_take(&b, 500);
    ck_assert_uint_eq(fl_bucket_have(&b, 3 * S), 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 3 * S + 20 * MS), 20);
}
END_TEST

START_TEST(a_debt_is_earned_back_first)
{
    struct fl_bucket b;

    fl_bucket_start(&b, 1000, 500, 0);
    fl_bucket_take(&b, 30);
    ck_assert_uint_eq(fl_bucket_have(&b, 20 * MS), 0);
    ck_assert_uint_eq(fl_bucket_have(&b, 31 * MS), 1);
}
END_TEST

/* Rates with and without a whole number of nanoseconds a byte, the least and the most. */
static const uint64_t rates[] = {1, 7, 1000, 187500, 12500000, 333333333, FL_RATE_MAX};

START_TEST(it_is_the_earliest_time_at_which_the_bytes_may_go)
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
END_TEST

START_TEST(nothing_is_lost_or_won_by_asking_at_odd_times)
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
END_TEST

int main(void)
{
    Suite *suite = suite_create("rate");
    TCase *tc = tcase_create("all");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, a_rate_is_read_with_the_unit_that_links_are_named_in, 0,
                        sizeof(good) / sizeof(good[0]));
    tcase_add_loop_test(tc, what_is_no_rate_is_refused, 0, sizeof(bad) / sizeof(bad[0]));
    tcase_add_test(tc, a_bucket_starts_empty_and_earns_its_rate);
    tcase_add_test(tc, a_bucket_saves_no_more_than_its_burst);
    tcase_add_test(tc, a_debt_is_earned_back_first);
    tcase_add_loop_test(tc, it_is_the_earliest_time_at_which_the_bytes_may_go, 0,
                        sizeof(rates) / sizeof(rates[0]));
    tcase_add_loop_test(tc, nothing_is_lost_or_won_by_asking_at_odd_times, 0,
                        sizeof(rates) / sizeof(rates[0]));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
