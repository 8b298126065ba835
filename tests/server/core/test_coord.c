/*
 * The coordinator told as stories: what happens is compared word for word, so each test is
 * also a description. `[time] client COMMAND round.attempt`; `#n` is a piece of work;
 * `- ` a trace line.
 */
#include <check.h>
#include <stdio.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float high_in_bc[] = {1, 2, 3};
static const float high_in_a[] = {3, 1, 1};
static const float still[] = {0, 0, 0};

/* Two clients, started, and nothing on record of that. */
static void two(struct script *s)
{
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 300);
    script_join(s, "b", 100);
    script_forget(s);
}

TEST(a_round_with_feedback_reports_plans_and_uploads)
{
    struct script *s = script_fedldf();

    s->conf.start_clients = 3;
    s->conf.rounds = 1;
    s->conf.evaluate_every = 1;
    s->conf.evaluate_server = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "b", 100);
    script_join(s, "a", 300);
    s->now = 10;
    script_join(s, "c", 100);
    s->now = 20;
    script_report(s, "a", high_in_bc);
    script_report(s, "c", still);
    script_report(s, "b", high_in_a);
    s->now = 30;
    script_stored(s, "b");
    script_stored(s, "a");
    script_expect(
        s, "[    0] - client 'b' is new, 100 samples\n"
           "[    0] b is client 0\n"
           "[    0] - client 'a' is new, 300 samples\n"
           "[    0] a is client 1\n"
           "[   10] - client 'c' is new, 100 samples\n"
           "[   10] c is client 2\n"
           "[   10] - round 1 attempt 1: IDLE -> SELECTING, 3 of 3 connected clients\n"
           "[   10] persist selection 1.1 a:selected b:selected c:selected\n"
           "[   10] - round 1 attempt 1: SELECTING -> TRAINING, 3 clients have 1000 ms\n"
           "[   10] open 1.1\n"
           "[   10] a TASK 1.1 within 1000\n"
           "[   10] b TASK 1.1 within 1000\n"
           "[   10] c TASK 1.1 within 1000\n"
           "[   20] - round 1 attempt 1: TRAINING -> PLANNING, 3 of 3 reports\n"
           "[   20] persist plan 1.1 a:planned:011 b:planned:100 c:empty:000\n"
           "[   20] - round 1 attempt 1: PLANNING -> UPLOADING, 2 clients have 1000 ms to upload, "
           "1 have an empty upload mask\n"
           "[   20] a PLAN 1.1 units 011\n"
           "[   20] b PLAN 1.1 units 100\n"
           "[   20] c ACCEPTED 1.1\n"
           "[   30] persist update 1.1 b:accepted:100\n"
           "[   30] b ACCEPTED 1.1\n"
           "[   30] persist update 1.1 a:accepted:011\n"
           "[   30] a ACCEPTED 1.1\n"
           "[   30] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 3 responders\n"
           "[   30] aggregate 1.1 a:accepted:011 b:accepted:100\n"
           "[   30] - round 1 attempt 1: AGGREGATING -> EVALUATING, server, 0 clients\n"
           "[   30] evaluate 1.1\n"
           "[   30] - round 1: accuracy 0.5000, loss 1.0000\n"
           "[   30] - round 1 attempt 1: EVALUATING -> COMMITTING, loss 2.0000, 92 of 168 bytes "
           "uploaded\n"
           "[   30] commit 1.1\n"
           "[   30] closed 1.1\n"
           "[   30] - round 1 attempt 1: COMMITTING -> IDLE, committed with 3 of 3 clients\n"
           "[   30] * DRAIN 2.1 (all rounds are done)\n"
           "[   30] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[   30] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[   30] FINISHED\n");
    ck_assert_uint_eq(s->record.uplink_bytes, 56 + 3 * 12);
    ck_assert_uint_eq(s->record.uplink_bytes_full, 3 * 56);
    script_free(s);
}

TEST(without_feedback_the_task_carries_the_plan)
{
    struct script *s = script_fedavg();

    s->conf.rounds = 1;
    two(s);
    script_run_to(s, 10);
    /* Report and upload travel on two streams: the upload may be first. */
    script_stored(s, "b");
    script_report(s, "b", NULL);
    script_report(s, "a", NULL);
    script_stored(s, "a");
    script_expect(
        s, "[   10] persist update 1.1 b:accepted:111\n"
           "[   10] b ACCEPTED 1.1\n"
           "[   10] - round 1 attempt 1: TRAINING -> UPLOADING, 2 of 2 reports, 1 accepted\n"
           "[   10] persist update 1.1 a:accepted:111\n"
           "[   10] a ACCEPTED 1.1\n"
           "[   10] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[   10] aggregate 1.1 a:accepted:111 b:accepted:111\n"
           "[   10] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 112 of 112 bytes "
           "uploaded\n"
           "[   10] commit 1.1\n"
           "[   10] closed 1.1\n"
           "[   10] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 2 clients\n"
           "[   10] * DRAIN 2.1 (all rounds are done)\n"
           "[   10] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[   10] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[   10] FINISHED\n");
    script_free(s);
}

TEST(nothing_is_promised_before_it_is_on_disk)
{
    struct script *s = script_fedldf();

    s->manual = true;
    s->conf.rounds = 1;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_expect(s, "[    0] - client 'a' is new, 100 samples\n"
                     "[    0] a is client 0\n"
                     "[    0] - round 1 attempt 1: IDLE -> SELECTING, 1 of 1 connected clients\n"
                     "[    0] persist selection 1.1 a:selected\n");
    script_answer_all(s);
    script_expect(s, "[    0] - round 1 attempt 1: SELECTING -> TRAINING, 1 clients have 1000 ms\n"
                     "[    0] open 1.1\n"
                     "[    0] a TASK 1.1 within 1000\n");
    script_report(s, "a", high_in_a);
    script_expect(s, "[    0] - round 1 attempt 1: TRAINING -> PLANNING, 1 of 1 reports\n"
                     "[    0] persist plan 1.1 a:planned:111\n");
    script_answer(s);
    script_expect(s, "[    0] - round 1 attempt 1: PLANNING -> UPLOADING, 1 clients have 1000 ms "
                     "to upload, 0 have an empty upload mask\n"
                     "[    0] a PLAN 1.1 units 111\n");
    script_stored(s, "a");
    script_expect(s, "[    0] persist update 1.1 a:accepted:111\n");
    script_answer(s);
    script_expect(
        s, "[    0] a ACCEPTED 1.1\n"
           "[    0] - round 1 attempt 1: UPLOADING -> AGGREGATING, 1 updates of 1 responders\n"
           "[    0] aggregate 1.1 a:accepted:111\n");
    script_answer(s);
    script_expect(s, "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 68 of "
                     "56 bytes uploaded\n"
                     "[    0] commit 1.1\n");
    script_answer(s);
    script_expect(s,
                  "[    0] closed 1.1\n"
                  "[    0] - round 1 attempt 1: COMMITTING -> IDLE, committed with 1 of 1 clients\n"
                  "[    0] * DRAIN 2.1 (all rounds are done)\n"
                  "[    0] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
                  "[    0] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
                  "[    0] FINISHED\n");
    script_free(s);
}

TEST(a_client_that_comes_back_in_time_goes_on_where_it_was)
{
    struct script *s = script_fedldf();

    two(s);
    script_lost(s, "a");
    script_run_to(s, 50);
    script_join(s, "a", 300); /* before its report: the same task again */
    script_report(s, "b", high_in_a);
    script_report(s, "a", high_in_bc);
    script_lost(s, "a");
    script_run_to(s, 100);
    script_join(s, "a", 300); /* before its upload: the task, and after its report the plan */
    script_report(s, "a", high_in_bc);
    script_expect(s, "[    0] - client 'a' disconnected\n"
                     "[   50] - client 'a' is back, 300 samples\n"
                     "[   50] a is client 0\n"
                     "[   50] a TASK 1.1 within 950\n"
                     "[   50] - round 1 attempt 1: TRAINING -> PLANNING, 2 of 2 reports\n"
                     "[   50] persist plan 1.1 a:planned:011 b:planned:100\n"
                     "[   50] - round 1 attempt 1: PLANNING -> UPLOADING, 2 clients have 1000 ms "
                     "to upload, 0 have an empty upload mask\n"
                     "[   50] a PLAN 1.1 units 011\n"
                     "[   50] b PLAN 1.1 units 100\n"
                     "[   50] - client 'a' disconnected\n"
                     "[  100] - client 'a' is back, 300 samples\n"
                     "[  100] a is client 0\n"
                     "[  100] a TASK 1.1 within 950\n"
                     "[  100] a PLAN 1.1 units 011\n");
    script_stored(s, "a");
    script_forget(s);
    script_lost(s, "a");
    script_join(s, "a", 300); /* after its upload: it may have missed that it was accepted */
    script_expect(s, "[  100] - client 'a' disconnected\n"
                     "[  100] - client 'a' is back, 300 samples\n"
                     "[  100] a is client 0\n"
                     "[  100] a ACCEPTED 1.1\n");
    script_free(s);
}

TEST(a_client_that_stays_away_is_given_up_after_the_grace)
{
    struct script *s = script_fedldf();

    two(s);
    script_report(s, "b", high_in_a);
    script_lost(s, "a");
    script_run_to(s, 99);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_run_to(s, 100);
    script_join(s, "a", 300);
    script_expect(s, "[    0] - client 'a' disconnected\n"
                     "[  100] - round 1: disconnected, did not reconnect in time: a\n"
                     "[  100] - round 1 attempt 1: TRAINING -> PLANNING, 1 of 2 reports\n"
                     "[  100] persist plan 1.1 a:lost b:planned:111\n"
                     "[  100] - round 1 attempt 1: PLANNING -> UPLOADING, 1 clients have 1000 ms "
                     "to upload, 0 have an empty upload mask\n"
                     "[  100] b PLAN 1.1 units 111\n"
                     "[  100] - client 'a' is back, 300 samples\n"
                     "[  100] a is client 0\n"
                     "[  100] a DISMISSED 1.1\n");
    script_free(s);
}

TEST(the_deadline_ends_a_phase_without_the_late)
{
    struct script *s = script_fedavg();

    two(s);
    script_report(s, "b", NULL);
    script_stored(s, "b");
    script_run_to(s, 1000);
    script_report_of(s, "a", 1, 1, 300, 1.0, NULL, 0); /* too late */
    script_expect(
        s, "[    0] persist update 1.1 b:accepted:111\n"
           "[    0] b ACCEPTED 1.1\n"
           "[ 1000] a DISMISSED 1.1\n"
           "[ 1000] - round 1: timed out at the deadline: a\n"
           "[ 1000] - round 1 attempt 1: TRAINING -> UPLOADING, 1 of 2 reports, 1 accepted\n"
           "[ 1000] - round 1 attempt 1: UPLOADING -> AGGREGATING, 1 updates of 1 responders\n"
           "[ 1000] aggregate 1.1 b:accepted:111\n"
           "[ 1000] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 56 of 56 bytes "
           "uploaded\n"
           "[ 1000] commit 1.1\n"
           "[ 1000] closed 1.1\n"
           "[ 1000] - round 1 attempt 1: COMMITTING -> IDLE, committed with 1 of 2 clients\n"
           "[ 1000] - round 2 attempt 1: IDLE -> SELECTING, 2 of 2 connected clients\n"
           "[ 1000] persist selection 2.1 a:selected:111 b:selected:111\n"
           "[ 1000] - round 2 attempt 1: SELECTING -> TRAINING, 2 clients have 1000 ms\n"
           "[ 1000] open 2.1\n"
           "[ 1000] a TASK 2.1 units 111 within 1000\n"
           "[ 1000] b TASK 2.1 units 111 within 1000\n"
           "[ 1000] a DISMISSED 1.1\n");
    script_free(s);
}

TEST(too_few_responders_abort_the_attempt_and_back_off)
{
    struct script *s = script_fedavg();

    s->conf.min_responders = 2;
    two(s);
    s->manual = true;
    script_report(s, "b", NULL);
    script_failed(s, "a", "disk\nfull");
    script_expect(s, "[    0] - client 'a' failed: disk?full\n"
                     "[    0] - round 1 attempt 1: TRAINING -> IDLE, aborted (fewer than 2 can "
                     "still respond), retrying in 50 ms\n"
                     "[    0] persist selection 1.2\n");
    script_answer(s); /* Only now the clients hear it. */
    script_expect(s, "[    0] b DISMISSED 1.1\n"
                     "[    0] closed 1.1\n");
    script_run_to(s, 50);
    script_expect(s, "[   50] - round 1 attempt 2: IDLE -> SELECTING, 2 of 2 connected clients\n"
                     "[   50] persist selection 1.2 a:selected:111 b:selected:111\n");
    script_free(s);
}

TEST(a_client_whose_owner_needs_the_device_leaves_the_round_and_that_does_not_count_against_it)
{
    struct script *s = script_fedavg();

    s->conf.min_responders = 1;
    two(s);
    script_unavailable(s, "a", "it is\nbusy");
    script_expect(s,
                  "[    0] - client 'a' is not available: it is?busy; it leaves the round, which "
                  "does not count against it\n");
    ck_assert_int_eq(script_state(s, "a"), FL_PARTICIPANT_LOST);
    ck_assert(fl_coord_blameless(s->coord, script_id(s, "a")));
    ck_assert(!fl_coord_available(s->coord, script_id(s, "a")));
    script_report(s, "b", NULL);
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_lost, 0);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_selected, 1);
    ck_assert_ptr_null(fl_coord_part(s->coord, script_id(s, "a"))); /* not in the next round */
    script_join(s, "a", 1);
    ck_assert(fl_coord_available(s->coord, script_id(s, "a")));
    script_free(s);
}

TEST(the_back_off_doubles_up_to_64_times)
{
    static const uint64_t spans[] = {50, 100, 200, 400, 800, 1600, 3200, 3200, 3200};
    struct script *s = script_fedavg();
    size_t i;

    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 1);
    for (i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
        ck_assert_uint_eq(fl_coord_attempt(s->coord), i + 1);
        script_failed(s, "a", "no");
        ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
        ck_assert_uint_eq(fl_coord_deadline(s->coord), s->now + spans[i]);
        script_run_to(s, s->now + spans[i]);
        ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    }
    script_report(s, "a", NULL);
    script_stored(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_failed(s, "a", "no"); /* A committed round makes the next failure a first one. */
    ck_assert_uint_eq(fl_coord_deadline(s->coord), s->now + 50);
    script_free(s);
}

TEST(with_no_responders_wanted_an_empty_round_is_committed)
{
    struct script *s = script_fedldf();

    s->conf.min_responders = 0;
    s->conf.rounds = 1;
    two(s);
    script_run_to(s, 1000);
    script_expect(
        s, "[ 1000] a DISMISSED 1.1\n"
           "[ 1000] b DISMISSED 1.1\n"
           "[ 1000] - round 1: timed out at the deadline: a, b\n"
           "[ 1000] - round 1 attempt 1: TRAINING -> PLANNING, 0 of 2 reports\n"
           "[ 1000] persist plan 1.1 a:lost b:lost\n"
           "[ 1000] - round 1 attempt 1: PLANNING -> UPLOADING, 0 clients have 1000 ms to upload, "
           "0 have an empty upload mask\n"
           "[ 1000] - round 1 attempt 1: UPLOADING -> AGGREGATING, 0 updates of 0 responders\n"
           "[ 1000] aggregate 1.1\n"
           "[ 1000] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 0.0000, 0 of 0 bytes "
           "uploaded\n"
           "[ 1000] commit 1.1\n"
           "[ 1000] closed 1.1\n"
           "[ 1000] - round 1 attempt 1: COMMITTING -> IDLE, committed with 0 of 2 clients\n"
           "[ 1000] * DRAIN 2.1 (all rounds are done)\n"
           "[ 1000] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[ 1000] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[ 1000] FINISHED\n");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 0);
    ck_assert_uint_eq(s->record.uplink_bytes, 0);
    script_free(s);
}

TEST(whose_upload_the_server_cannot_store_is_not_late)
{
    struct script *s = script_fedavg();
    uint64_t at;

    s->conf.rounds = 1;
    two(s);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    for (at = 500; at <= 5000; at += 500) { /* The deadline is 1000. */
        script_run_to(s, at);
        script_unstored(s, "b", FL_ENOSPC, "no space left");
    }
    script_why(s, "round 1 is UPLOADING: 1 of 2 uploads are in, waiting 1.0 s more for: b; "
                  "storing an upload failed, retrying: no space left");
    script_run_to(s, 5100);
    script_stored(s, "b");
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "b"))->n_lost, 0);
    script_free(s);
}

TEST(after_the_trouble_a_client_has_its_whole_time_and_no_more)
{
    struct script *s = script_fedavg();

    s->conf.rounds = 1;
    two(s);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_run_to(s, 900);
    script_unstored(s, "b", FL_ENOSPC, "no space left");
    script_run_to(s, 1899);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "b"))->n_lost, 0);
    script_run_to(s, 1900);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "b"))->n_lost, 1);
    script_free(s);
}

TEST(trouble_with_one_clients_file_moves_no_deadline_and_is_not_counted_against_it)
{
    struct script *s = script_fedavg();
    uint64_t at;

    s->conf.rounds = 1;
    two(s);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    for (at = 100; at < 1000; at += 100) {
        script_run_to(s, at);
        script_unstored(s, "b", FL_EIO, "cannot read 'b.upload': Input/output error");
    }
    script_run_to(s, 1000);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "b"))->n_lost, 0);
    script_free(s);
}

TEST(backfill_asks_the_next_ranked_once)
{
    static const float second_in_c[] = {0, 1, 2};
    struct script *s = script_fedldf();

    s->conf.backfill = true;
    s->conf.start_clients = 4;
    s->conf.rounds = 1;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    script_join(s, "c", 1);
    script_join(s, "d", 1);
    script_report(s, "a", high_in_bc);
    script_report(s, "b", high_in_a);
    script_report(s, "d", still);
    script_forget(s);
    script_report(s, "c", second_in_c);
    script_stored(s, "b");
    script_failed(s, "a", "no power");
    script_failed(s, "c", "no power either");
    script_expect(
        s, "[    0] - round 1 attempt 1: TRAINING -> PLANNING, 4 of 4 reports\n"
           "[    0] persist plan 1.1 a:planned:011 b:planned:100 c:empty:000 d:empty:000\n"
           "[    0] - round 1 attempt 1: PLANNING -> UPLOADING, 2 clients have 1000 ms to upload, "
           "2 have an empty upload mask\n"
           "[    0] a PLAN 1.1 units 011\n"
           "[    0] b PLAN 1.1 units 100\n"
           "[    0] persist update 1.1 b:accepted:100\n"
           "[    0] b ACCEPTED 1.1\n"
           "[    0] - client 'a' failed: no power\n"
           "[    0] - round 1: backfill: 1 clients are asked for the units of lost uploaders\n"
           "[    0] persist plan 1.1 a:lost:011 b:accepted:100 c:planned:011 d:empty:000\n"
           "[    0] c PLAN 1.1 units 011\n"
           "[    0] - client 'c' failed: no power either\n"
           "[    0] d ACCEPTED 1.1\n"
           "[    0] - round 1 attempt 1: UPLOADING -> AGGREGATING, 1 updates of 2 responders\n"
           "[    0] aggregate 1.1 b:accepted:100\n"
           "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 64 of 112 bytes "
           "uploaded\n"
           "[    0] commit 1.1\n"
           "[    0] closed 1.1\n"
           "[    0] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 4 clients\n"
           "[    0] * DRAIN 2.1 (all rounds are done)\n"
           "[    0] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[    0] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[    0] FINISHED\n");
    script_free(s);
}

TEST(clients_evaluate_and_are_not_waited_for_without_end)
{
    struct script *s = script_fedavg();
    struct fl_event ev = {.type = FL_EV_EVAL_REPORT};

    s->conf.evaluate_every = 1;
    s->conf.evaluate_clients = true;
    s->conf.rounds = 1;
    two(s);
    script_join(s, "c", 50);
    script_report(s, "a", NULL);
    script_stored(s, "a");
    script_report(s, "b", NULL);
    script_forget(s);
    script_stored(s, "b");
    ev.u.eval.client = script_id(s, "a");
    ev.u.eval.round = 1;
    ev.u.eval.result.samples = 30;
    ev.u.eval.result.correct = 15;
    ev.u.eval.result.loss_sum = 60;
    script_step(s, &ev);
    script_step(s, &ev); /* twice: counts once */
    ev.u.eval.client = script_id(s, "b");
    ev.u.eval.result.samples = 1000; /* more than it said it has */
    script_step(s, &ev);
    script_run_to(s, 1000);
    script_expect(
        s, "[    0] persist update 1.1 b:accepted:111\n"
           "[    0] b ACCEPTED 1.1\n"
           "[    0] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[    0] aggregate 1.1 a:accepted:111 b:accepted:111\n"
           "[    0] a EVALUATE 1.1 within 1000\n"
           "[    0] b EVALUATE 1.1 within 1000\n"
           "[    0] c EVALUATE 1.1 within 1000\n"
           "[    0] - round 1 attempt 1: AGGREGATING -> EVALUATING, no server, 3 clients\n"
           "[    0] - client 'b': evaluation ignored: more "
           "samples than were announced\n"
           "[ 1000] - round 1: 1 evaluations timed out: c\n"
           "[ 1000] - round 1 attempt 1: EVALUATING -> COMMITTING, loss 2.0000, 112 of 112 bytes "
           "uploaded\n"
           "[ 1000] commit 1.1\n"
           "[ 1000] closed 1.1\n"
           "[ 1000] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 2 clients\n"
           "[ 1000] * DRAIN 2.1 (all rounds are done)\n"
           "[ 1000] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[ 1000] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[ 1000] FINISHED\n");
    ck_assert_double_eq(s->record.accuracy, 0.5);
    ck_assert_double_eq(s->record.loss, 2.0);
    script_free(s);
}

TEST(a_client_that_could_not_evaluate_holds_no_round_up)
{
    struct script *s = script_fedavg();
    struct fl_event ev = {.type = FL_EV_EVAL_REPORT};

    s->conf.evaluate_every = 1;
    s->conf.evaluate_clients = true;
    two(s);
    script_report(s, "a", NULL);
    script_stored(s, "a");
    script_report(s, "b", NULL);
    script_stored(s, "b");
    ev.u.eval.client = script_id(s, "a");
    ev.u.eval.round = 1;
    script_step(s, &ev);
    script_step(s, &ev); /* twice: counts once */
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    ck_assert_str_eq(
        s->warning,
        "round 1: client 'a' could not evaluate the new model, see the log of the client");
    ev.u.eval.client = script_id(s, "b");
    ev.u.eval.result = (struct fl_eval_rec){.samples = 10, .correct = 5, .loss_sum = 20};
    script_step(s, &ev);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(s->record.accuracy, 0.5);
    script_free(s);
}

TEST(a_pause_waits_for_the_open_round)
{
    struct script *s = script_fedavg();

    two(s);
    script_simple(s, FL_EV_PAUSE);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_why(s, "round 1 is UPLOADING: 1 of 2 uploads are in, waiting 1.0 s more for: b; then "
                  "the federation pauses");
    script_forget(s);
    script_stored(s, "b");
    script_why(s, "round 2 is PAUSED: paused by the operator; 'flctl resume' continues");
    script_simple(s, FL_EV_RESUME);
    script_expect(
        s, "[    0] persist update 1.1 b:accepted:111\n"
           "[    0] b ACCEPTED 1.1\n"
           "[    0] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[    0] aggregate 1.1 a:accepted:111 b:accepted:111\n"
           "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 112 of 112 bytes "
           "uploaded\n"
           "[    0] commit 1.1\n"
           "[    0] closed 1.1\n"
           "[    0] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 2 clients\n"
           "[    0] - round 2 attempt 1: IDLE -> PAUSED, paused by the operator\n"
           "[    0] - resumed by the operator\n"
           "[    0] - round 2 attempt 1: PAUSED -> IDLE, resumed\n"
           "[    0] persist no pause\n"
           "[    0] - round 2 attempt 1: IDLE -> SELECTING, 2 of 2 connected clients\n"
           "[    0] persist selection 2.1 a:selected:111 b:selected:111\n"
           "[    0] answer: resumed: the federation continues with round 2\n"
           "[    0] - round 2 attempt 1: SELECTING -> TRAINING, 2 clients have 1000 ms\n"
           "[    0] open 2.1\n"
           "[    0] a TASK 2.1 units 111 within 1000\n"
           "[    0] b TASK 2.1 units 111 within 1000\n");
    script_free(s);
}

TEST(drained_it_stops_after_the_open_round)
{
    struct script *s = script_fedavg();

    two(s);
    script_simple(s, FL_EV_DRAIN);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_forget(s);
    script_stored(s, "b");
    script_join(s, "c", 5);
    script_expect(
        s, "[    0] persist update 1.1 b:accepted:111\n"
           "[    0] b ACCEPTED 1.1\n"
           "[    0] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[    0] aggregate 1.1 a:accepted:111 b:accepted:111\n"
           "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 112 of 112 bytes "
           "uploaded\n"
           "[    0] commit 1.1\n"
           "[    0] closed 1.1\n"
           "[    0] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 2 clients\n"
           "[    0] * DRAIN 2.1 within 50 (the server stops)\n"
           "[    0] - round 2 attempt 1: IDLE -> DRAINING, the server stops\n"
           "[    0] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[    0] STOPPED\n"
           "[    0] - client 'c' is new, 5 samples\n"
           "[    0] c is client 2\n"
           "[    0] c DRAIN 2.1 within 50 (the server stops)\n");
    script_why(s, "the federation is STOPPED after round 1: the server was drained");
    script_free(s);
}

TEST(drained_between_rounds_it_stops_once_all_is_on_disk)
{
    static const struct fl_client_rec known[] = {{.id = 0, .name = "a", .samples = 1}};
    const struct fl_coord_resume resume = {.clients = known, .n_clients = 1};
    struct script *s = script_fedavg();

    s->manual = true;
    script_create(s, &resume);
    script_start(s);
    script_forget_client(s, "a");
    script_forget(s);
    script_simple(s, FL_EV_DRAIN);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_DRAINING);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_DRAINING);
    script_run_to(s, 50);
    script_answer(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_STOPPED);
    script_expect(
        s, "[    0] - draining: no new round starts\n"
           "[    0] answer: the server stops\n"
           "[    0] * DRAIN 1.1 within 50 (the server stops)\n"
           "[    0] - round 1 attempt 1: IDLE -> DRAINING, the server stops\n"
           "[    0] client 0 is forgotten, but: no space left\n"
           "[    0] - 1 forgotten clients could not be deleted from disk, retrying: no space left\n"
           "[   50] forget a\n"
           "[   50] - round 1 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[   50] STOPPED\n");
    script_free(s);
}
