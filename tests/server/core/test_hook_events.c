/* Which events have a hook, and how many of them wait. */

#include <check.h>
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
