/* When a device is available: each rule, at its limit, and what a device does not report. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "client/core/device_policy.h"
#include "tests/lib/suites.h"

static struct fl_when_facts unknown_at(uint32_t minute)
{
    return (struct fl_when_facts){
        .minute = minute, .load = -1.0, .free_memory = UINT64_MAX, .free_disk = UINT64_MAX};
}

static const struct {
    uint32_t minute;
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
    struct fl_when when = {.n_hours = FL_HOURS_MAX};
    const struct fl_when_facts facts = unknown_at(1439);
    char why[FL_WHEN_REASON];
    size_t i;

    for (i = 0; i < FL_HOURS_MAX; i++) {
        when.hours[i] = (struct fl_hours){1200, 1201};
    }
    ck_assert(!fl_when_holds(&when, &facts, why));
    ck_assert_uint_lt(strlen(why), FL_WHEN_REASON);
}
