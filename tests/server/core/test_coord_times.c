/* What the record of a round has of its phases, and of its participants. */
#include <check.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

/* Pass `ms` and carry out the oldest work. */
static void answer_after(struct script *s, uint64_t ms)
{
    s->now += ms;
    script_answer(s);
}

TEST(each_phase_of_a_round_has_its_duration_in_the_record)
{
    struct script *s = script_fedldf();
    static const float d[] = {1, 2, 3};

    s->manual = true;
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    s->now += 5;
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_SELECTING);
    answer_after(s, 7);
    s->now += 100;
    script_report(s, "a", d);
    s->now += 50;
    script_report(s, "b", d);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_PLANNING);
    answer_after(s, 11);
    s->now += 300;
    script_stored(s, "a");
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.waiting_ms, 5);
    ck_assert_uint_eq(s->record.selecting_ms, 7);
    ck_assert_uint_eq(s->record.training_ms, 150);
    ck_assert_uint_eq(s->record.planning_ms, 11);
    ck_assert_uint_eq(s->record.uploading_ms, 300);
    ck_assert_uint_eq(s->record.aggregating_ms, 0);
    ck_assert_uint_eq(s->record.evaluating_ms, 0);
    ck_assert_uint_eq(s->record.previous_commit_ms, 0);
    ck_assert_uint_eq(s->record.population, 2);
    script_free(s);
}

TEST(a_commit_is_in_the_record_of_the_next_round_and_an_aborted_attempt_is_waiting)
{
    struct script *s = script_fedavg();

    s->conf.min_responders = 2;
    script_begin(s, 2);
    s->manual = true;
    script_respond(s, "a");
    script_report(s, "b", NULL);
    script_stored(s, "b");
    while (fl_coord_phase(s->coord) != FL_PHASE_COMMITTING) {
        script_answer(s);
    }
    answer_after(s, 40); /* The commit of round 1. */
    script_answer_all(s);
    s->manual = false;
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_round(s->coord), 2);
    s->now += 20;
    script_failed(s, "a", "no memory"); /* Attempt 1 of round 2 is aborted. */
    script_run_to(s, s->now + s->conf.retry_ms);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_uint_eq(s->record.attempt, 2);
    ck_assert_uint_eq(s->record.previous_commit_ms, 40);
    ck_assert_uint_eq(s->record.waiting_ms, 20 + s->conf.retry_ms);
    ck_assert_uint_eq(s->record.training_ms, 0);
    script_free(s);
}

TEST(a_commit_says_who_took_part_and_why_some_were_left_out)
{
    struct script *s = script_fedavg();

    s->conf.min_responders = 1;
    script_begin(s, 3);
    script_respond(s, "a");
    script_failed(s, "b", "no memory for the model");
    script_run_to(s, s->now + s->conf.train_ms);
    ck_assert_str_eq(s->taken, "a accepted 111 56 up 56 down, "
                               "b lost 111 0 up 56 down: no memory for the model, "
                               "c lost 111 0 up 56 down: timed out: no report before the deadline");
    ck_assert_uint_eq(s->clients[0].uplink_bytes, 56);
    ck_assert_uint_eq(s->clients[0].downlink_bytes, 56);
    ck_assert_uint_eq(s->clients[1].uplink_bytes, 0);
    script_free(s);
}

TEST(an_error_that_loses_nobody_is_no_reason_and_the_next_round_has_none)
{
    struct script *s = script_fedavg();

    script_begin(s, 2);
    script_report_of(s, "a", 1, 1, 100000, 2.0, NULL, 0); /* More samples than it announced. */
    ck_assert_str_ne(s->error, "");
    script_stored(s, "a");
    script_respond(s, "b");
    ck_assert_str_eq(s->taken, "a accepted 111 56 up 56 down, b accepted 111 56 up 56 down");
    script_free(s);
}

TEST(surplus_clients_and_those_of_whom_nothing_is_asked_are_named_as_such)
{
    struct script *s = script_fedldf();
    static const float all[] = {3, 3, 3};
    static const float none[] = {1, 1, 1};

    s->conf.population = 2;
    s->conf.over_selection = 1.5;
    s->conf.start_clients = 3;
    script_begin(s, 3);
    script_report(s, "a", all);
    script_report(s, "b", none);
    script_stored(s, "a");
    ck_assert_str_eq(s->taken,
                     "a accepted 111 56 up 56 down, "
                     "b empty 000 0 up 56 down: no layer was asked of it, "
                     "c lost - 0 up 56 down: enough others were in (round.over_selection)");
    script_free(s);
}
