/* Which events have a hook, and how many of them wait. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "server/core/hook_events.h"
#include "tests/lib/suites.h"

TEST(each_hook_has_the_event_of_its_name)
{
    int event;
    int found = 0;

    for (event = 0; event < FL_LOG_EVENT_N; event++) {
        enum fl_hook hook = fl_hook_of((enum fl_log_event)event);

        if (hook != FL_HOOK_N) {
            ck_assert_str_eq(fl_hook_names[hook], fl_log_events[event].name);
            found++;
        }
    }
    ck_assert_int_eq(found, FL_HOOK_N);
}

TEST(a_hook_gets_the_variables_of_its_row_and_no_others)
{
    struct fl_hook_event event = {.hook = FL_HOOK_CLIENT_QUARANTINED};

    fl_hook_event_add(&event, "FL_ROUND=%d", 7);
    fl_hook_event_add(&event, "FL_ACCURACY=%d", 1);
    fl_hook_event_add(&event, "%s=%d", "FL_ROUN", 1);
    fl_hook_event_add(&event, "FL_REASONS=%d", 1);
    fl_hook_event_add(&event, "FL_REASON=%s", "a\nb");
    ck_assert_uint_eq(event.n, 2);
    ck_assert_str_eq(event.variables[0], "FL_ROUND=7");
    ck_assert_str_eq(event.variables[1], "FL_REASON=a?b");
}

TEST(the_table_has_a_row_for_each_hook)
{
    struct fl_buf out;
    char row[64];
    int hook;

    fl_buf_init(&out, 1u << 16);
    ck_assert_int_eq(fl_hooks_reference(&out), FL_OK);
    ck_assert_int_eq(fl_buf_add(&out, "", 1), FL_OK);
    for (hook = 0; hook < FL_HOOK_N; hook++) {
        (void)snprintf(row, sizeof(row), "| `%s` | ", fl_hook_names[hook]);
        ck_assert_ptr_nonnull(strstr((const char *)out.data, row));
    }
    ck_assert_ptr_nonnull(strstr((const char *)out.data, "| all rounds are done | `FL_ROUND` |\n"));
    fl_buf_done(&out);
}

TEST(events_beyond_the_queue_are_left_out_and_counted_once)
{
    struct fl_hook_queue queue = {0};
    unsigned i;

    for (i = 0; i < FL_HOOK_QUEUE; i++) {
        ck_assert(fl_hook_queue_add(&queue));
    }
    ck_assert(!fl_hook_queue_add(&queue));
    ck_assert(!fl_hook_queue_add(&queue));
    ck_assert_uint_eq(fl_hook_queue_end(&queue), 2);
    ck_assert(fl_hook_queue_add(&queue));
    ck_assert(!fl_hook_queue_add(&queue));
    ck_assert_uint_eq(fl_hook_queue_end(&queue), 1);
    ck_assert_uint_eq(fl_hook_queue_end(&queue), 0);
}
