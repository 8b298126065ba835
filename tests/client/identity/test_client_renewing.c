/* When a client renews its certificate, and which clocks it does not believe. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/identity/cert_renewal.h"
#include "libfl/base/rng.h"
#include "tests/lib/suites.h"

#define NOW  INT64_C(1795198500) /* 2026-11-20 18:15:00Z */
#define DAY  INT64_C(86400)
#define MANY 10000

static struct fl_identity somebody(uint32_t number, int64_t validity)
{
    struct fl_identity who = {.not_before = NOW, .not_after = NOW + validity, .serial_len = 16};
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, number);
    for (i = 0; i < sizeof(who.key); i++) {
        who.key[i] = (uint8_t)fl_rng_u64(&rng);
    }
    for (i = 0; i < who.serial_len; i++) {
        who.serial[i] = (uint8_t)fl_rng_u64(&rng);
    }
    return who;
}

/* --- when --- */

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

/* The most of them in any one second. */
static unsigned most_in_a_second(int64_t *due, unsigned n)
{
    unsigned most = 0;
    unsigned first = 0;
    unsigned i;

    qsort(due, n, sizeof(*due), by_time);
    for (i = 0; i < n; i++) {
        while (due[i] - due[first] >= 1000) {
            first++;
        }
        most = i - first + 1 > most ? i - first + 1 : most;
    }
    return most;
}

TEST(ten_thousand_that_joined_together_do_not_renew_together)
{
    static const int64_t validities[] = {3600, DAY, 30 * DAY, 365 * DAY};
    static int64_t due[MANY];
    size_t v;
    unsigned i;

    for (v = 0; v < sizeof(validities) / sizeof(validities[0]); v++) {
        for (i = 0; i < MANY; i++) {
            struct fl_identity who = somebody(i, validities[v]);

            due[i] = fl_renewing_due_ms(&who);
            ck_assert_int_ge(due[i], NOW * 1000 + validities[v] * 600);
            ck_assert_int_lt(due[i], NOW * 1000 + validities[v] * 720);
        }
        ck_assert_uint_le(most_in_a_second(due, MANY), MANY / 100);
    }
}

TEST(the_next_certificate_is_due_at_another_point_than_this_one)
{
    struct fl_identity first = somebody(1, 30 * DAY);
    struct fl_identity next = first;

    next.serial[0]++;
    ck_assert_int_eq(fl_renewing_due_ms(&first), fl_renewing_due_ms(&first));
    ck_assert_int_ne(fl_renewing_due_ms(&first), fl_renewing_due_ms(&next));
}

TEST(dates_that_make_no_sense_do_no_harm)
{
    struct fl_identity who = somebody(1, 0);

    ck_assert_int_eq(fl_renewing_due_ms(&who), NOW * 1000);
    who.not_after = who.not_before - 1;
    ck_assert_int_eq(fl_renewing_due_ms(&who), NOW * 1000);
    who.not_after = INT64_C(253402300799); /* the year 9999 */
    ck_assert_int_gt(fl_renewing_due_ms(&who), NOW * 1000);
    ck_assert_uint_ge(fl_renewing_pause_ms(&who, 1000, NOW * 1000), 1000);
}

/* --- pauses --- */

TEST(pauses_after_failures_grow_to_an_hour_and_differ)
{
    struct fl_identity a = somebody(1, 30 * DAY);
    struct fl_identity b = somebody(2, 30 * DAY);
    unsigned differ = 0;
    unsigned i;

    for (i = 1; i < 20; i++) {
        uint64_t most = i < 7 ? UINT64_C(60000) << (i - 1) : 3600000;
        uint64_t pause = fl_renewing_pause_ms(&a, i, NOW * 1000);

        ck_assert_uint_ge(pause, most - most / 5);
        ck_assert_uint_le(pause, most + most / 5);
        differ += pause != fl_renewing_pause_ms(&b, i, NOW * 1000);
    }
    ck_assert_uint_ge(differ, 17);
}

TEST(a_short_validity_leaves_room_for_many_tries)
{
    struct fl_identity who = somebody(1, 600);
    int64_t now = fl_renewing_due_ms(&who);
    unsigned tries = 0;

    while (now < who.not_after * 1000) {
        now += (int64_t)fl_renewing_pause_ms(&who, ++tries, now);
    }
    ck_assert_uint_ge(tries, 20);
    ck_assert_uint_le(tries, 250);
}

/* --- the clock --- */

TEST(a_clock_before_what_is_known_is_not_believed)
{
    struct fl_identity who = somebody(1, 30 * DAY);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_renewing_clock(NOW, NOW, &who, &err), FL_OK);
    ck_assert_int_eq(fl_renewing_clock(NOW + 3650 * DAY, NOW, &who, &err), FL_OK);
    ck_assert_int_eq(fl_renewing_clock(12, 0, NULL, &err), FL_OK);

    ck_assert_int_eq(fl_renewing_clock(NOW - 3 * DAY, NOW, NULL, &err), FL_EAGAIN);
    ck_assert_str_eq(
        err.msg, "the clock of this host (2026-11-17 18:15:00Z) is wrong: this program was built "
                 "at 2026-11-20 18:15:00Z, 3 days later; waiting for the time service to set it "
                 "(see timedatectl)");
}

/* Certificates are dated back by ten minutes, and a client may be built, or upgraded, after that.
 */
TEST(a_clock_before_the_certificate_is_told_by_it_whenever_the_program_was_built)
{
    static const int64_t built[] = {0, NOW - 3650 * DAY, NOW - 1, NOW, NOW + 600, NOW + 900 * DAY};
    struct fl_identity who = somebody(1, 30 * DAY);
    struct fl_err err = {0};
    size_t i;

    for (i = 0; i < sizeof(built) / sizeof(built[0]); i++) {
        ck_assert_int_eq(fl_renewing_clock(12, built[i], &who, &err), FL_EAGAIN);
        ck_assert_str_eq(err.msg,
                         "the clock of this host (1970-01-01 00:00:12Z) is wrong: the certificate "
                         "of this client is valid from 2026-11-20 18:15:00Z, 56 years later; "
                         "waiting for the time service to set it (see timedatectl)");
    }
}

TEST(a_clock_behind_the_certificate_is_still_judged_by_the_build)
{
    struct fl_identity who = somebody(1, 30 * DAY);
    struct fl_err err = {0};

    ck_assert_int_eq(fl_renewing_clock(NOW + DAY, NOW + 3 * DAY, &who, &err), FL_EAGAIN);
    ck_assert_str_eq(
        err.msg, "the clock of this host (2026-11-21 18:15:00Z) is wrong: this program was built "
                 "at 2026-11-23 18:15:00Z, 2 days later; waiting for the time service to set it "
                 "(see timedatectl)");
    ck_assert_int_eq(fl_renewing_clock(NOW + 3 * DAY, NOW + 3 * DAY, &who, &err), FL_OK);
}
