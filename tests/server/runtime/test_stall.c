/* The coordinator's time while a disk does not answer. */
#include <check.h>

#include "server/runtime/stall.h"
#include "tests/lib/suites.h"

static struct fl_stall_clock stall_clock;

static uint64_t at(uint64_t now_ms, uint64_t busy_ms)
{
    return fl_stall_clock_read(&stall_clock, now_ms, busy_ms);
}

static void reset(void)
{
    stall_clock = (struct fl_stall_clock){0};
}

TEST_CASE("clock", reset, NULL);

TEST(time_passes_while_jobs_are_short)
{
    ck_assert_uint_eq(at(1000, 0), 1000);
    ck_assert_uint_eq(at(5000, FL_STALL_CLOCK_MS - 1), 5000);
    ck_assert_uint_eq(at(5001, 0), 5001);
}

TEST(time_stands_still_from_the_start_of_a_job_that_hangs)
{
    ck_assert_uint_eq(at(1000, 0), 1000);
    ck_assert_uint_eq(at(61000, 50000), 11000); /* it began at 11000 */
    ck_assert_uint_eq(at(90000, 79000), 11000);
    ck_assert_uint_eq(at(91000, 0), 11000); /* goes on from there */
    ck_assert_uint_eq(at(92000, 0), 12000);
}

TEST(time_that_was_read_during_a_job_does_not_go_back)
{
    ck_assert_uint_eq(at(1000, 0), 1000);
    ck_assert_uint_eq(at(2500, 1500), 2500);
    ck_assert_uint_eq(at(9000, 8000), 2500);
    ck_assert_uint_eq(at(9100, 100), 2500);
    ck_assert_uint_eq(at(9200, 200), 2600);
}

TEST(stalls_add_up)
{
    uint64_t now = 0;
    uint64_t last = 0;
    unsigned i;

    for (i = 0; i < 100; i++) { /* 7 s of which 5 hang */
        uint64_t read;

        ck_assert_uint_eq(at(now, 0), i * 2000);
        read = at(now + 7000, 5000);
        ck_assert_uint_eq(read, (i + 1) * 2000);
        ck_assert_uint_ge(read, last);
        last = read;
        now += 7000;
    }
}
