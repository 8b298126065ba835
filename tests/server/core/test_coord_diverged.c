/* Clients whose training left the finite numbers: the same attempt is not repeated for ever. */
#include <check.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

#define WHAT_TO_DO "; lower training.learning_rate and restart the server"
#define GOES_ON    "; 'flctl resume' continues"

static const float moved[] = {1, 2, 3};

/* Clients a, b and c train in round 1, and so many of them have to answer. */
static struct script *training(const char *preset, uint32_t min_responders)
{
    struct script *s = script_new(preset);

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.min_responders = min_responders;
    s->conf.rounds = 1;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 300);
    script_join(s, "b", 100);
    script_join(s, "c", 100);
    script_forget(s);
    return s;
}

TEST(too_few_for_want_of_diverged_clients_pause_once_that_is_on_disk)
{
    struct script *s = training("fedavg", 2);

    script_diverged(s, "a", "NaN\n");
    s->manual = true;
    script_diverged(s, "c", "NaN");
    script_why(s, "round 1 attempt 1 has ended (diverged: 2 of 3 clients report NaN or infinite "
                  "values in training), writing that to disk; then the federation pauses");
    ck_assert_uint_eq(s->n_works, 1); /* Its end is not written before the pause is on disk. */
    script_answer(s);
    ck_assert_uint_eq(s->n_works, 1);
    script_answer(s);
    script_expect(s, "[    0] - client 'a' diverged: NaN?\n"
                     "[    0] - client 'c' diverged: NaN\n"
                     "[    0] - round 1 attempt 1: TRAINING -> IDLE, aborted (diverged: 2 of 3 "
                     "clients report NaN or infinite values in training), retrying in 50 ms\n"
                     "[    0] persist pause: round 1 attempt 1 diverged: 2 of 3 clients report NaN "
                     "or infinite values in training" WHAT_TO_DO "\n"
                     "[    0] persist selection 1.2\n"
                     "[    0] b DISMISSED 1.1\n"
                     "[    0] closed 1.1\n"
                     "[    0] - round 1 attempt 2: IDLE -> PAUSED, round 1 attempt 1 diverged: 2 "
                     "of 3 clients report NaN or infinite values in training" WHAT_TO_DO "\n");
    script_why(s, "round 1 is PAUSED: round 1 attempt 1 diverged: 2 of 3 clients report NaN or "
                  "infinite values in training" WHAT_TO_DO GOES_ON);
    script_run_to(s, 100000);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    script_free(s);
}

TEST(resume_begins_the_next_attempt_of_the_round_and_forgets_who_diverged)
{
    struct script *s = training("fedavg", 3);

    script_diverged(s, "a", "NaN");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    script_simple(s, FL_EV_RESUME);
    script_run_to(s, 50);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_uint_eq(fl_coord_round(s->coord), 1);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    ck_assert_uint_eq(fl_coord_aborts(s->coord), 1);
    script_failed(s, "b", "no power");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 3);
    script_free(s);
}

TEST(a_server_that_stops_does_so_in_this_pause_too)
{
    struct script *s = training("fedavg", 3);

    script_diverged(s, "b", "NaN");
    script_simple(s, FL_EV_DRAIN);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    script_free(s);
}

/* What the pause leaves on disk: the reason, and that attempt 2 is the next, with no parts. */
TEST(a_restart_stays_paused_and_resume_begins_the_next_attempt)
{
    static const struct fl_client_rec clients[] = {{.id = 0, .name = "a", .samples = 300}};
    const struct fl_coord_resume resume = {.clients = clients,
                                           .n_clients = 1,
                                           .open_round = 1,
                                           .open_attempt = 2,
                                           .pause = "round 1 attempt 1 diverged: NaN"};
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 300);
    script_why(s, "round 1 is PAUSED: round 1 attempt 1 diverged: NaN" GOES_ON);
    script_simple(s, FL_EV_RESUME);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_diverged(s, "a", "NaN");
    script_why(s, "round 1 is PAUSED: round 1 attempt 2 diverged: 1 of 1 clients report NaN or "
                  "infinite values in training" WHAT_TO_DO GOES_ON);
    script_free(s);
}

TEST(the_round_goes_on_when_enough_others_respond_and_says_how_many_diverged)
{
    struct script *s = training("fedavg", 2);

    script_diverged(s, "b", "NaN");
    script_why(s, "round 1 is TRAINING: 0 of 3 reports are in, 1 diverged, waiting 1.0 s more for: "
                  "a, c");
    script_report(s, "a", NULL);
    script_report(s, "c", NULL);
    script_stored(s, "a");
    script_forget(s);
    script_stored(s, "c");
    script_expect(s, "[    0] persist update 1.1 c:accepted:111\n"
                     "[    0] c ACCEPTED 1.1\n"
                     "[    0] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 "
                     "responders\n"
                     "[    0] aggregate 1.1 a:accepted:111 c:accepted:111\n"
                     "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 112 of "
                     "112 bytes uploaded\n"
                     "[    0] commit 1.1\n"
                     "[    0] closed 1.1\n"
                     "[    0] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 3 "
                     "clients, 1 diverged\n"
                     "[    0] * DRAIN 2.1 (all rounds are done)\n"
                     "[    0] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
                     "[    0] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
                     "[    0] FINISHED\n");
    script_free(s);
}

/* b and c would have been enough. */
TEST(one_that_failed_beside_one_that_diverged_pauses_too)
{
    struct script *s = training("fedavg", 2);

    script_failed(s, "a", "no power");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_diverged(s, "b", "NaN");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    script_free(s);
}

TEST(an_attempt_that_the_diverged_would_not_have_saved_is_repeated)
{
    struct script *s = training("fedavg", 2);

    script_failed(s, "a", "no power");
    script_failed(s, "b", "no power");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_run_to(s, 50);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_diverged(s, "a", "NaN"); /* one of three: two can still respond */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_run_to(s, 1049);
    script_forget(s);
    script_run_to(s, 1050);
    script_expect(s, "[ 1050] b DISMISSED 1.2\n"
                     "[ 1050] c DISMISSED 1.2\n"
                     "[ 1050] - round 1: timed out at the deadline: b, c\n"
                     "[ 1050] - round 1 attempt 2: TRAINING -> IDLE, aborted (fewer than 2 can "
                     "still respond), retrying in 100 ms\n"
                     "[ 1050] persist selection 1.3\n"
                     "[ 1050] closed 1.2\n");
    script_free(s);
}

TEST(an_update_that_is_missing_because_it_diverged_pauses)
{
    struct script *s = training("fedldf", 1);

    script_report(s, "a", moved);
    script_report(s, "b", moved);
    script_report(s, "c", moved);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    ck_assert_int_eq(fl_coord_part(s->coord, script_id(s, "b"))->state, FL_PARTICIPANT_EMPTY);
    script_diverged(s, "a", "the codec has no such number");
    script_why(s, "round 1 is PAUSED: round 1 attempt 1 diverged: 1 of 3 clients report NaN or "
                  "infinite values in training" WHAT_TO_DO GOES_ON);
    script_free(s);
}

TEST(bad_updates_beside_a_diverged_client_pause)
{
    struct script *s = training("fedavg", 2);

    script_diverged(s, "a", "NaN");
    script_report(s, "b", NULL);
    script_report(s, "c", NULL);
    script_stored(s, "b");
    s->manual = true;
    script_stored(s, "c");
    script_answer(s);
    script_fail(s, FL_EFORMAT, "unit b: too long", script_id(s, "b"));
    script_answer_all(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    script_free(s);
}

TEST(what_comes_too_late_or_twice_is_not_counted)
{
    struct script *s = training("fedavg", 2);

    script_report(s, "a", NULL);
    script_stored(s, "a");
    script_diverged(s, "a", "NaN"); /* accepted before */
    script_diverged(s, "b", "NaN");
    script_diverged(s, "b", "NaN");
    script_why(s, "round 1 is TRAINING: 1 of 3 reports are in, 1 diverged, waiting 1.0 s more for: "
                  "c");
    script_free(s);
}
