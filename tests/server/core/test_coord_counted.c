/* Who was counted in a committed round: what clients keep between rounds hangs on that
   (docs/algorithms.md#control-variates). */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float high_in_bc[] = {1, 2, 3};
static const float high_in_a[] = {3, 1, 1};
static const float still[] = {0, 0, 0};

static const struct fl_client_rec *rec_of(const struct script *s, const char *name)
{
    return fl_coord_client(s->coord, script_id(s, name));
}

static void check_counted(const struct fl_client_rec *rec, uint64_t round, uint32_t attempt,
                          bool update)
{
    ck_assert_uint_eq(rec->counted_round, round);
    ck_assert_uint_eq(rec->counted_attempt, attempt);
    ck_assert_int_eq(rec->counted_update, update);
}

/* --- counted --- */

TEST(a_commit_counts_who_sent_an_update_and_of_whom_nothing_was_asked)
{
    struct script *s = script_new("fedldf");

    script_option(s, FL_COMPONENT_UPLOAD, "n", "1");
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_begin(s, 3);
    check_counted(rec_of(s, "a"), 0, 0, false);
    script_report(s, "a", high_in_bc);
    script_report(s, "b", high_in_a);
    script_report(s, "c", still);
    script_stored(s, "a");
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    check_counted(&s->clients[0], 1, 1, true);
    check_counted(&s->clients[1], 1, 1, true);
    check_counted(&s->clients[2], 1, 1, false);
    script_free(s);
}

TEST(an_accepted_update_is_not_counted_before_the_commit)
{
    struct script *s = script_fedavg();

    script_begin(s, 2);
    s->manual = true;
    script_respond(s, "a");
    script_answer(s);
    script_respond(s, "b");
    script_answer(s); /* Both are told ACCEPTED. */
    check_counted(rec_of(s, "a"), 0, 0, false);
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_AGGREGATING);
    script_answer(s);
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_COMMITTING);
    check_counted(&s->clients[0], 1, 1, true);
    script_free(s);
}

/* What a record says with the commit must not reach the disk before it. */
TEST(no_record_of_a_client_is_written_while_a_commit_is_on_its_way)
{
    struct script *s = script_fedavg();

    s->conf.rounds = 1;
    script_begin(s, 1);
    s->manual = true;
    script_respond(s, "a");
    script_answer(s);
    script_answer(s);
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_COMMITTING);
    script_forget(s);
    script_lost(s, "a");
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_expect(s, "[    0] - client 'a' disconnected\n"
                     "[    0] - client 'a' is back, 100 samples\n"
                     "[    0] a is client 0\n"
                     "[    0] a ACCEPTED 1.1\n"
                     "[    0] - client 'b' is new, 100 samples\n"
                     "[    0] b is client 1\n");
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_run_to(s, 49);
    script_join(s, "b", 100);
    script_forget(s);
    script_run_to(s, 50);
    script_expect(s, "[   50] commit 1.1\n");
    script_answer(s);
    script_expect(s,
                  "[   50] closed 1.1\n"
                  "[   50] - round 1 attempt 1: COMMITTING -> IDLE, committed with 1 of 1 clients\n"
                  "[   50] * DRAIN 2.1 (all rounds are done)\n"
                  "[   50] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
                  "[   50] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
                  "[   50] FINISHED\n");
    script_free(s);
}

TEST(an_aborted_attempt_never_counts)
{
    struct script *s = script_fedavg();

    s->conf.min_responders = 2;
    script_begin(s, 2);
    script_respond(s, "a");
    script_failed(s, "b", "no power");
    check_counted(rec_of(s, "a"), 0, 0, false);
    script_run_to(s, 60);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    ck_assert_uint_eq(s->task.task.counted.round, 0);
    script_respond(s, "a");
    script_respond(s, "b");
    check_counted(rec_of(s, "a"), 1, 2, true);
    check_counted(rec_of(s, "b"), 1, 2, true);
    script_free(s);
}

TEST(whom_the_aggregation_blames_is_not_counted)
{
    struct script *s = script_fedavg();

    script_begin(s, 2);
    s->manual = true;
    script_respond(s, "a");
    script_respond(s, "b");
    script_answer(s);
    script_answer(s);
    script_fail(s, FL_EFORMAT, "a bad block", script_id(s, "b"));
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    check_counted(rec_of(s, "a"), 1, 1, true);
    check_counted(rec_of(s, "b"), 0, 0, false);
    script_free(s);
}

TEST(who_is_lost_keeps_the_round_that_counted_it_last)
{
    struct script *s = script_fedavg();

    script_begin(s, 2);
    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "a");
    script_failed(s, "b", "no power");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    check_counted(rec_of(s, "a"), 2, 1, true);
    check_counted(rec_of(s, "b"), 1, 1, true);
    script_free(s);
}

TEST(a_task_names_the_round_that_counted_its_client)
{
    struct script *s = script_fedavg();

    s->conf.population = 10;
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "0.3");
    script_begin(s, 3);
    ck_assert_uint_eq(s->task.task.counted.round, 0);
    ck_assert_uint_eq(s->task.size.selected, 3);
    ck_assert_uint_eq(s->task.size.population, 10);
    ck_assert(!s->task.personal_model);
    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(s->task.round, 2);
    ck_assert_uint_eq(s->task.task.counted.round, 1);
    ck_assert_uint_eq(s->task.task.counted.attempt, 1);
    ck_assert_uint_eq(s->aggregate.size.selected, 3);
    ck_assert_uint_eq(s->aggregate.size.population, 10);
    ck_assert(!s->task.personal_model); /* There is one model for all. */
    script_free(s);
}

/* The first task after a restart is the one that it would have been. */
TEST(after_a_restart_a_task_says_the_same)
{
    struct script *s = script_fedavg();
    struct fl_client_rec clients[2];
    struct fl_coord_resume resume = {.committed = 1, .clients = clients, .n_clients = 2};
    struct fl_effect before;

    script_set(s, FL_COMPONENT_PERSONAL, "own");
    script_begin(s, 2);
    script_respond(s, "a");
    script_respond(s, "b");
    before = s->task;
    ck_assert_uint_eq(before.task.counted.round, 1);
    ck_assert(before.personal_model);
    (void)memcpy(clients, s->clients, sizeof(clients));
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    ck_assert_uint_eq(s->task.task.counted.round, before.task.counted.round);
    ck_assert_uint_eq(s->task.task.counted.attempt, before.task.counted.attempt);
    ck_assert_uint_eq(s->task.size.selected, before.size.selected);
    ck_assert_uint_eq(s->task.size.population, before.size.population);
    ck_assert_uint_eq(s->task.task.seed, before.task.seed);
    ck_assert(s->task.personal_model);
    script_free(s);
}

TEST(after_a_restart_a_counted_client_hears_that_it_was_accepted)
{
    static const struct fl_client_rec clients[] = {
        {.id = 0,
         .name = "a",
         .samples = 100,
         .counted_round = 3,
         .counted_attempt = 2,
         .counted_update = true},
        {.id = 1, .name = "b", .samples = 100, .n_accepted = 1},
    };
    const struct fl_coord_resume resume = {.committed = 3, .clients = clients, .n_clients = 2};
    struct script *s = script_fedavg();
    const uint8_t *units = NULL;

    s->check.committed = 3;
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    script_expect(s, "[    0] - client 'a' is back, 100 samples\n"
                     "[    0] a is client 0\n"
                     "[    0] a ACCEPTED 3.2\n");
    ck_assert_int_eq(fl_coord_may_push(s->coord, 0, 3, 2, &units, NULL), FL_EEXIST);
    ck_assert_int_eq(fl_coord_may_push(s->coord, 1, 3, 2, &units, NULL), FL_ESTATE);
    script_free(s);
}

TEST(a_server_that_went_back_to_an_older_model_counts_nobody_after_it)
{
    static const struct fl_client_rec clients[] = {
        {.id = 0,
         .name = "a",
         .samples = 100,
         .counted_round = 3,
         .counted_attempt = 1,
         .counted_update = true},
    };
    const struct fl_coord_resume resume = {.committed = 2, .clients = clients, .n_clients = 1};
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "own");
    s->check.committed = 2;
    script_create(s, &resume);
    script_start(s);
    script_join(s, "a", 100);
    ck_assert_uint_eq(s->task.round, 3);
    ck_assert_uint_eq(s->task.task.counted.round, 0);
    ck_assert(!s->task.personal_model);
    script_free(s);
}

/* --- coming and going --- */

TEST(a_client_that_is_ready_later_becomes_selectable_without_having_gone)
{
    struct script *s = script_fedavg();

    s->conf.rounds = 1;
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 0);
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_forget(s);
    script_join(s, "b", 50);
    script_expect(s, "[    0] - client 'b' is back, 50 samples\n"
                     "[    0] b is client 1\n"
                     "[    0] - round 1 attempt 1: IDLE -> SELECTING, 2 of 2 connected clients\n"
                     "[    0] persist selection 1.1 a:selected:111 b:selected:111\n"
                     "[    0] - round 1 attempt 1: SELECTING -> TRAINING, 2 clients have 1000 ms\n"
                     "[    0] open 1.1\n"
                     "[    0] a TASK 1.1 units 111 within 1000\n"
                     "[    0] b TASK 1.1 units 111 within 1000\n");
    script_run_to(s, 500); /* Longer than the grace of a lost one. */
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->clients[1].n_lost, 0);
    script_free(s);
}

/* Both messages overtake the writing of its record. */
TEST(a_client_that_is_ready_before_it_is_on_record_is_counted_once)
{
    struct script *s = script_fedavg();

    s->manual = true;
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 0);
    script_join(s, "a", 50);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    script_join(s, "b", 50);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_free(s);
}

TEST(a_client_of_the_open_round_that_is_ready_later_has_its_task)
{
    struct script *s = script_fedavg();

    script_begin(s, 2);
    script_lost(s, "b");
    script_forget(s);
    script_join(s, "b", 0);
    script_join(s, "b", 100);
    script_expect(s, "[    0] - client 'b' is back, 0 samples\n"
                     "[    0] b is client 1\n"
                     "[    0] b TASK 1.1 units 111 within 1000\n"
                     "[    0] - client 'b' is back, 100 samples\n"
                     "[    0] b is client 1\n"
                     "[    0] b TASK 1.1 units 111 within 1000\n");
    script_run_to(s, 500);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

/* --- divergence --- */

TEST(a_model_that_is_not_finite_pauses_and_why_names_the_unit)
{
    struct script *s = script_fedavg();

    script_begin(s, 1);
    s->manual = true;
    script_respond(s, "a");
    script_answer(s);
    script_fail(s, FL_ENUMERIC, "unit 'b': the new model is not finite at entry 3 of b.weight",
                UINT32_MAX);
    script_why(s, "round 1 attempt 1 has ended (diverged: unit 'b': the new model is not finite at "
                  "entry 3 of b.weight), writing that to disk; then the federation pauses");
    script_answer_all(s);
    script_why(s, "round 1 is PAUSED: round 1 attempt 1 diverged: unit 'b': the new model is not "
                  "finite at entry 3 of b.weight; lower training.learning_rate and restart the "
                  "server; 'flctl resume' continues");
    check_counted(rec_of(s, "a"), 0, 0, false);
    script_simple(s, FL_EV_RESUME);
    script_run_to(s, 60);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}
