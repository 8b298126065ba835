/* When a device is lent: each rule, at its limit, and what a device does not report. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "client/core/lending.h"
#include "tests/lib/suites.h"

static const struct {
    const char *text;
    int from, to; /* from < 0: refused */
} spans[] = {
    {"22:00-06:00", 1320, 360}, {"00:00-24:00", 0, 1440}, {"09:30-17:05", 570, 1025},
    {"23:59-00:00", 1439, 0},   {"09:30-09:30", -1, 0},   {"24:00-06:00", -1, 0},
    {"00:00-24:01", -1, 0},     {"00:00-25:00", -1, 0},   {"09:60-10:00", -1, 0},
    {"9:30-17:05", -1, 0},      {"09:30", -1, 0},         {"", -1, 0},
    {"09:30-17:05 ", -1, 0},    {"always", -1, 0},
};

TEST_EACH(hours_are_read_or_refused_with_what_was_expected, ARRAY_LEN(spans))
{
    struct fl_when_span span = {-1, -1};
    struct fl_err err = {0};
    int rv = fl_when_span_parse(spans[_i].text, &span, &err);

    if (spans[_i].from >= 0) {
        ck_assert_int_eq(rv, FL_OK);
        ck_assert_int_eq(span.from, spans[_i].from);
        ck_assert_int_eq(span.to, spans[_i].to);
    } else {
        ck_assert_int_eq(rv, FL_EINVAL);
        ck_assert_ptr_nonnull(strstr(err.msg, "expected"));
        ck_assert_ptr_nonnull(strstr(err.msg, spans[_i].text));
    }
}

TEST(a_span_without_a_minute_says_that_it_never_holds)
{
    struct fl_when_span span;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_when_span_parse("09:30-09:30", &span, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "never holds"));
}

static struct fl_when_facts unknown_at(int minute)
{
    return (struct fl_when_facts){
        .minute = minute, .load = -1.0, .free_memory = UINT64_MAX, .free_disk = UINT64_MAX};
}

static const struct {
    int minute;
    bool in;
} minutes[] = {{1319, false}, {1320, true}, {1439, true}, {0, true},   {359, true},
               {360, false},  {719, false}, {720, true},  {779, true}, {780, false}};

TEST_EACH(hours_may_be_over_midnight_and_end_before_their_last_minute, ARRAY_LEN(minutes))
{
    const struct fl_when when = {.hours = {{1320, 360}, {720, 780}}, .n_hours = 2};
    const struct fl_when_facts facts = unknown_at(minutes[_i].minute);
    char why[FL_WHEN_REASON];
    char expected[FL_WHEN_REASON];

    ck_assert_int_eq(fl_when_holds(&when, &facts, why), minutes[_i].in);
    (void)snprintf(expected, sizeof(expected),
                   "it is %02d:%02d, outside its hours 22:00-06:00, 12:00-13:00",
                   minutes[_i].minute / 60, minutes[_i].minute % 60);
    ck_assert_str_eq(why, minutes[_i].in ? "" : expected);
}

static const struct {
    struct fl_when when;
    struct fl_when_facts facts;
    const char *why;
} rules[] = {
    {{.load_below = 0.5}, {.load = 0.49}, ""},
    {{.load_below = 0.5},
     {.load = 0.5},
     "it is busy: load 0.50 for each processor, not below 0.50"},
    {{.load_below = 0.5}, {.load = -1}, ""},
    {{.load_below = 0}, {.load = 99}, ""},
    {{.mains = true}, {.mains = FL_FACT_NO}, "it runs on battery"},
    {{.mains = true}, {.mains = FL_FACT_YES}, ""},
    {{.mains = true}, {.mains = FL_FACT_UNKNOWN}, ""},
    {{.mains = false}, {.mains = FL_FACT_NO}, ""},
    {{.unmetered = true},
     {.unmetered = FL_FACT_NO},
     "its network is metered, as NetworkManager says"},
    {{.unmetered = true}, {.unmetered = FL_FACT_YES}, ""},
    {{.unmetered = true}, {.unmetered = FL_FACT_UNKNOWN}, ""},
    {{.free_memory = 1000000}, {.free_memory = 1000000}, ""},
    {{.free_memory = 1000000},
     {.free_memory = 999999},
     "1000.0 kB of memory is free, less than 1.0 MB"},
    {{.free_disk = 2000000000},
     {.free_disk = 1000000000},
     "1.0 GB of disk space is free, less than 2.0 GB"},
    {{.free_disk = 2000000000}, {.free_disk = UINT64_MAX}, ""},
};

TEST_EACH(each_rule_holds_up_to_its_limit, ARRAY_LEN(rules))
{
    char why[FL_WHEN_REASON];

    ck_assert_int_eq(fl_when_holds(&rules[_i].when, &rules[_i].facts, why),
                     rules[_i].why[0] == '\0');
    ck_assert_str_eq(why, rules[_i].why);
}

TEST(the_reason_of_many_hours_is_cut_and_not_overrun)
{
    struct fl_when when = {.n_hours = FL_WHEN_SPANS};
    const struct fl_when_facts facts = unknown_at(1439);
    char why[FL_WHEN_REASON];
    size_t i;

    for (i = 0; i < FL_WHEN_SPANS; i++) {
        when.hours[i] = (struct fl_when_span){1200, 1201};
    }
    ck_assert(!fl_when_holds(&when, &facts, why));
    ck_assert_uint_lt(strlen(why), FL_WHEN_REASON);
}
