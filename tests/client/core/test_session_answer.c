/* Every command of the server in every state of the client, against docs/clients.md. */

#include <stdio.h>
#include <string.h>

#include "tests/lib/session_trace.h"
#include "tests/lib/states_page.h"
#include "tests/lib/suites.h"

#define N_COMMANDS (FL_CEV_HEARTBEAT - FL_CEV_WELCOME + 1)

static void bring_to(enum fl_session_state state)
{
    if (state == FL_SESSION_OFFLINE) {
        return;
    }
    if (state == FL_SESSION_STOPPED) {
        go(session_event(FL_CEV_STOP));
        return;
    }
    go(session_event_key(FL_CEV_START, 0, 0));
    if (state == FL_SESSION_CONNECTING) {
        return;
    }
    go(session_event(FL_CEV_CONNECTED));
    if (state == FL_SESSION_GREETING) {
        return;
    }
    go(session_event_welcome(5000));
    if (state == FL_SESSION_DONE) {
        go(session_event(FL_CEV_DRAIN));
        return;
    }
    if (state > FL_SESSION_READY) {
        go(session_event_task(7, 1, state == FL_SESSION_PUSHING, NULL));
    }
    if (state > FL_SESSION_FETCHING) {
        go(session_event_key(FL_CEV_FETCHED, 7, 1));
    }
    if (state > FL_SESSION_TRAINING) {
        go(session_event_key(FL_CEV_TRAINED, 7, 1));
    }
}

/* Another task than the one that is going on, a verdict about it, and so on. */
static struct fl_session_event say(enum fl_session_event_type command)
{
    struct fl_session_event event = session_event(command);

    switch (command) {
    case FL_CEV_WELCOME:
        return session_event_welcome(5000);
    case FL_CEV_REFUSED:
        event.u.refused.retry_after_ms = 1000;
        return event;
    case FL_CEV_TASK:
        return session_event_task(8, 1, false, NULL);
    case FL_CEV_PLAN:
        return session_event_plan(7, 1, NULL);
    case FL_CEV_REJECTED:
        return session_event_failed(command, 7, 1, "no", true);
    case FL_CEV_ACCEPTED:
    case FL_CEV_DISMISSED:
        return session_event_key(command, 7, 1);
    case FL_CEV_EVALUATE:
        event.u.evaluate.round = 6;
        return event;
    case FL_CEV_DRAIN:
        event.u.drain.reconnect_after_ms = 1000;
        return event;
    default:
        return event;
    }
}

static bool tells_breach(void)
{
    size_t i;

    for (i = 0; i < world.effects.n; i++) {
        const struct fl_session_effect *e = &world.effects.list[i];

        if (e->type == FL_CEFF_DISCONNECT && e->text != NULL &&
            strstr(e->text, "protocol error of the server"))
        {
            return true;
        }
    }
    return false;
}

TEST_CASE("session_answer", session_setup_staying, session_teardown);

TEST_EACH(each_command_in_each_state_does_what_the_page_says, (FL_SESSION_COUNT * N_COMMANDS))
{
    enum fl_session_state state = (enum fl_session_state)(_i / N_COMMANDS);
    enum fl_session_event_type command =
        (enum fl_session_event_type)(FL_CEV_WELCOME + _i % N_COMMANDS);
    enum fl_session_answer answer = fl_session_answer(state, command);
    char word[32];

    states_page_word("\n### Commands at the client", fl_session_state_name(state),
                     (size_t)(command - FL_CEV_WELCOME), word, sizeof(word));
    bring_to(state);
    ck_assert_int_eq(fl_session_state(world.session), state);
    go(say(command));
    if (strcmp(word, "breach") == 0) {
        ck_assert_int_eq(answer, FL_SESSION_BREACH);
        ck_assert(tells_breach());
        ck_assert_int_eq(fl_session_state(world.session), FL_SESSION_OFFLINE);
    } else if (strcmp(word, "ignores") == 0) {
        ck_assert_int_eq(answer, FL_SESSION_IGNORES);
        ck_assert_uint_eq(world.effects.n, 0);
        ck_assert_int_eq(fl_session_state(world.session), state);
    } else {
        ck_assert_str_eq(word, "takes");
        ck_assert_int_eq(answer, FL_SESSION_TAKES);
        ck_assert(!tells_breach());
    }
}

TEST(a_second_welcome_ends_the_session_and_what_is_under_way)
{
    join_and_report();
    go(session_event_plan(7, 1, NULL));
    session_trace_skip(&world);
    go(session_event_welcome(5000));
    TRACE(
        "[    0] < welcome\n"
        "        > disconnect: protocol error of the server: unexpected Welcome in state PUSHING\n"
        "        > cancel push 7/1\n"
        "          PUSHING -> OFFLINE: protocol error of the server: unexpected Welcome in state "
        "PUSHING, reconnecting in 1171 ms\n");
}

TEST(a_result_of_another_description_is_dropped_and_its_task_trained_anew)
{
    struct fl_session_event welcome = session_event_welcome(5000);

    welcome.u.welcome.held_unfit = "it is for another model";
    go(session_event_key(FL_CEV_START, 7, 1));
    go(session_event(FL_CEV_CONNECTED));
    session_trace_skip(&world);
    go(welcome);
    go(session_event_task(7, 1, true, NULL));
    TRACE("[    0] < welcome\n"
          "        > drop 7/1\n"
          "          GREETING -> READY: welcome\n"
          "[    0] < task 7/1\n"
          "          READY -> FETCHING: task 7/1\n"
          "        > fetch 7/1\n");
}

TEST(a_task_is_new_unless_it_is_of_the_round_that_the_session_is_in_or_of_none)
{
    join_and_report();
    ck_assert(!fl_session_task_is_new(world.session, (struct fl_round_key){7, 1}));
    ck_assert(!fl_session_task_is_new(world.session, (struct fl_round_key){0, 0}));
    ck_assert(fl_session_task_is_new(world.session, (struct fl_round_key){7, 2}));
    ck_assert(fl_session_task_is_new(world.session, (struct fl_round_key){8, 1}));
    go(session_event_key(FL_CEV_DISMISSED, 7, 1));
    ck_assert(fl_session_task_is_new(world.session, (struct fl_round_key){7, 1}));
}

TEST(a_plan_that_grants_units_past_the_model_does_not_fit)
{
    static const uint8_t units[16] = {[0] = 1, [9] = 1};

    ck_assert(fl_session_plan_fits(NULL, 0, 9));
    ck_assert(fl_session_plan_fits(units, 8, 9));
    ck_assert(fl_session_plan_fits(units, 9, 9)); /* whole bytes: the rest is padding */
    ck_assert(fl_session_plan_fits(units, 16, 10));
    ck_assert(!fl_session_plan_fits(units, 16, 9));
    ck_assert(!fl_session_plan_fits(units, 10, 0));
}
