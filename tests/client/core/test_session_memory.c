/* A session without memory ends and asks again: what the server said is not lost in silence. */

#include "tests/lib/failmalloc.h"
#include "tests/lib/session_trace.h"
#include "tests/lib/suites.h"

/* Nothing of Check or of the trace in between: they allocate too. */
static struct fl_session_effects step_without_memory(struct fl_session_event event)
{
    struct fl_session_effects effects;

    event.now_ms = world.now_ms;
    failmalloc_start(0, true);
    fl_session_step(world.session, &event, &effects);
    (void)failmalloc_stop();
    return effects;
}

static void expect_end(struct fl_session_effects effects, const char *why)
{
    ck_assert_uint_ge(effects.n, 1);
    ck_assert_int_eq(effects.list[0].type, FL_CEFF_DISCONNECT);
    ck_assert_str_eq(effects.list[0].text, why);
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_OFFLINE);
}

TEST_CASE("session_memory", session_setup, session_teardown);

TEST(a_task_whose_plan_finds_no_memory_is_asked_for_in_the_next_session)
{
    join();
    expect_end(step_without_memory(session_event_task(7, 1, true, "10")),
               "out of memory for a Task");
    rejoin();
    go(session_event_task(7, 1, true, "10"));
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_FETCHING);
}

TEST(a_plan_that_finds_no_memory_is_asked_for_in_the_next_session)
{
    join_and_report();
    expect_end(step_without_memory(session_event_plan(7, 1, "10")), "out of memory for a Plan");
    rejoin();
    go(session_event_task(7, 1, true, "10")); /* The result is still held. */
    ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_PUSHING);
}
