/* Problems: one phrase each with cause and subject, while the cause lasts and no longer. */
#include <check.h>
#include <string.h>

#include "server/core/problems.h"
#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

/* The phrase of this kind, and that no other kind has one. */
static void only(const struct script *s, enum fl_problem_kind kind, const char *text)
{
    struct fl_problems problems = {0};
    size_t i;

    fl_coord_problems(s->coord, s->now, &problems);
    for (i = 0; i < FL_PROBLEM_N; i++) {
        ck_assert_msg(strcmp(problems.of[i].text, i == kind ? text : "") == 0,
                      "problem %s is \"%s\"", fl_problem_words[i], problems.of[i].text);
    }
}

static void none(const struct script *s)
{
    only(s, FL_PROBLEM_N, "");
}

/* A round of a and b, which needs both. */
static struct script *pair(void)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    s->conf.min_clients = 2;
    s->conf.min_responders = 2;
    s->conf.straggler_factor = 100;
    s->conf.straggler_min_ms = 50000;
    s->conf.train_ms = 100000;
    s->conf.upload_ms = 100000;
    s->conf.lost_grace_ms = 1000;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    return s;
}

TEST(a_disconnected_participant_is_named_until_it_reconnects)
{
    struct script *s = pair();

    none(s);
    script_lost(s, "b");
    only(s, FL_PROBLEM_DISCONNECTED, "disconnected: b");
    script_join(s, "b", 100);
    none(s);
    script_free(s);
}

/* As behind a firewall, or of a host that is off: the cause is another one than a client that left.
 */
TEST(a_participant_whose_session_timed_out_is_unreachable_until_it_reconnects)
{
    struct script *s = pair();

    script_silent(s, "b");
    only(s, FL_PROBLEM_UNREACHABLE,
         "nothing is received any more (host or network down, or a firewall) from: b");
    script_join(s, "b", 100);
    none(s);
    script_lost(s, "b");
    only(s, FL_PROBLEM_DISCONNECTED, "disconnected: b");
    script_free(s);
}

TEST(a_client_that_the_next_round_needs_is_named)
{
    struct script *s = pair();

    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "a");
    script_respond(s, "b");
    script_lost(s, "b");
    script_run_to(s, 5000); /* Its grace has passed, and the attempt is aborted. */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    only(s, FL_PROBLEM_DISCONNECTED, "disconnected: b");
    script_free(s);
}

TEST(a_slow_participant_is_named_after_twice_the_time_of_the_others)
{
    struct script *s = pair();

    script_run_to(s, 500);
    script_report(s, "a", NULL);
    script_run_to(s, 3999);
    none(s);
    script_run_to(s, 4000);
    only(s, FL_PROBLEM_SLOW, "slower than the others: b");
    script_report(s, "b", NULL);
    none(s);
    script_run_to(s, 4200);
    script_stored(s, "a");
    /* It may upload from 500 on, b from 4000 on. */
    script_run_to(s, 4000 + 2 * 3700 + 2999);
    none(s);
    script_run_to(s, 4000 + 2 * 3700 + 3000);
    only(s, FL_PROBLEM_SLOW, "slower than the others: b");
    script_stored(s, "b");
    none(s);
    script_free(s);
}

TEST(a_round_that_diverged_is_named_until_the_pause_ends)
{
    struct script *s = pair();

    script_diverged(s, "a", "NaN");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    only(s, FL_PROBLEM_DIVERGED,
         "round 1 attempt 1 diverged: 1 of 2 clients report NaN or infinite values in training; "
         "lower training.learning_rate and restart the server");
    script_free(s);
}

TEST(a_quarantined_client_is_named)
{
    struct script *s = pair();

    script_of_client(s, FL_EV_QUARANTINE, "b", "for the test");
    script_run_to(s, 5000);
    only(s, FL_PROBLEM_QUARANTINED, "client 'b' is quarantined");
    script_free(s);
}
