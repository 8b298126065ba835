/* What the operator wishes of the rounds: pause, resume, drain, abort-round; what is answered,
   when; and how the server stops. */
#include <check.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

/* Clients a and b, both in every round. */
static struct script *fresh(void)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    s->conf.rounds = 3;
    return s;
}

static struct script *training(void)
{
    struct script *s = fresh();

    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_forget(s);
    return s;
}

static void respond(struct script *s)
{
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_stored(s, "b");
}

/* From here the script says when work is done. */
static struct script *aggregating(void)
{
    struct script *s = training();

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    s->manual = true;
    script_stored(s, "b");
    script_answer(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_AGGREGATING);
    return s;
}

/* Before the first client has come. */
static struct script *idle(void)
{
    struct script *s = fresh();

    script_create(s, NULL);
    script_start(s);
    script_forget(s);
    return s;
}

TEST_CASE("pause", NULL, NULL);

TEST(a_pause_is_answered_when_it_is_on_disk)
{
    struct script *s = training();

    s->manual = true;
    script_wish(s, FL_EV_PAUSE, "new\ndata");
    script_expect(s, "[    0] - pause requested by the operator\n"
                     "[    0] persist pause: paused by the operator: new?data\n");
    script_answer(s);
    script_expect(s, "[    0] answer: round 1 is finished first, then the federation pauses: "
                     "paused by the operator: new?data\n");
    script_free(s);
}

TEST(a_pause_between_rounds_is_one_at_once)
{
    struct script *s = idle();

    script_simple(s, FL_EV_PAUSE);
    script_expect(s, "[    0] - pause requested by the operator\n"
                     "[    0] persist pause: paused by the operator\n"
                     "[    0] - round 1 attempt 1: IDLE -> PAUSED, paused by the operator\n"
                     "[    0] answer: the federation is paused before round 1: paused by the "
                     "operator\n");
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    script_free(s);
}

TEST(the_first_reason_of_a_pause_stays)
{
    struct script *s = idle();

    script_wish(s, FL_EV_PAUSE, "one");
    script_forget(s);
    script_wish(s, FL_EV_PAUSE, "two");
    script_expect(s, "[    0] answer: already so: the federation is paused before round 1: "
                     "paused by the operator: one\n");
    script_why(s, "round 1 is PAUSED: paused by the operator: one; 'flctl resume' continues");
    script_free(s);
}

/* One write at a time; what was asked for in between is written after it, and answered then. */
TEST(a_pause_that_ends_while_it_is_written_is_written_again)
{
    struct script *s = training();

    s->manual = true;
    script_simple(s, FL_EV_PAUSE);
    script_answer(s);
    script_forget(s);
    script_simple(s, FL_EV_RESUME);
    script_expect(s, "[    0] - resumed by the operator\n"
                     "[    0] persist no pause\n");
    script_simple(s, FL_EV_PAUSE);
    script_expect(s, "[    0] - pause requested by the operator\n");
    script_answer(s);
    script_expect(s, "[    0] persist pause: paused by the operator\n");
    script_answer(s);
    script_expect(s, "[    0] answer: round 1 is finished first, then the federation pauses: "
                     "paused by the operator\n");
    script_free(s);
}

TEST(a_pause_that_cannot_be_written_is_told_and_tried_again)
{
    struct script *s = idle();

    s->manual = true;
    script_simple(s, FL_EV_PAUSE);
    script_forget(s);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_expect(s, "[    0] - the pause of the federation could not be written: no space left, "
                     "retrying in 50 ms\n"
                     "[    0] answer (but): done, but not yet durable: no space left; free some "
                     "space, the write is retried. A crash before that loses the change\n");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PAUSED);
    script_run_to(s, 50);
    script_expect(s, "[   50] persist pause: paused by the operator\n");
    script_answer(s);
    script_expect(s, ""); /* The answer was given. */
    script_free(s);
}

TEST(a_restart_stays_paused_until_it_is_resumed)
{
    const struct fl_coord_resume resume = {.pause = "paused by the operator: one"};
    struct script *s = fresh();

    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_run_to(s, 100000);
    script_why(s, "round 1 is PAUSED: paused by the operator: one; 'flctl resume' continues");
    script_simple(s, FL_EV_RESUME);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_free(s);
}

TEST(a_restart_finishes_the_open_round_before_the_pause)
{
    static const struct fl_client_rec clients[] = {{.id = 0, .name = "a", .samples = 100}};
    static uint8_t all[] = {1, 1, 1};
    const struct fl_participant_rec part = {
        .client = 0, .state = FL_PARTICIPANT_SELECTED, .samples = 100, .units = all};
    const struct fl_coord_resume resume = {.clients = clients,
                                           .n_clients = 1,
                                           .open_round = 1,
                                           .open_attempt = 1,
                                           .parts = &part,
                                           .n_parts = 1,
                                           .pause = "one"};
    struct script *s = fresh();

    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    script_report(s, "a", NULL);
    script_stored(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_why(s, "round 2 is PAUSED: one; 'flctl resume' continues");
    script_free(s);
}

TEST(resume_when_nothing_is_paused_changes_nothing)
{
    struct script *s = training();

    script_simple(s, FL_EV_RESUME);
    script_expect(s, "[    0] answer: nothing to resume: the federation is not paused\n");
    script_free(s);
}

TEST(resume_before_the_open_round_is_over_takes_the_pause_back)
{
    struct script *s = training();

    script_simple(s, FL_EV_PAUSE);
    script_forget(s);
    script_simple(s, FL_EV_RESUME);
    script_expect(s, "[    0] - resumed by the operator\n"
                     "[    0] persist no pause\n"
                     "[    0] answer: resumed: round 1 continues, and the next one follows it\n");
    respond(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_uint_eq(fl_coord_round(s->coord), 2);
    script_free(s);
}

TEST(a_pause_of_a_finished_federation_is_for_a_start_with_more_rounds)
{
    struct script *s = training();

    respond(s);
    respond(s);
    respond(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    script_forget(s);
    script_simple(s, FL_EV_PAUSE);
    script_expect(s, "[    0] - pause requested by the operator\n"
                     "[    0] persist pause: paused by the operator\n"
                     "[    0] answer: all 3 rounds are done; a server that is started with more "
                     "rounds is paused: paused by the operator\n");
    script_free(s);
}

/* --- abort-round --- */

TEST_CASE("abort", NULL, NULL);

TEST(an_aborted_attempt_is_answered_when_its_end_is_on_disk_and_the_next_follows_at_once)
{
    struct script *s = training();

    s->manual = true;
    script_wish(s, FL_EV_ABORT_ROUND, "wrong data");
    script_expect(s, "[    0] - round 1 attempt 1: TRAINING -> IDLE, aborted (by the operator: "
                     "wrong data)\n"
                     "[    0] persist selection 1.2\n");
    script_answer(s);
    script_expect(s, "[    0] a DISMISSED 1.1\n"
                     "[    0] b DISMISSED 1.1\n"
                     "[    0] closed 1.1\n"
                     "[    0] answer: round 1 attempt 1 is aborted; the next attempt follows\n"
                     "[    0] - round 1 attempt 2: IDLE -> SELECTING, 2 of 2 connected clients\n"
                     "[    0] persist selection 1.2 a:selected:111 b:selected:111\n");
    script_free(s);
}

TEST(an_aborted_attempt_lengthens_no_wait)
{
    struct script *s = training();

    script_simple(s, FL_EV_ABORT_ROUND);
    script_simple(s, FL_EV_ABORT_ROUND);
    script_forget(s);
    script_failed(s, "a", "no power");
    script_failed(s, "b", "no power");
    script_why(s,
               "round 1 is IDLE: attempt 4 begins after 0.1 s more (fewer than 1 can still respond)"
               "; attempt 3 asked 2 clients, without a result of: a, b");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 50);
    script_free(s);
}

TEST(what_is_being_written_of_an_attempt_is_written_before_it_is_aborted)
{
    struct script *s = fresh();

    script_create(s, NULL);
    s->manual = true;
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_SELECTING);
    script_forget(s);
    script_simple(s, FL_EV_ABORT_ROUND);
    script_expect(s, "");
    s->manual = false;
    script_answer(s);
    script_answer_all(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}

/* The lane that puts it together reads the files that an abort removes. */
TEST_EACH(an_attempt_is_aborted_when_its_aggregation_has_answered, 2)
{
    struct script *s = aggregating();

    script_simple(s, FL_EV_ABORT_ROUND);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_AGGREGATING);
    if (_i == 0) {
        script_answer(s);
    } else {
        script_fail(s, FL_EIO, "cannot read", UINT32_MAX);
    }
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}

TEST(an_end_that_cannot_be_written_is_told)
{
    struct script *s = training();

    s->manual = true;
    script_simple(s, FL_EV_ABORT_ROUND);
    script_forget(s);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_expect(s, "[    0] - round 1: IDLE failed: no space left, retrying in 50 ms\n"
                     "[    0] answer (but): done, but not yet durable: no space left; free some "
                     "space, the write is retried. A crash before that loses the change\n");
    script_run_to(s, 50);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}

TEST(aborted_in_a_pause_the_next_attempt_waits_for_its_end)
{
    struct script *s = training();

    script_simple(s, FL_EV_PAUSE);
    script_forget(s);
    script_simple(s, FL_EV_ABORT_ROUND);
    script_expect(s, "[    0] - round 1 attempt 1: TRAINING -> IDLE, aborted (by the operator)\n"
                     "[    0] persist selection 1.2\n"
                     "[    0] a DISMISSED 1.1\n"
                     "[    0] b DISMISSED 1.1\n"
                     "[    0] closed 1.1\n"
                     "[    0] answer: round 1 attempt 1 is aborted; the federation pauses\n"
                     "[    0] - round 1 attempt 2: IDLE -> PAUSED, paused by the operator\n");
    script_free(s);
}

TEST(without_an_open_round_nothing_is_aborted)
{
    struct script *s = idle();

    script_simple(s, FL_EV_ABORT_ROUND);
    script_expect(s, "[    0] answer (no): nothing to abort: no round is open\n");
    script_free(s);
}

TEST(a_round_whose_model_is_made_is_not_aborted)
{
    struct script *s = aggregating();

    script_answer(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_COMMITTING);
    script_forget(s);
    script_simple(s, FL_EV_ABORT_ROUND);
    script_expect(s, "[    0] answer (no): too late to abort: the model of round 1 is aggregated "
                     "(COMMITTING) and will be committed; 'flctl rollback' can undo the round\n");
    script_free(s);
}

/* --- drain --- */

TEST_CASE("drain", NULL, NULL);

TEST(a_drain_is_answered_at_once_and_stops_after_the_open_round)
{
    struct script *s = training();

    script_simple(s, FL_EV_DRAIN);
    script_expect(s, "[    0] - draining: no new round starts\n"
                     "[    0] answer: round 1 is finished first, then the server stops\n");
    script_simple(s, FL_EV_DRAIN);
    script_expect(s, "[    0] answer: already so: round 1 is finished first, then the server "
                     "stops\n");
    respond(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}

TEST(a_drain_in_a_pause_stops_at_once_and_the_pause_stays)
{
    struct script *s = idle();

    script_simple(s, FL_EV_PAUSE);
    script_forget(s);
    script_simple(s, FL_EV_DRAIN);
    script_expect(s, "[    0] - draining: no new round starts\n"
                     "[    0] answer: the server stops\n"
                     "[    0] * DRAIN 1.1 within 50 (the server stops)\n"
                     "[    0] - round 1 attempt 1: PAUSED -> DRAINING, the server stops\n"
                     "[    0] - round 1 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
                     "[    0] STOPPED\n");
    script_free(s);
}

TEST(a_pause_after_a_drain_is_for_the_next_start)
{
    struct script *s = training();

    script_simple(s, FL_EV_DRAIN);
    script_forget(s);
    s->manual = true;
    script_simple(s, FL_EV_PAUSE);
    script_answer(s);
    script_expect(s, "[    0] - pause requested by the operator\n"
                     "[    0] persist pause: paused by the operator\n"
                     "[    0] answer: the server stops when the open round is finished, and is "
                     "paused after its restart: paused by the operator\n");
    script_free(s);
}

TEST(a_drain_of_a_finished_server_that_stayed_stops_it)
{
    struct script *s = training();

    respond(s);
    respond(s);
    respond(s);
    script_forget(s);
    script_simple(s, FL_EV_DRAIN);
    script_expect(s, "[    0] - draining: no new round starts\n"
                     "[    0] answer: the server stops\n"
                     "[    0] STOPPED\n");
    script_free(s);
}

/* --- stop --- */

TEST_CASE("stop", NULL, NULL);

TEST(told_to_stop_it_is_STOPPED_at_once_and_the_round_stays_open)
{
    struct script *s = training();

    script_report(s, "a", NULL);
    script_forget(s);
    script_wish(s, FL_EV_STOP, "the server goes");
    script_expect(s, "[    0] * DRAIN 1.1 within 50 (the server goes)\n"
                     "[    0] - round 1 attempt 1: TRAINING -> DRAINING, the server goes\n"
                     "[    0] - round 1 attempt 1: DRAINING -> STOPPED, nothing is being written\n"
                     "[    0] STOPPED\n");
    script_why(s, "the federation is STOPPED after round 0: the server stops");
    script_report(s, "b", NULL);
    script_expect(s, "");
    script_lost(s, "a");
    script_join(s, "a", 100);
    script_expect(s, "[    0] - client 'a' disconnected\n"
                     "[    0] - client 'a' is back, 100 samples\n"
                     "[    0] a is client 0\n"
                     "[    0] a DRAIN 1.1 within 50 (the server goes)\n");
    script_simple(s, FL_EV_STOP);
    script_expect(s, "");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), UINT64_MAX);
    script_free(s);
}

TEST(told_to_stop_it_waits_for_what_is_being_written)
{
    struct script *s = training();

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    s->manual = true;
    script_stored(s, "a");
    script_simple(s, FL_EV_STOP);
    script_stored(s, "b"); /* Too late: nothing new is begun. */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_why(s, "round 1 is UPLOADING: 0 of 2 uploads are in, waiting 1.0 s more for: a, b; the "
                  "server stops");
    script_forget(s);
    ck_assert_uint_eq(s->n_works, 1);
    script_answer(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    script_expect(s, "[    0] a ACCEPTED 1.1\n"
                     "[    0] * DRAIN 1.1 within 50 (the server stops)\n"
                     "[    0] - round 1 attempt 1: UPLOADING -> DRAINING, the server stops\n"
                     "[    0] - round 1 attempt 1: DRAINING -> STOPPED, nothing is being written\n"
                     "[    0] STOPPED\n");
    script_free(s);
}

/* The disk is full, say: the next start finds what there is. */
TEST_EACH(told_to_stop_it_does_not_try_again_what_failed, 2)
{
    struct script *s = aggregating();

    script_answer(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_COMMITTING);
    if (_i == 0) { /* It fails after the stop, or before. */
        script_simple(s, FL_EV_STOP);
        ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_COMMITTING);
    }
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_simple(s, FL_EV_STOP);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    script_free(s);
}

/* It may take long, and is done again from the same updates. */
TEST(told_to_stop_it_does_not_wait_for_an_aggregation)
{
    struct script *s = aggregating();

    script_simple(s, FL_EV_STOP);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    script_answer(s); /* What it says then is heard by nobody. */
    ck_assert_uint_eq(s->n_works, 0);
    script_free(s);
}

TEST(a_finished_server_that_is_told_to_stop_says_when_to_come_back)
{
    struct script *s = training();

    respond(s);
    respond(s);
    respond(s);
    script_forget(s);
    script_simple(s, FL_EV_STOP);
    script_expect(s, "[    0] * DRAIN 4.1 within 50 (the server stops)\n"
                     "[    0] STOPPED\n");
    script_free(s);
}
