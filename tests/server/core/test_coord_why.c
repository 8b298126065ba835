/* What an operator reads is so: who is waited for and how long, the end, and what was not meant. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

/* A round of a, b and c, in which a second has 1000 ms, and a lost client 100. */
static struct script *three_of(uint32_t min_responders)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.rounds = 2;
    if (min_responders > 0) {
        s->conf.min_responders = min_responders;
    }
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
    return s;
}

static struct script *three(void)
{
    return three_of(0);
}

TEST(who_is_away_is_waited_for_only_as_long_as_its_grace)
{
    struct script *s = three();

    script_respond(s, "a");
    script_run_to(s, 200);
    script_lost(s, "b");
    script_run_to(s, 240);
    script_why(s, "round 1 is TRAINING: 1 of 3 reports are in, waiting 0.8 s more for: b, c; 1 of "
                  "them disconnected: b, given up after 0.1 s more");
    script_respond(s, "c");
    script_why(s, "round 1 is TRAINING: 2 of 3 reports are in, waiting 0.1 s more for: b; 1 of "
                  "them disconnected: b, given up after 0.1 s more");
    script_join(s, "b", 100);
    script_why(s, "round 1 is TRAINING: 2 of 3 reports are in, waiting 0.8 s more for: b");
    script_free(s);
}

TEST(a_grace_that_ends_after_the_deadline_does_not_count)
{
    struct script *s = three();

    script_respond(s, "a");
    script_respond(s, "c");
    script_run_to(s, 950);
    script_lost(s, "b");
    script_why(s, "round 1 is TRAINING: 2 of 3 reports are in, waiting 0.1 s more for: b; 1 of "
                  "them disconnected: b");
    script_free(s);
}

/* What each did is kept with the end of the attempt; `why` says who gave no result until a round is
 * in. */
TEST(an_attempt_that_was_aborted_says_who_was_asked_and_who_gave_no_result)
{
    struct script *s = three_of(3);
    const char *missing[4];
    char out[512];
    size_t n = 0;

    script_respond(s, "a");
    script_run_to(s, 1100);
    ck_assert_msg(strstr(s->ended, "a ") == s->ended, "%s", s->ended);
    ck_assert_msg(strstr(s->ended, "b lost: timed out") != NULL, "%s", s->ended);
    ck_assert_msg(strstr(s->ended, "c lost: timed out") != NULL, "%s", s->ended);
    fl_coord_why(s->coord, s->now, out, sizeof(out), missing, 4, &n);
    ck_assert_msg(strstr(out, "; attempt 1 asked 3 clients, without a result of: ") != NULL, "%s",
                  out);
    script_free(s);
}

TEST(the_end_has_no_next_round)
{
    struct script *s = three();
    unsigned round;

    for (round = 0; round < 2; round++) {
        script_respond(s, "a");
        script_respond(s, "b");
        script_respond(s, "c");
    }
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    script_why(s, "the federation is STOPPED: all 2 rounds are done");
    script_free(s);
}

TEST(evaluation_that_nobody_can_do_is_told)
{
    struct script *s = script_new("fedavg");

    s->conf.evaluate_every = 1;
    s->conf.evaluate_clients = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 5); /* a tenth of it are test samples: none */
    script_why(s, "round 1 is TRAINING: 0 of 1 reports are in, waiting 1.0 s more for: a; "
                  "evaluation.clients is on, but none of the 1 connected clients can evaluate (no "
                  "test samples, or trainer: command)");
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_str_eq(s->warning,
                     "round 1: no client evaluated: evaluation.clients is on, but no connected "
                     "client can evaluate the new model (no test samples, or trainer: command)");
    script_join(s, "b", 100);
    script_why(s, "round 2 is TRAINING: 0 of 1 reports are in, waiting 1.0 s more for: a");
    script_free(s);
}

TEST(what_asks_for_somebody_is_a_warning)
{
    struct script *s = three();

    script_failed(s, "a", "no power");
    ck_assert_str_eq(s->warning, "client 'a' failed: no power");
    script_simple(s, FL_EV_PAUSE);
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    ck_assert_str_eq(s->warning, "round 2 attempt 1: IDLE -> PAUSED, paused by the operator");
    script_free(s);
}

TEST(an_attempt_in_vain_is_a_warning)
{
    struct script *s = three();

    script_failed(s, "a", "no power");
    script_failed(s, "b", "no power");
    script_failed(s, "c", "no power");
    ck_assert_str_eq(s->warning, "round 1 attempt 1: TRAINING -> IDLE, aborted (fewer than 1 can "
                                 "still respond), retrying in 50 ms");
    script_free(s);
}

TEST(what_goes_wrong_with_a_client_is_told_with_its_end)
{
    struct script *s = three();
    char text[900];
    struct fl_event ev = {.type = FL_EV_CLIENT_FAILED};

    (void)memset(text, 'x', sizeof(text));
    (void)memcpy(text, "training failed: ", 17);
    (void)snprintf(text + 850, 50, "KeyError: 'age'\n");
    script_failed(s, "a", text);
    ck_assert_ptr_nonnull(strstr(s->error, "a: training failed: xxx"));
    ck_assert_str_eq(s->error + strlen(s->error) - 20, "xxxxKeyError: 'age'?");
    ck_assert_ptr_nonnull(strstr(s->warning, "xxxxKeyError: 'age'?"));
    script_lost(s, "b");
    script_run_to(s, 100);
    ck_assert_str_eq(s->error, "b: disconnected in a round, and did not reconnect in time");
    script_run_to(s, 1000);
    ck_assert_str_eq(s->error, "c: timed out: no report before the deadline");
    ev.u.failed.client = script_id(s, "c");
    ev.u.failed.reason = "no such solver";
    script_step(s, &ev);
    ck_assert_str_eq(s->error, "c: no such solver");
    ck_assert_str_eq(s->warning, "client 'c' cannot take part: no such solver");
    ev.u.failed.reason = "again"; /* Once a session. */
    script_step(s, &ev);
    ck_assert_str_eq(s->error, "c: no such solver");
    script_free(s);
}

TEST(a_client_that_is_not_available_is_not_selected_and_says_why)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    s->conf.rounds = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join_unavailable(s, "b", 100, "outside\nits hours");
    ck_assert_ptr_nonnull(strstr((const char *)s->log.data,
                                 "client 'b' is not available: outside?its hours; not selected"));
    script_why(s, "round 1 is IDLE: 1 of 2 clients are connected; 1 connected clients are not "
                  "available ('flctl clients' has the reasons): b");
    ck_assert(!fl_coord_available(s->coord, script_id(s, "b")));
    ck_assert(fl_coord_available(s->coord, script_id(s, "a")));
    script_join(s, "c", 100);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_ptr_null(fl_coord_part(s->coord, script_id(s, "b")));
    script_respond(s, "a");
    script_join(s, "b", 100); /* available from now on */
    ck_assert(fl_coord_available(s->coord, script_id(s, "b")));
    script_respond(s, "c");
    ck_assert_ptr_nonnull(fl_coord_part(s->coord, script_id(s, "b")));
    script_free(s);
}

TEST(a_participant_that_is_not_available_any_more_stays_in_its_round)
{
    struct script *s = three();

    script_join_unavailable(s, "b", 100, "on battery");
    ck_assert_ptr_nonnull(fl_coord_part(s->coord, script_id(s, "b")));
    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_ptr_null(fl_coord_part(s->coord, script_id(s, "b")));
    script_free(s);
}
