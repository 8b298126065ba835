/* Which checkpoints stay, by count, by age, by accuracy, and for how long. */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/core/retain.h"
#include "tests/lib/suites.h"

#define MAX 512

static struct fl_checkpoint list[MAX];
static size_t n;

static void add(uint64_t round, uint64_t made_ms, double accuracy)
{
    ck_assert_uint_lt(n, MAX);
    list[n++] = (struct fl_checkpoint){.round = round, .made_ms = made_ms, .accuracy = accuracy};
}

static void setup(void)
{
    n = 0;
}

/* Applies the rule and removes what goes. */
static void prune(const struct fl_retention *rule, uint64_t now_ms)
{
    size_t kept = 0;
    size_t i;

    fl_retain(rule, now_ms, list, n);
    for (i = 0; i < n; i++) {
        if (list[i].reasons != 0) {
            list[kept++] = list[i];
        }
    }
    n = kept;
}

static const char *left(void)
{
    static char text[1024];
    size_t i;

    text[0] = '\0';
    for (i = 0; i < n; i++) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%llu", i > 0 ? " " : "",
                       (unsigned long long)list[i].round);
    }
    return text;
}

TEST_CASE("all", setup, NULL);

TEST_EACH(the_newest_stay_and_one_at_least, 4)
{
    struct fl_retention rule = {.keep = (uint32_t)_i};
    uint64_t r;

    for (r = 1; r <= 5; r++) {
        add(r, 0, -1.0);
    }
    prune(&rule, 1000);
    ck_assert_str_eq(left(), _i < 2 ? "5" : _i == 2 ? "4 5" : "3 4 5");
}

TEST(every_so_many_th_and_held_ones_stay)
{
    struct fl_retention rule = {.keep = 1, .every = 4};
    uint64_t r;

    for (r = 0; r <= 9; r++) {
        add(r, 0, NAN);
        list[r].pinned = r == 3;
    }
    prune(&rule, 1000);
    ck_assert_str_eq(left(), "0 3 4 8 9");
}

TEST(the_best_stays_and_of_equal_ones_the_first)
{
    struct fl_retention rule = {.keep = 1, .best = 2};

    add(1, 0, 0.5);
    add(2, 0, 0.9);
    add(3, 0, NAN);
    add(4, 0, 0.9);
    add(5, 0, 0.9);
    add(6, 0, 0.1);
    prune(&rule, 1000);
    ck_assert_str_eq(left(), "2 4 6");
}

TEST(a_span_is_thinned_out_however_fast_rounds_come)
{
    /* A day in eight parts of three hours; ten days of a round every ten minutes. */
    const uint64_t minute = 60000;
    struct fl_retention rule = {.keep = 3, .span_ms = 24 * 60 * minute, .parts = 8};
    uint64_t now = 1000 * 24 * 60 * minute;
    uint64_t oldest;
    uint64_t r;

    for (r = 1; r <= 1440; r++, now += 10 * minute) {
        add(r, now, -1.0);
        prune(&rule, now);
        ck_assert_uint_le(n, 3 + 9);
        oldest = list[0].made_ms;
        /* There is always something of nearly a day ago. */
        ck_assert(r < 144 || now - oldest > 20 * 60 * minute);
        ck_assert_uint_le(now - oldest, 24 * 60 * minute);
    }
}

TEST(a_clock_that_goes_back_keeps_the_newest)
{
    struct fl_retention rule = {.keep = 2, .span_ms = 1000, .parts = 2};

    add(1, 900000, -1.0);
    add(2, 100, -1.0);
    add(3, 200, -1.0);
    prune(&rule, 300);
    ck_assert_str_eq(left(), "1 2 3");
    add(4, 300, -1.0);
    prune(&rule, 300);
    ck_assert_str_eq(left(), "1 3 4");
}
