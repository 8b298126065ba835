/* A client that is not believed any more: what becomes of what it sent. */
#include <check.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

/* Round 1 is open, with a, b and c, and works wait for their answers. */
static struct script *open_round(void)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.evaluate_every = 1;
    s->conf.evaluate_server = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 200);
    script_join(s, "c", 300);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    return s;
}

TEST(what_was_accepted_of_it_is_not_aggregated)
{
    struct script *s = open_round();

    script_respond(s, "a");
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_ACCEPTED);
    script_exclude(s, "a");
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_REJECTED);
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->aggregate.n_parts, 2);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->clients[script_id(s, "a")].counted_round, 0);
    script_free(s);
}

TEST(it_is_on_disk_that_it_does_not_count)
{
    struct script *s = open_round();

    script_respond(s, "a");
    s->manual = true;
    script_forget(s);
    script_exclude(s, "a");
    script_expect(s, "[    0] - client 'a' is excluded, its update does not count: "
                     "its certificate is revoked\n"
                     "[    0] persist update 1.1 a:rejected:111\n");
    script_free(s);
}

TEST(a_record_that_is_on_its_way_is_taken_back_and_nobody_told_that_it_counts)
{
    struct script *s = open_round();

    s->manual = true;
    script_respond(s, "a"); /* Its record is being written. */
    script_exclude(s, "a");
    script_forget(s);
    script_answer_all(s);
    script_expect(s, "");
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_REJECTED);
    script_free(s);
}

TEST(the_round_does_not_wait_for_it)
{
    struct script *s = open_round();

    script_respond(s, "a");
    script_respond(s, "b");
    script_exclude(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

TEST(an_aggregation_that_runs_is_done_again_without_it)
{
    struct script *s = open_round();

    script_respond(s, "a");
    script_respond(s, "b");
    script_report(s, "c", NULL);
    s->manual = true;
    script_stored(s, "c");
    script_answer(s); /* Its record. */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_AGGREGATING);
    ck_assert_uint_eq(s->aggregate.n_parts, 3);
    script_exclude(s, "b");
    s->manual = false;
    script_answer_all(s);
    ck_assert_uint_eq(s->aggregate.n_parts, 2);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

TEST(an_aggregation_that_failed_is_done_again_without_it)
{
    struct script *s = open_round();

    script_respond(s, "a");
    script_respond(s, "b");
    script_report(s, "c", NULL);
    s->manual = true;
    script_stored(s, "c");
    script_answer(s);
    script_exclude(s, "b");
    script_answer(s); /* That, on disk; the aggregation is answered next. */
    script_fail(s, FL_EIO, "no descriptor", UINT32_MAX);
    s->manual = false;
    script_answer_all(s);
    ck_assert_uint_eq(s->aggregate.n_parts, 2);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}

TEST(without_enough_others_the_attempt_is_repeated)
{
    struct script *s = open_round();

    script_respond(s, "a");
    script_exclude(s, "a");
    script_exclude(s, "b");
    script_exclude(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    ck_assert_int_ne(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_free(s);
}

TEST(a_model_that_is_made_stays_and_the_operator_is_told)
{
    struct script *s = open_round();

    script_respond(s, "a");
    script_respond(s, "b");
    script_report(s, "c", NULL);
    s->manual = true;
    script_stored(s, "c");
    script_answer(s); /* The record, then the aggregation. */
    script_answer(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    script_exclude(s, "a");
    ck_assert_ptr_nonnull(strstr(s->warning, "flctl rollback"));
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_ACCEPTED);
    s->manual = false;
    script_answer_all(s);
    ck_assert_uint_eq(s->record.n_responders, 3);
    script_free(s);
}

TEST(who_is_in_no_round_is_let_be)
{
    struct script *s = script_new("fedavg");

    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_forget(s);
    script_exclude(s, "a");
    script_expect(s, "");
    script_free(s);
}
