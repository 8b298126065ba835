/* Hours of the day and labels of round.eligible, without a coordinator. */
#include <check.h>
#include <string.h>

#include "server/core/eligible.h"
#include "tests/lib/suites.h"

#define MINUTE UINT64_C(60000)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* Midnight UTC of some day. */
#define MIDNIGHT (19000 * DAY)

static struct fl_eligible of_hours(const char *first, const char *second, const char *offset)
{
    struct fl_eligible e = {.n_hours = second != NULL ? 2 : 1};

    ck_assert_int_eq(fl_hours_read(first, &e.hours[0], NULL), FL_OK);
    ck_assert(second == NULL || fl_hours_read(second, &e.hours[1], NULL) == FL_OK);
    ck_assert_int_eq(fl_utc_offset_read(offset, &e.utc_offset, NULL), FL_OK);
    return e;
}

TEST(without_hours_clients_are_selected_at_any_time)
{
    const struct fl_eligible e = {.n_hours = 0};
    char text[FL_ELIGIBLE_TEXT];

    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 5 * HOUR), 0);
    ck_assert_str_eq(fl_hours_next(&e, MIDNIGHT, text, sizeof(text)), "");
}

TEST(hours_begin_with_their_first_minute_and_end_before_their_last)
{
    const struct fl_eligible e = of_hours("08:30-17:00", NULL, "+00:00");

    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT), 8 * HOUR + 30 * MINUTE);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 8 * HOUR + 30 * MINUTE - 1), 1);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 8 * HOUR + 30 * MINUTE), 0);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 17 * HOUR - 1), 0);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 17 * HOUR), 15 * HOUR + 30 * MINUTE);
}

TEST(hours_over_midnight_hold_in_the_evening_and_in_the_morning)
{
    const struct fl_eligible e = of_hours("22:00-06:00", NULL, "+00:00");

    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 22 * HOUR), 0);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT), 0);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 6 * HOUR - 1), 0);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 6 * HOUR), 16 * HOUR);
}

TEST(the_whole_day_never_waits)
{
    const struct fl_eligible e = of_hours("00:00-24:00", NULL, "-03:30");
    uint64_t at;

    for (at = 0; at < DAY; at += 7 * MINUTE) {
        ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + at), 0);
    }
}

TEST(of_several_spans_the_one_that_begins_next_is_waited_for)
{
    const struct fl_eligible e = of_hours("22:00-06:00", "12:00-13:00", "+00:00");
    char text[FL_ELIGIBLE_TEXT];

    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 11 * HOUR), HOUR);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 12 * HOUR), 0);
    ck_assert_uint_eq(fl_hours_wait_ms(&e, MIDNIGHT + 14 * HOUR), 8 * HOUR);
    ck_assert_str_eq(fl_hours_next(&e, MIDNIGHT + 14 * HOUR + 1, text, sizeof(text)),
                     "22:00 (utc_offset +00:00), in 8 h 00 min");
}

TEST(the_offset_is_how_far_local_time_is_ahead_of_utc)
{
    const struct fl_eligible east = of_hours("22:00-06:00", NULL, "+01:00");
    const struct fl_eligible west = of_hours("22:00-06:00", NULL, "-03:30");
    char text[FL_ELIGIBLE_TEXT];

    ck_assert_uint_eq(fl_hours_wait_ms(&east, MIDNIGHT + 20 * HOUR), HOUR);
    ck_assert_uint_eq(fl_hours_wait_ms(&east, MIDNIGHT + 21 * HOUR), 0);
    ck_assert_uint_eq(fl_hours_wait_ms(&west, MIDNIGHT + 21 * HOUR), 4 * HOUR + 30 * MINUTE);
    ck_assert_uint_eq(fl_hours_wait_ms(&west, MIDNIGHT + 9 * HOUR + 30 * MINUTE - 1), 0);
    ck_assert_str_eq(fl_hours_next(&west, MIDNIGHT + 21 * HOUR, text, sizeof(text)),
                     "22:00 (utc_offset -03:30), in 4 h 30 min");
}

TEST(other_forms_of_an_offset_are_refused_with_what_was_expected)
{
    static const char *const bad[] = {"", "01:00", "+1", "+1:00", "+01:00x", "+14:01", "Z"};
    struct fl_err err;
    int32_t minutes;
    size_t i;

    for (i = 0; i < ARRAY_LEN(bad); i++) {
        err = (struct fl_err){0};
        ck_assert_msg(fl_utc_offset_read(bad[i], &minutes, &err) == FL_EINVAL, "'%s'", bad[i]);
        ck_assert_msg(strstr(err.msg, "such as +01:00 or -03:30") != NULL, "%s", err.msg);
    }
    ck_assert_int_eq(fl_utc_offset_read("-14:00", &minutes, &err), FL_OK);
    ck_assert_int_eq(minutes, -840);
}

static char site[] = "site", rack[] = "rack", berlin[] = "berlin", paris[] = "paris",
            rome[] = "rome";

TEST(the_label_that_does_not_match_is_named)
{
    static const struct fl_pair wanted[] = {{site, berlin}, {site, paris}, {rack, rome}};
    const struct fl_eligible e = {.labels = wanted, .n_labels = 3};
    const struct fl_pair both[] = {{rack, rome}, {site, paris}};
    const struct fl_pair other[] = {{rack, rome}, {site, rome}};
    char text[FL_ELIGIBLE_TEXT];

    ck_assert(fl_eligible_labels(&e, both, 2));
    ck_assert_str_eq(fl_eligible_missing(&e, both, 2, text, sizeof(text)), "");
    ck_assert(!fl_eligible_labels(&e, other, 2));
    ck_assert_str_eq(fl_eligible_missing(&e, other, 2, text, sizeof(text)), "site is 'rome'");
    ck_assert_str_eq(fl_eligible_missing(&e, other, 1, text, sizeof(text)),
                     "site is not announced");
    ck_assert_str_eq(fl_eligible_wanted(&e, text, sizeof(text)),
                     "site=berlin, site=paris, rack=rome");
    ck_assert_str_eq(fl_eligible_wanted(&e, text, 8), "site=be");
}
