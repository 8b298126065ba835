/* How few responders make a round, and how long the slow ones are waited for. */
#include <check.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const char *const names[] = {"a", "b", "c", "d", "e"};

/* The first n clients join, and take part. */
static void begin_with(struct script *s, unsigned n)
{
    unsigned i;

    script_create(s, NULL);
    script_start(s);
    for (i = 0; i < n; i++) {
        script_join(s, names[i], 100);
    }
}

/* A round of n clients that asks half of them to respond. */
static struct script *half_of(unsigned n)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = n;
    s->conf.min_responders = FL_RESPONDERS_HALF;
    s->conf.straggler_factor = 10;
    s->conf.straggler_min_ms = 50;
    s->conf.train_ms = 100000;
    begin_with(s, n);
    return s;
}

TEST(half_of_the_clients_rounded_up_make_a_round)
{
    unsigned n;

    for (n = 1; n <= 5; n++) {
        struct script *s = half_of(n);
        unsigned least = (n + 1) / 2;
        unsigned i;

        ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
        for (i = 0; i < n - least; i++) {
            script_failed(s, names[i], "no power");
        }
        for (; i < n; i++) {
            script_respond(s, names[i]);
        }
        ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
        ck_assert_uint_eq(s->record.n_responders, least);
        script_free(s);
    }
}

TEST(fewer_than_half_repeat_the_attempt)
{
    struct script *s = half_of(5);

    script_failed(s, "a", "no power");
    script_failed(s, "b", "no power");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_failed(s, "c", "no power");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_why(s,
               "round 1 is IDLE: attempt 2 begins after 0.1 s more (fewer than 3 can still respond)"
               "; attempt 1 asked 5 clients, without a result of: a, b, c, d and 1 more");
    script_free(s);
}

TEST(half_of_them_holds_no_round_up_before_it_begins)
{
    struct script *s = half_of(4);
    unsigned i;

    for (i = 0; i < 4; i++) {
        script_respond(s, names[i]);
    }
    script_lost(s, "b");
    script_lost(s, "c");
    script_lost(s, "d");
    script_run_to(s, 10000);
    /* Three of four are away: one of those who are here is half of them. */
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    script_free(s);
}

TEST(a_round_without_somebody_is_a_warning)
{
    struct script *s = half_of(3);

    script_respond(s, "a");
    script_respond(s, "b");
    script_failed(s, "c", "no power");
    ck_assert_str_eq(s->warning, "round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 3 "
                                 "clients");
    script_free(s);
}

TEST(once_half_are_in_the_others_have_their_time_many_times_over)
{
    struct script *s = half_of(4);

    script_run_to(s, 20);
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 100000);
    script_run_to(s, 30);
    script_forget(s);
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 30 + 300);
    script_run_to(s, 300);
    script_respond(s, "c"); /* What comes later moves nothing. */
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 330);
    script_run_to(s, 330);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 3);
    script_free(s);
}

TEST(the_straggler_timeout_has_a_least_and_never_exceeds_the_deadline)
{
    struct script *s = half_of(2);

    script_run_to(s, 1);
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 1 + 50);
    script_free(s);
    s = half_of(2);
    script_run_to(s, 99000);
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 100000);
    script_free(s);
}

TEST(who_has_more_samples_has_more_time)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.straggler_factor = 10;
    s->conf.train_ms = 100000;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 300);
    script_join(s, "c", 1000);
    script_run_to(s, 20);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 20 + 10 * 20 * 5);
    script_free(s);
}

TEST(without_a_straggler_factor_the_deadline_stays)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_run_to(s, 10);
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 1000);
    script_free(s);
}

/*
 * All reports of a round of n clients are in at 20 ms, with `upload_ms` to upload, at `rate` bytes
 * a second at least.
 */
static struct script *uploading_for(unsigned n, uint64_t rate, uint64_t upload_ms)
{
    struct script *s = script_new("fedavg");
    unsigned i;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = n;
    s->conf.min_responders = 1;
    s->conf.straggler_factor = 10;
    s->conf.straggler_min_ms = 50;
    s->conf.straggler_rate = rate;
    s->conf.train_ms = 100000;
    s->conf.upload_ms = upload_ms;
    begin_with(s, n);
    script_run_to(s, 20);
    for (i = 0; i < n; i++) {
        script_report(s, names[i], NULL);
    }
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    return s;
}

static struct script *uploading_at(unsigned n, uint64_t rate)
{
    return uploading_for(n, rate, 3600000);
}

static struct script *uploading(unsigned n)
{
    return uploading_at(n, 0);
}

TEST(an_upload_that_does_not_begin_is_lost_after_the_straggler_timeout)
{
    struct script *s = uploading(3);

    script_run_to(s, 40);
    script_stored(s, "a");
    script_stored(s, "b");
    script_why(s, "round 1 is UPLOADING: 2 of 3 uploads are in, waiting 0.2 s more for: c");
    script_run_to(s, 219);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 220); /* Ten times the 20 ms that the others took. */
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->clients[2].n_lost, 1);
    ck_assert_str_eq(s->error, "c: timed out: its upload stalled or was too slow "
                               "(round.straggler_factor, round.straggler_rate)");
    script_free(s);
}

TEST(without_a_least_rate_an_upload_that_moves_has_until_the_deadline)
{
    struct script *s = uploading(2);
    uint64_t at;

    script_run_to(s, 40);
    script_stored(s, "a");
    for (at = 100; at < 3600000; at += 190) {
        script_run_to(s, at);
        script_progress(s, "b", 1);
        ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    }
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

/* Bytes of a client, `per_ms` every ms from `from` on, until `until` or the round is over. */
static void trickle(struct script *s, const char *name, double per_ms, uint64_t from,
                    uint64_t until)
{
    uint64_t at;

    for (at = from; at <= until && fl_coord_phase(s->coord) == FL_PHASE_UPLOADING; at += 10) {
        script_run_to(s, at);
        if (fl_coord_phase(s->coord) == FL_PHASE_UPLOADING) {
            script_progress(s, name, 1 + (uint64_t)((double)(at - from) * per_ms));
        }
    }
}

TEST(an_upload_that_trickles_is_lost_once_half_are_in)
{
    struct script *s = uploading_at(2, 100);

    script_run_to(s, 40);
    script_stored(s, "a");
    trickle(s, "b", 0.09, 100, 290);
    script_why(s, "round 1 is UPLOADING: 1 of 2 uploads are in, waiting 0.0 s more for: b");
    script_run_to(s, 299);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 300);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_uint_eq(s->clients[1].n_lost, 1);
    script_free(s);
}

TEST(an_upload_at_the_least_rate_has_until_the_deadline)
{
    struct script *s = uploading_at(2, 100);

    script_run_to(s, 40);
    script_stored(s, "a");
    trickle(s, "b", 0.1, 100, 3599990);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_stored(s, "b");
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

TEST(no_upload_has_to_be_faster_than_the_others_rate_divided_by_the_factor)
{
    unsigned lost;

    for (lost = 0; lost <= 1; lost++) {
        struct script *s = uploading_at(2, UINT64_C(1) << 40);
        double others = 4.0 * (double)fl_layout_count(s->layout) / 20.0; /* Bytes a ms. */

        script_run_to(s, 40);
        script_stored(s, "a");
        trickle(s, "b", others / 10.0 * (lost ? 0.9 : 1.1), 100, 5000);
        ck_assert_int_eq(fl_coord_phase(s->coord) == FL_PHASE_UPLOADING, lost == 0);
        script_free(s);
    }
}

TEST(bytes_that_arrive_twice_do_not_count_as_progress)
{
    struct script *s = uploading_at(2, 100);
    uint64_t at;

    script_run_to(s, 40);
    script_stored(s, "a");
    for (at = 100; at < 300; at += 10) {
        script_run_to(s, at);
        script_progress(s, "b", at % 20 == 0 ? 1000 : 1);
    }
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 301);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}

TEST(an_upload_that_the_server_holds_back_is_not_too_slow)
{
    struct script *s = uploading_at(2, 100);
    struct fl_event ev = {.type = FL_EV_UPLOAD_PROGRESS};
    uint64_t at;

    script_run_to(s, 40);
    script_stored(s, "a");
    ev.u.upload.client = script_id(s, "b");
    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    ev.u.upload.bytes = 7;
    ev.u.upload.held = true;
    for (at = 100; at < 2000; at += 100) {
        script_run_to(s, at);
        script_step(s, &ev);
    }
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_free(s);
}

/* Until `until`, each 40 ms: bytes of "b" arrive, and those of "c" wait for the server. */
static void hold_back(struct script *s, uint64_t from, uint64_t until)
{
    struct fl_event ev = {.type = FL_EV_UPLOAD_PROGRESS};
    uint64_t at;

    ev.u.upload.round = fl_coord_round(s->coord);
    ev.u.upload.attempt = fl_coord_attempt(s->coord);
    for (at = from; at <= until; at += 40) {
        script_run_to(s, at);
        ev.u.upload.bytes = at;
        ev.u.upload.client = script_id(s, "b");
        ev.u.upload.held = false;
        script_step(s, &ev);
        ev.u.upload.client = script_id(s, "c");
        ev.u.upload.held = true;
        script_step(s, &ev);
    }
}

TEST(an_upload_that_the_server_holds_back_is_not_late)
{
    struct script *s = uploading_for(3, 0, 1000);

    script_run_to(s, 40);
    script_stored(s, "a");
    hold_back(s, 60, 1500);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    ck_assert_int_eq(fl_coord_part(s->coord, script_id(s, "b"))->state, FL_PARTICIPANT_LOST);
    script_stored(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->clients[1].n_lost, 1);
    ck_assert_uint_eq(s->clients[2].n_lost, 0);
    script_free(s);
}

TEST(an_upload_that_the_server_holds_back_for_too_long_is_lost_without_blame)
{
    struct script *s = uploading_for(3, 0, 1000);

    script_run_to(s, 40);
    script_stored(s, "a");
    hold_back(s, 60, 2000);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    hold_back(s, 2040, 2120); /* The deadline, and as much again. */
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_uint_eq(s->clients[2].n_lost, 0);
    script_free(s);
}

TEST(an_upload_that_no_longer_waits_for_the_server_has_the_deadline)
{
    struct script *s = uploading_for(3, 0, 1000);

    script_run_to(s, 40);
    script_stored(s, "a");
    hold_back(s, 60, 900);
    script_progress(s, "c", 7);
    script_run_to(s, 1020);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_uint_eq(s->clients[2].n_lost, 1);
    script_free(s);
}

TEST(a_rate_before_half_are_in_is_held_against_no_client)
{
    struct script *s = uploading_at(4, 100);

    script_run_to(s, 40);
    script_stored(s, "a");
    trickle(s, "c", 0.001, 50, 1020);
    script_stored(s, "b"); /* The longest of the first half: 1000 ms. */
    trickle(s, "c", 0.001, 1030, 11010);
    ck_assert_int_eq(fl_coord_part(s->coord, script_id(s, "c"))->state, FL_PARTICIPANT_REPORTED);
    script_run_to(s, 11021);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

TEST(an_upload_that_stops_half_way_is_lost)
{
    struct script *s = uploading(2);

    script_run_to(s, 40);
    script_stored(s, "a");
    script_run_to(s, 100);
    script_progress(s, "b", 1);
    script_run_to(s, 299);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 300);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    script_free(s);
}

TEST(before_half_are_in_none_is_lost_while_any_upload_moves)
{
    struct script *s = uploading(4);

    script_run_to(s, 40);
    script_stored(s, "a");
    script_run_to(s, 200);
    script_progress(s, "b", 1);
    script_run_to(s, 399); /* c and d are silent for longer than 200 ms. */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_stored(s, "b"); /* The longest of the first half: 379 ms. */
    script_run_to(s, 20 + 3789);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 20 + 3790);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

TEST(when_no_upload_moves_all_of_them_are_lost)
{
    struct script *s = uploading(2);

    script_run_to(s, 69);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 70);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}

TEST(an_upload_is_not_late_for_the_server_s_own_trouble)
{
    struct script *s = uploading(2);

    script_run_to(s, 40);
    script_stored(s, "a");
    script_run_to(s, 200);
    script_unstored(s, "b", FL_ENOSPC, "disk full");
    script_run_to(s, 399);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 400);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}

TEST(the_time_of_a_planned_upload_runs_from_its_plan)
{
    const float d[] = {1.0f, 2.0f, 3.0f};
    const float less[] = {0.5f, 0.5f, 0.5f};
    struct script *s = script_new("fedldf");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    s->conf.min_responders = 1;
    s->conf.straggler_factor = 10;
    s->conf.straggler_min_ms = 50;
    s->conf.upload_ms = 3600000;
    s->conf.backfill = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_run_to(s, 500);
    script_report(s, "a", less);
    script_report(s, "b", d); /* It claims the most in all units, and sends none. */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_UPLOADING);
    script_run_to(s, 549);
    ck_assert_int_eq(fl_coord_part(s->coord, script_id(s, "b"))->state, FL_PARTICIPANT_PLANNED);
    script_run_to(s, 550);
    ck_assert_int_eq(fl_coord_part(s->coord, script_id(s, "a"))->state, FL_PARTICIPANT_PLANNED);
    script_stored(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->clients[1].n_lost, 1);
    script_free(s);
}

static void evaluation_of(struct script *s, const char *name)
{
    struct fl_event ev = {.type = FL_EV_EVAL_REPORT};

    ev.u.eval.client = script_id(s, name);
    ev.u.eval.round = 1;
    ev.u.eval.result.samples = 10;
    ev.u.eval.result.correct = 5;
    script_step(s, &ev);
}

/* A round of three clients that took 20 ms until two of them had evaluated its model. */
static struct script *evaluations_but_one(double factor)
{
    struct script *s = script_new("fedavg");
    unsigned i;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.straggler_factor = factor;
    s->conf.straggler_min_ms = 50;
    s->conf.evaluate_every = 1;
    s->conf.evaluate_clients = true;
    s->conf.evaluate_ms = 100000;
    begin_with(s, 3);
    for (i = 0; i < 3; i++) {
        script_respond(s, names[i]);
    }
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    evaluation_of(s, "a");
    script_run_to(s, 20);
    evaluation_of(s, "b");
    return s;
}

TEST(a_client_that_never_evaluates_is_waited_for_as_one_that_never_reports)
{
    struct script *s = evaluations_but_one(10);

    script_run_to(s, 20 + 10 * 20 - 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    script_run_to(s, 20 + 10 * 20);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(s->record.accuracy, 0.5);
    script_free(s);
}

TEST(without_a_straggler_timeout_evaluations_have_their_whole_deadline)
{
    struct script *s = evaluations_but_one(0);

    script_run_to(s, 99999);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    script_run_to(s, 100000);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}
