/* What a client session does in a round, as text that anyone can read. */

#include "tests/lib/session_trace.h"
#include "tests/lib/suites.h"

TEST_CASE("session_round", session_setup, session_teardown);

TEST(a_round_with_feedback)
{
    go(session_event_key(FL_CEV_START, 0, 0));
    at(3);
    go(session_event(FL_CEV_CONNECTED));
    at(5);
    go(session_event_welcome(5000));
    at(10);
    go(session_event_task(1, 0, false, NULL));
    at(50);
    go(session_event_key(FL_CEV_FETCHED, 1, 0));
    at(900);
    go(session_event_key(FL_CEV_TRAINED, 1, 0));
    at(1000);
    go(session_event_plan(1, 0, "01"));
    at(1200);
    go(session_event_key(FL_CEV_ACCEPTED, 1, 0));
    TRACE("[    0] < start\n"
          "          OFFLINE -> CONNECTING: start\n"
          "        > connect\n"
          "[    3] < connected\n"
          "          CONNECTING -> GREETING: connected\n"
          "        > hello\n"
          "[    5] < welcome\n"
          "          GREETING -> READY: welcome\n"
          "[   10] < task 1/0\n"
          "          READY -> FETCHING: task 1/0\n"
          "        > fetch 1/0\n"
          "[   50] < fetched 1/0\n"
          "          FETCHING -> TRAINING: fetched 1/0\n"
          "        > train 1/0\n"
          "[  900] < trained 1/0\n"
          "          TRAINING -> REPORTED: trained 1/0\n"
          "        > report 1/0\n"
          "[ 1000] < plan 1/0\n"
          "          REPORTED -> PUSHING: plan 1/0\n"
          "        > push 1/0 01\n"
          "[ 1200] < accepted 1/0\n"
          "        > drop 1/0\n"
          "        > cancel push 1/0\n"
          "          PUSHING -> READY: accepted\n");
}

TEST(a_task_that_carries_its_plan_is_pushed_after_the_report)
{
    join();
    go(session_event_task(1, 0, true, NULL));
    go(session_event_key(FL_CEV_FETCHED, 1, 0));
    go(session_event_key(FL_CEV_TRAINED, 1, 0));
    TRACE("[    0] < task 1/0\n"
          "          READY -> FETCHING: task 1/0\n"
          "        > fetch 1/0\n"
          "[    0] < fetched 1/0\n"
          "          FETCHING -> TRAINING: fetched 1/0\n"
          "        > train 1/0\n"
          "[    0] < trained 1/0\n"
          "          TRAINING -> REPORTED: trained 1/0\n"
          "        > report 1/0\n"
          "          REPORTED -> PUSHING: plan 1/0\n"
          "        > push 1/0\n");
}

TEST(an_empty_plan_pushes_nothing_and_is_accepted)
{
    join_and_report();
    go(session_event_plan(7, 1, "00"));
    go(session_event_key(FL_CEV_ACCEPTED, 7, 1));
    TRACE("[    0] < plan 7/1\n"
          "[    0] < accepted 7/1\n"
          "        > drop 7/1\n"
          "          REPORTED -> READY: accepted\n");
}

TEST(accepted_without_a_plan_ends_the_round_too)
{
    join_and_report();
    go(session_event_key(FL_CEV_ACCEPTED, 7, 1));
    TRACE("[    0] < accepted 7/1\n"
          "        > drop 7/1\n"
          "          REPORTED -> READY: accepted\n");
}

TEST(training_goes_on_without_a_connection_and_is_reported_after_it)
{
    join();
    fetch_and_train(7, 1);
    session_trace_skip(&world);
    at(2000);
    lose("reset by peer");
    at(2500);
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    session_trace_tick(&world);
    go(session_event(FL_CEV_CONNECTED));
    go(session_event_welcome(5000));
    go(session_event_task(7, 1, false, NULL));
    TRACE("[ 2000] < disconnected\n"
          "          TRAINING -> OFFLINE: connection lost: reset by peer, reconnecting in 1171 ms\n"
          "[ 2500] < trained 7/1\n"
          "[ 3171] < tick\n"
          "          OFFLINE -> CONNECTING: the pause has ended\n"
          "        > connect\n"
          "[ 3171] < connected\n"
          "          CONNECTING -> GREETING: connected\n"
          "        > hello 7/1\n"
          "[ 3171] < welcome\n"
          "          GREETING -> READY: welcome\n"
          "[ 3171] < task 7/1\n"
          "          READY -> REPORTED: result pending of 7/1\n"
          "        > report 7/1\n");
}

TEST(training_that_outlives_a_reconnect_is_not_begun_again)
{
    join();
    fetch_and_train(7, 1);
    lose("reset by peer");
    rejoin();
    go(session_event_task(7, 1, false, NULL));
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    TRACE("[ 1171] < task 7/1\n"
          "          READY -> TRAINING: still training 7/1\n"
          "[ 1171] < trained 7/1\n"
          "          TRAINING -> REPORTED: trained 7/1\n"
          "        > report 7/1\n");
}

TEST(a_result_on_disk_is_reported_after_a_restart)
{
    go(session_event_key(FL_CEV_START, 7, 1));
    go(session_event(FL_CEV_CONNECTED));
    go(session_event_welcome(5000));
    go(session_event_task(7, 1, true, "10"));
    TRACE("[    0] < start 7/1\n"
          "          OFFLINE -> CONNECTING: start\n"
          "        > connect\n"
          "[    0] < connected\n"
          "          CONNECTING -> GREETING: connected\n"
          "        > hello 7/1\n"
          "[    0] < welcome\n"
          "          GREETING -> READY: welcome\n"
          "[    0] < task 7/1\n"
          "          READY -> REPORTED: result pending of 7/1\n"
          "        > report 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1 10\n");
}

TEST(another_rounds_task_cancels_training)
{
    join();
    fetch_and_train(7, 1);
    session_trace_skip(&world);
    go(session_event_task(8, 1, false, NULL));
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    TRACE("[    0] < task 8/1\n"
          "          TRAINING -> READY: the server continues with 8/1\n"
          "        > cancel train 7/1\n"
          "          READY -> FETCHING: task 8/1\n"
          "        > fetch 8/1\n"
          "[    0] < trained 7/1\n"
          "        > drop 7/1\n");
}

TEST(another_attempts_task_drops_the_old_result)
{
    join_and_report();
    go(session_event_plan(7, 1, NULL));
    go(session_event_task(7, 2, false, NULL));
    TRACE("[    0] < plan 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1\n"
          "[    0] < task 7/2\n"
          "        > cancel push 7/1\n"
          "          PUSHING -> READY: the server continues with 7/2\n"
          "        > drop 7/1\n"
          "          READY -> FETCHING: task 7/2\n"
          "        > fetch 7/2\n");
}

TEST(another_rounds_task_cancels_training_that_outlived_a_reconnect)
{
    join();
    fetch_and_train(7, 1);
    lose("reset by peer");
    rejoin();
    go(session_event_task(9, 0, false, NULL));
    TRACE("[ 1171] < task 9/0\n"
          "        > cancel train 7/1\n"
          "          READY -> FETCHING: task 9/0\n"
          "        > fetch 9/0\n");
}

TEST(dismissal_ends_a_round_in_every_state)
{
    join();
    go(session_event_task(1, 0, false, NULL));
    go(session_event_key(FL_CEV_DISMISSED, 1, 0));
    fetch_and_train(2, 0);
    go(session_event_key(FL_CEV_DISMISSED, 2, 0));
    fetch_and_train(3, 0);
    go(session_event_key(FL_CEV_TRAINED, 3, 0));
    go(session_event_key(FL_CEV_DISMISSED, 3, 0));
    TRACE("[    0] < task 1/0\n"
          "          READY -> FETCHING: task 1/0\n"
          "        > fetch 1/0\n"
          "[    0] < dismissed 1/0\n"
          "        > cancel fetch 1/0\n"
          "          FETCHING -> READY: dismissed\n"
          "[    0] < task 2/0\n"
          "          READY -> FETCHING: task 2/0\n"
          "        > fetch 2/0\n"
          "[    0] < fetched 2/0\n"
          "          FETCHING -> TRAINING: fetched 2/0\n"
          "        > train 2/0\n"
          "[    0] < dismissed 2/0\n"
          "        > cancel train 2/0\n"
          "          TRAINING -> READY: dismissed\n"
          "[    0] < task 3/0\n"
          "          READY -> FETCHING: task 3/0\n"
          "        > fetch 3/0\n"
          "[    0] < fetched 3/0\n"
          "          FETCHING -> TRAINING: fetched 3/0\n"
          "        > train 3/0\n"
          "[    0] < trained 3/0\n"
          "          TRAINING -> REPORTED: trained 3/0\n"
          "        > report 3/0\n"
          "[    0] < dismissed 3/0\n"
          "        > drop 3/0\n"
          "          REPORTED -> READY: dismissed\n");
}

TEST(a_rejected_update_is_dropped)
{
    join_and_report();
    go(session_event_plan(7, 1, "11"));
    session_trace_skip(&world);
    go(session_event_failed(FL_CEV_REJECTED, 7, 1, "not finite", true));
    go(session_event_key(FL_CEV_ACCEPTED, 7, 1));
    TRACE("[    0] < rejected 7/1\n"
          "        > drop 7/1\n"
          "        > cancel push 7/1\n"
          "          PUSHING -> READY: rejected: not finite\n"
          "[    0] < accepted 7/1\n");
}

TEST(verdicts_after_a_reconnect_reach_what_is_kept)
{
    join_and_report();
    lose("reset by peer");
    rejoin();
    go(session_event_key(FL_CEV_ACCEPTED, 6, 0));
    go(session_event_key(FL_CEV_ACCEPTED, 7, 1));
    TRACE("[ 1171] < accepted 6/0\n"
          "[ 1171] < accepted 7/1\n"
          "        > drop 7/1\n");
    fetch_and_train(8, 0);
    lose("reset by peer");
    rejoin();
    go(session_event_key(FL_CEV_DISMISSED, 8, 0));
    TRACE("[ 3517] < dismissed 8/0\n"
          "        > cancel train 8/0\n");
}

TEST(a_push_that_fails_for_a_while_is_tried_again)
{
    join_and_report();
    go(session_event_plan(7, 1, "10"));
    session_trace_skip(&world);
    go(session_event_failed(FL_CEV_PUSH_FAILED, 7, 1, "unavailable", false));
    session_trace_tick(&world);
    go(session_event_failed(FL_CEV_PUSH_FAILED, 7, 1, "unavailable", false));
    session_trace_tick(&world);
    go(session_event_failed(FL_CEV_PUSH_FAILED, 7, 1, "no such grant", true));
    TRACE("[    0] < push failed 7/1\n"
          "          pushing 7/1 failed: unavailable, retrying in 1171 ms\n"
          "[ 1171] < tick\n"
          "        > push 7/1 10\n"
          "[ 1171] < push failed 7/1\n"
          "          pushing 7/1 failed: unavailable, retrying in 2346 ms\n"
          "[ 3517] < tick\n"
          "        > push 7/1 10\n"
          "[ 3517] < push failed 7/1\n"
          "        > failed 7/1: pushing failed: no such grant\n"
          "        > drop 7/1\n"
          "        > cancel push 7/1\n"
          "          PUSHING -> READY: pushing failed: no such grant\n");
}

TEST(an_upload_that_the_server_cannot_read_is_told_and_its_result_stays)
{
    struct fl_session_event event =
        session_event_failed(FL_CEV_PUSH_FAILED, 7, 1, "no such message", true);

    event.u.failed.keeps = true;
    join_and_report();
    go(session_event_plan(7, 1, "10"));
    session_trace_skip(&world);
    go(event);
    go(session_event_failed(FL_CEV_REJECTED, 7, 1, "because of it", true));
    TRACE("[    0] < push failed 7/1\n"
          "        > failed 7/1: pushing failed: no such message\n"
          "        > cancel push 7/1\n"
          "          PUSHING -> READY: pushing failed: no such message\n"
          "[    0] < rejected 7/1\n"
          "        > drop 7/1\n");
}

TEST(a_fetch_that_fails_for_a_while_is_tried_again)
{
    join();
    go(session_event_task(7, 1, false, NULL));
    session_trace_skip(&world);
    go(session_event_failed(FL_CEV_FETCH_FAILED, 7, 1, "unavailable", false));
    session_trace_tick(&world);
    go(session_event_failed(FL_CEV_FETCH_FAILED, 7, 1, "the round is over", true));
    TRACE("[    0] < fetch failed 7/1\n"
          "          fetching 7/1 failed: unavailable, retrying in 1171 ms\n"
          "[ 1171] < tick\n"
          "        > fetch 7/1\n"
          "[ 1171] < fetch failed 7/1\n"
          "        > failed 7/1: fetching failed: the round is over\n"
          "        > cancel fetch 7/1\n"
          "          FETCHING -> READY: fetching failed: the round is over\n");
}

TEST(a_failed_training_is_told_to_the_server)
{
    join();
    fetch_and_train(7, 1);
    session_trace_skip(&world);
    go(session_event_failed(FL_CEV_TRAIN_FAILED, 7, 1, "loss is not finite", true));
    TRACE("[    0] < train failed 7/1\n"
          "        > failed 7/1: training failed: loss is not finite\n"
          "          TRAINING -> READY: training failed: loss is not finite\n");
}

TEST(what_diverged_is_told_as_that)
{
    struct fl_session_event event = session_event_failed(FL_CEV_TRAIN_FAILED, 7, 1, "NaN", true);

    event.u.failed.diverged = true;
    join();
    fetch_and_train(7, 1);
    session_trace_skip(&world);
    go(event);
    TRACE("[    0] < train failed 7/1\n"
          "        > failed 7/1 diverged: training failed: NaN\n"
          "          TRAINING -> READY: training failed: NaN\n");
}

TEST(a_training_that_fails_offline_is_begun_again_with_the_next_task)
{
    join();
    fetch_and_train(7, 1);
    lose("reset by peer");
    session_trace_skip(&world);
    go(session_event_failed(FL_CEV_TRAIN_FAILED, 7, 1, "killed", true));
    rejoin();
    go(session_event_task(7, 1, false, NULL));
    TRACE("[ 1171] < task 7/1\n"
          "          READY -> FETCHING: task 7/1\n"
          "        > fetch 7/1\n");
}

TEST(an_evaluation_does_not_disturb_a_round)
{
    struct fl_session_event event = session_event(FL_CEV_EVALUATE);

    event.u.evaluate.round = 6;
    join();
    go(event);
    go(event);
    go(session_event_task(7, 1, false, NULL));
    go(session_event_key(FL_CEV_EVALUATED, 6, 0));
    go(session_event_key(FL_CEV_FETCHED, 7, 1));
    go(event);
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    event.u.evaluate.round = 7;
    go(event);
    go(session_event_plan(7, 1, NULL));
    TRACE("[    0] < evaluate\n"
          "        > evaluate 6/0\n"
          "[    0] < evaluate\n"
          "[    0] < task 7/1\n"
          "          READY -> FETCHING: task 7/1\n"
          "        > fetch 7/1\n"
          "[    0] < evaluated 6/0\n"
          "[    0] < fetched 7/1\n"
          "          FETCHING -> TRAINING: fetched 7/1\n"
          "        > train 7/1\n"
          "[    0] < evaluate\n"
          "        > no evaluation 6/0: no evaluation of round 6: this client is training\n"
          "[    0] < trained 7/1\n"
          "          TRAINING -> REPORTED: trained 7/1\n"
          "        > report 7/1\n"
          "[    0] < evaluate\n"
          "        > evaluate 7/0\n"
          "[    0] < plan 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1\n");
}

TEST(an_evaluation_that_fails_is_told_in_the_session_that_asked_for_it)
{
    struct fl_session_event event = session_event(FL_CEV_EVALUATE);

    event.u.evaluate.round = 6;
    join();
    go(event);
    session_trace_skip(&world);
    go(session_event_failed(FL_CEV_EVALUATE_FAILED, 5, 0, "of another one", false));
    go(session_event_failed(FL_CEV_EVALUATE_FAILED, 6, 0, "no test data", false));
    go(session_event_failed(FL_CEV_EVALUATE_FAILED, 6, 0, "twice", false));
    go(event);
    go(session_event_failed(FL_CEV_DISCONNECTED, 0, 0, "gone", false));
    go(session_event_failed(FL_CEV_EVALUATE_FAILED, 6, 0, "too late", false));
    TRACE("[    0] < evaluate failed 5/0\n"
          "[    0] < evaluate failed 6/0\n"
          "        > no evaluation 6/0: no evaluation of round 6: no test data\n"
          "[    0] < evaluate failed 6/0\n"
          "[    0] < evaluate\n"
          "        > evaluate 6/0\n"
          "[    0] < disconnected\n"
          "          READY -> OFFLINE: connection lost: gone, reconnecting in 1171 ms\n"
          "[    0] < evaluate failed 6/0\n");
}

TEST(commands_that_come_twice_count_once)
{
    join();
    go(session_event_task(7, 1, false, NULL));
    session_trace_skip(&world);
    go(session_event_task(7, 1, false, NULL));
    go(session_event_key(FL_CEV_FETCHED, 7, 1));
    go(session_event_key(FL_CEV_FETCHED, 7, 1));
    go(session_event_task(7, 1, false, NULL));
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    go(session_event_plan(7, 1, "10"));
    go(session_event_plan(7, 1, "10"));
    go(session_event_task(7, 1, false, NULL));
    go(session_event_key(FL_CEV_ACCEPTED, 7, 1));
    go(session_event_key(FL_CEV_ACCEPTED, 7, 1));
    TRACE("[    0] < task 7/1\n"
          "[    0] < fetched 7/1\n"
          "          FETCHING -> TRAINING: fetched 7/1\n"
          "        > train 7/1\n"
          "[    0] < fetched 7/1\n"
          "[    0] < task 7/1\n"
          "[    0] < trained 7/1\n"
          "          TRAINING -> REPORTED: trained 7/1\n"
          "        > report 7/1\n"
          "[    0] < trained 7/1\n"
          "[    0] < plan 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1 10\n"
          "[    0] < plan 7/1\n"
          "[    0] < task 7/1\n"
          "[    0] < accepted 7/1\n"
          "        > drop 7/1\n"
          "        > cancel push 7/1\n"
          "          PUSHING -> READY: accepted\n"
          "[    0] < accepted 7/1\n");
}

TEST(another_plan_for_the_same_round_replaces_the_first)
{
    join_and_report();
    go(session_event_plan(7, 1, "00"));
    go(session_event_plan(7, 1, "10"));
    go(session_event_plan(7, 1, "11"));
    TRACE("[    0] < plan 7/1\n"
          "[    0] < plan 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1 10\n"
          "[    0] < plan 7/1\n"
          "        > cancel push 7/1\n"
          "          PUSHING -> REPORTED: another plan 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1 11\n");
}

TEST(a_plan_for_what_is_not_kept_is_answered)
{
    join();
    go(session_event_plan(3, 0, "11"));
    TRACE("[    0] < plan 3/0\n"
          "        > failed 3/0: no result of this round\n");
}

TEST(a_plan_after_a_reconnect_finds_the_kept_result)
{
    join_and_report();
    lose("reset by peer");
    rejoin();
    go(session_event_plan(7, 1, "11"));
    TRACE("[ 1171] < plan 7/1\n"
          "          READY -> REPORTED: result pending of 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1 11\n");
}

TEST(a_plan_that_comes_before_the_result_waits_for_it)
{
    join();
    fetch_and_train(7, 1);
    lose("reset by peer");
    rejoin();
    go(session_event_plan(7, 1, "01"));
    go(session_event_key(FL_CEV_TRAINED, 7, 1));
    TRACE("[ 1171] < plan 7/1\n"
          "          READY -> TRAINING: still training 7/1\n"
          "[ 1171] < trained 7/1\n"
          "          TRAINING -> REPORTED: trained 7/1\n"
          "        > report 7/1\n"
          "          REPORTED -> PUSHING: plan 7/1\n"
          "        > push 7/1 01\n");
}
