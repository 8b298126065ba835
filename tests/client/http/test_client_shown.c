/* What a client counts of its session: attempts, failures, durations, verdicts. */

#include "client/http/client_shown.h"
#include "tests/lib/suites.h"

#define SECOND UINT64_C(1000000000)

static void shown_on(struct fl_client_shown *shown, enum fl_session_event_type type, uint64_t now)
{
    fl_client_shown_event(shown, &(struct fl_session_event){.type = type}, now, 1700000000000);
}

static uint64_t shown_count(const struct fl_histogram *h)
{
    uint64_t n = 0;
    size_t i;

    for (i = 0; i <= FL_HISTOGRAM_BOUNDS; i++) {
        n += h->counts[i];
    }
    return n;
}

TEST(work_that_succeeds_is_timed_and_work_that_fails_is_counted)
{
    struct fl_client_shown shown = {.tasks = 0};

    fl_client_shown_begin(&shown, FL_CLIENT_WORK_TRAIN, SECOND);
    shown_on(&shown, FL_CEV_TRAINED, 3 * SECOND);
    fl_client_shown_begin(&shown, FL_CLIENT_WORK_TRAIN, 4 * SECOND);
    shown_on(&shown, FL_CEV_TRAIN_FAILED, 5 * SECOND);
    ck_assert_uint_eq(shown.work[FL_CLIENT_WORK_TRAIN], 2);
    ck_assert_uint_eq(shown.failures[FL_CLIENT_WORK_TRAIN], 1);
    ck_assert_uint_eq(shown_count(&shown.seconds[FL_CLIENT_WORK_TRAIN]), 1);
    ck_assert_double_eq(shown.seconds[FL_CLIENT_WORK_TRAIN].sum, 2.0);
}

TEST(an_end_without_a_beginning_counts_as_nothing)
{
    struct fl_client_shown shown = {.tasks = 0};

    shown_on(&shown, FL_CEV_FETCH_FAILED, SECOND);
    shown_on(&shown, FL_CEV_DISCONNECTED, SECOND);
    ck_assert_uint_eq(shown.failures[FL_CLIENT_WORK_FETCH], 0);
    ck_assert_uint_eq(shown.failures[FL_CLIENT_WORK_CONNECT], 0);
}

TEST(a_verdict_ends_the_push)
{
    struct fl_client_shown shown = {.tasks = 0};

    shown_on(&shown, FL_CEV_TASK, SECOND);
    fl_client_shown_begin(&shown, FL_CLIENT_WORK_PUSH, SECOND);
    shown_on(&shown, FL_CEV_ACCEPTED, 2 * SECOND);
    fl_client_shown_begin(&shown, FL_CLIENT_WORK_PUSH, 3 * SECOND);
    shown_on(&shown, FL_CEV_REJECTED, 4 * SECOND);
    ck_assert_uint_eq(shown.tasks, 1);
    ck_assert_uint_eq(shown.verdicts[FL_CLIENT_ACCEPTED], 1);
    ck_assert_uint_eq(shown.verdicts[FL_CLIENT_REJECTED], 1);
    ck_assert_uint_eq(shown.failures[FL_CLIENT_WORK_PUSH], 1);
    ck_assert_uint_eq(shown_count(&shown.seconds[FL_CLIENT_WORK_PUSH]), 1);
    ck_assert_uint_eq(shown.accepted_ms, 1700000000000);
}

TEST(at_most_300_series)
{
    ck_assert_uint_le(fl_metrics_series(fl_client_metrics) + fl_metrics_series(fl_process_metrics),
                      300);
}
