/* Hours of the day: what is read, what is refused, and which minutes belong to them. */
#include <check.h>
#include <string.h>

#include "libfl/base/hours.h"
#include "tests/lib/suites.h"

static const struct {
    const char *text;
    uint32_t from, to;
} spans[] = {{"22:00-06:00", 1320, 360},
             {"00:00-24:00", 0, 1440},
             {"09:30-17:05", 570, 1025},
             {"23:59-00:00", 1439, 0}};

TEST_EACH(hours_are_read, ARRAY_LEN(spans))
{
    struct fl_hours hours = {9999, 9999};

    ck_assert_int_eq(fl_hours_read(spans[_i].text, &hours, NULL), FL_OK);
    ck_assert_uint_eq(hours.from, spans[_i].from);
    ck_assert_uint_eq(hours.to, spans[_i].to);
}

static const char *const bad[] = {"",
                                  "22-06",
                                  "22:00",
                                  "22:00-",
                                  "2:00-06:00",
                                  "22:60-06:00",
                                  "22:00-24:01",
                                  "24:00-06:00",
                                  "22:00-06:0x",
                                  "22:00-06:001",
                                  "22:00 06:00",
                                  "09:30-17:05 ",
                                  "25:00-06:00",
                                  "always"};

TEST_EACH(other_texts_are_refused_with_what_was_expected, ARRAY_LEN(bad))
{
    struct fl_hours hours;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_hours_read(bad[_i], &hours, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "expected two times of the day"));
    ck_assert_ptr_nonnull(strstr(err.msg, bad[_i]));
}

TEST(a_span_without_a_minute_is_refused)
{
    struct fl_hours hours;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_hours_read("06:00-06:00", &hours, &err), FL_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.msg, "expected two different times"));
}

TEST(hours_may_be_over_midnight_and_end_before_their_last_minute)
{
    const struct fl_hours night = {1320, 360};
    const struct fl_hours noon = {720, 780};

    ck_assert(!fl_hours_hold(&night, 1319));
    ck_assert(fl_hours_hold(&night, 1320));
    ck_assert(fl_hours_hold(&night, 0));
    ck_assert(fl_hours_hold(&night, 359));
    ck_assert(!fl_hours_hold(&night, 360));
    ck_assert(!fl_hours_hold(&noon, 719));
    ck_assert(fl_hours_hold(&noon, 720));
    ck_assert(!fl_hours_hold(&noon, 780));
}
