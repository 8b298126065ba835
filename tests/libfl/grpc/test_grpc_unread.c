/* Who takes what is sent to him in time, and who does not. */

#include <check.h>

#include "libfl/grpc/backlog_impl.h"
#include "tests/lib/suites.h"

enum { SPAN = 1000 };

TEST(nothing_is_due_while_nothing_waits)
{
    struct fl__backlog u;

    fl__backlog_none(&u);
    ck_assert(fl__backlog_due(&u, SPAN) == UINT64_MAX);
    fl__backlog_wait(&u, 10, 100);
    fl__backlog_taken(&u, 20, 100);
    fl__backlog_none(&u);
    ck_assert(fl__backlog_due(&u, SPAN) == UINT64_MAX);
}

TEST(who_takes_nothing_is_due_after_the_span)
{
    struct fl__backlog u;

    fl__backlog_none(&u);
    fl__backlog_wait(&u, 10, 100);
    fl__backlog_wait(&u, 500, 900); /* More waits behind it: that gives no more time. */
    ck_assert_uint_eq(fl__backlog_due(&u, SPAN), 1010);
}

TEST(a_byte_now_and_then_gives_no_more_time)
{
    struct fl__backlog u;
    uint64_t now;

    fl__backlog_none(&u);
    fl__backlog_wait(&u, 0, 512 * 1024);
    for (now = 100; now < SPAN; now += 100) {
        fl__backlog_taken(&u, now, 1);
        fl__backlog_wait(&u, now, 512 * 1024);
        ck_assert_uint_eq(fl__backlog_due(&u, SPAN), SPAN);
    }
}

TEST(a_slow_reader_that_takes_what_waited_goes_on_for_ever)
{
    struct fl__backlog u;
    uint64_t now = 0;
    int i;

    fl__backlog_none(&u);
    for (i = 0; i < 1000; i++) { /* Always more behind it, and always a tenth at a time. */
        fl__backlog_wait(&u, now, 8000);
        now += SPAN / 20;
        ck_assert_uint_gt(fl__backlog_due(&u, SPAN), now);
        fl__backlog_taken(&u, now, 800);
    }
}

TEST(the_time_of_what_comes_next_begins_when_the_last_was_taken)
{
    struct fl__backlog u;

    fl__backlog_none(&u);
    fl__backlog_wait(&u, 0, 100);
    fl__backlog_taken(&u, 400, 100);
    ck_assert_uint_eq(fl__backlog_due(&u, SPAN), 1400);
    fl__backlog_wait(&u, 900, 100); /* The socket was full until now. */
    ck_assert_uint_eq(fl__backlog_due(&u, SPAN), 1400);
}
