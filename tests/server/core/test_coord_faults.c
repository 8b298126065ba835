/* What goes wrong, and what the coordinator makes of it. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float moved[] = {1, 2, 3};

/* As far as the aggregation of two full updates, which is left unanswered. */
static struct script *aggregating(void)
{
    struct script *s = script_of_two("fedavg");

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    s->manual = true;
    script_stored(s, "b");
    script_answer(s);
    script_forget(s);
    return s;
}

TEST(a_failed_commit_is_asked_for_again)
{
    struct script *s = aggregating();

    script_answer(s);
    script_forget(s);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_why(s, "round 1 is COMMITTING: writing the new model to disk; failed, retrying: "
                  "no space left (0.1 s more)");
    script_run_to(s, 50);
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_run_to(s, 150);
    script_answer(s);
    script_expect(s,
                  "[    0] - round 1: COMMITTING failed: no space left, retrying in 50 ms\n"
                  "[   50] commit 1.1\n"
                  "[   50] - round 1: COMMITTING failed: no space left, retrying in 100 ms\n"
                  "[  150] commit 1.1\n"
                  "[  150] closed 1.1\n"
                  "[  150] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 2 clients\n"
                  "[  150] - round 2 attempt 1: IDLE -> SELECTING, 2 of 2 connected clients\n"
                  "[  150] persist selection 2.1 a:selected:111 b:selected:111\n");
    script_free(s);
}

TEST(a_failed_selection_or_plan_is_asked_for_again)
{
    struct script *s = script_of_two("fedldf");

    script_report(s, "a", moved);
    s->manual = true;
    script_forget(s);
    script_report(s, "b", moved);
    script_fail(s, FL_EIO, "disk", UINT32_MAX);
    script_lost(s, "a"); /* nothing of this is waited for meanwhile */
    script_run_to(s, 50);
    script_answer(s);
    script_expect(s, "[    0] - round 1 attempt 1: TRAINING -> PLANNING, 2 of 2 reports\n"
                     "[    0] persist plan 1.1 a:planned:111 b:empty:000\n"
                     "[    0] - round 1: PLANNING failed: disk, retrying in 50 ms\n"
                     "[    0] - client 'a' disconnected\n"
                     "[   50] persist plan 1.1 a:planned:111 b:empty:000\n"
                     "[   50] - round 1 attempt 1: PLANNING -> UPLOADING, 1 clients have 1000 ms "
                     "to upload, 1 have an empty upload mask\n"
                     "[   50] b ACCEPTED 1.1\n");
    script_free(s);
}

TEST(an_update_whose_record_fails_is_recorded_again_or_lost_at_the_deadline)
{
    struct script *s = script_of_two("fedavg");

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    s->manual = true;
    script_forget(s);
    script_stored(s, "b");
    script_fail(s, FL_EIO, "disk", UINT32_MAX);
    script_stored(s, "b"); /* It comes again: it is already there. */
    script_run_to(s, 50);
    script_fail(s, FL_EIO, "disk", UINT32_MAX);
    script_run_to(s, 100);
    script_fail(s, FL_EIO, "disk", UINT32_MAX);
    script_expect(s, "[    0] persist update 1.1 b:accepted:111\n"
                     "[    0] - update of client 'b' could not be recorded, retrying: disk\n"
                     "[   50] persist update 1.1 b:accepted:111\n"
                     "[   50] - update of client 'b' could not be recorded, retrying: disk\n"
                     "[  100] persist update 1.1 b:accepted:111\n"
                     "[  100] - update of client 'b' could not be recorded, retrying: disk\n");
    s->now = 1000;
    script_simple(s, FL_EV_TICK);
    script_expect(s, "[ 1000] persist update 1.1 b:accepted:111\n");
    script_fail(s, FL_EIO, "disk", UINT32_MAX);
    script_expect(
        s, "[ 1000] - update of client 'b' could not be recorded, retrying: disk\n"
           "[ 1000] b DISMISSED 1.1\n"
           "[ 1000] - round 1 attempt 1: UPLOADING -> AGGREGATING, 1 updates of 1 responders\n"
           "[ 1000] aggregate 1.1 a:accepted:111\n");
    script_free(s);
}

TEST(the_deadline_waits_for_a_record_that_is_being_written)
{
    struct script *s = script_of_two("fedavg");

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    s->manual = true;
    script_forget(s);
    script_stored(s, "b");
    script_lost(s, "b"); /* Its upload is here, so it may go. */
    script_run_to(s, 2000);
    script_answer(s);
    script_expect(
        s, "[    0] persist update 1.1 b:accepted:111\n"
           "[    0] - client 'b' disconnected\n"
           "[ 2000] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[ 2000] aggregate 1.1 a:accepted:111 b:accepted:111\n");
    script_free(s);
}

TEST(a_bad_update_is_left_out_and_the_rest_aggregated_again)
{
    struct script *s = aggregating();

    script_fail(s, FL_ENUMERIC, "unit b: not a finite number", script_id(s, "a"));
    script_answer(s);
    script_expect(s, "[    0] - client 'a': update left out: unit b: not a finite number\n"
                     "[    0] aggregate 1.1 b:accepted:111\n"
                     "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 56 of "
                     "56 bytes uploaded\n"
                     "[    0] commit 1.1\n");
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_uint_eq(s->record.uplink_bytes, 56);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_rejected, 1);
    script_free(s);
}

TEST(want_of_memory_is_nobodys_fault)
{
    struct script *s = aggregating();

    script_fail(s, FL_ENOMEM, "out of memory", script_id(s, "a"));
    script_run_to(s, 50);
    script_expect(s, "[    0] - round 1: AGGREGATING failed: out of memory, retrying in 50 ms\n"
                     "[   50] aggregate 1.1 a:accepted:111 b:accepted:111\n");
    script_free(s);
}

TEST(trouble_of_our_own_while_reading_is_tried_again)
{
    static const int codes[] = {FL_EIO, FL_EPERM, FL_ENOMEM, FL_ENOSPC, FL_EINUSE};
    struct script *s = aggregating();
    size_t i;

    for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        script_forget(s);
        script_fail(s, codes[i], "too many open files", script_id(s, "a"));
        ck_assert_uint_eq(fl_coord_part(s->coord, script_id(s, "a"))->state,
                          FL_PARTICIPANT_ACCEPTED);
        script_run_to(s, (i + 1) * 100000);
    }
    script_answer(s);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_rejected, 0);
    script_free(s);
}

TEST_EACH(an_update_that_went_bad_on_our_disk_does_not_count_against_its_client, 2)
{
    struct script *s = aggregating();
    const struct fl_client_rec *a;

    script_fail(s, _i == 0 ? FL_EFORMAT : FL_ENOENT, "a block is damaged", script_id(s, "a"));
    script_answer(s);
    script_expect(s, "[    0] - client 'a': update lost by this server and left out, which does "
                     "not count against the client: a block is damaged\n"
                     "[    0] aggregate 1.1 b:accepted:111\n"
                     "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 56 of "
                     "56 bytes uploaded\n"
                     "[    0] commit 1.1\n");
    ck_assert_uint_eq(s->record.n_responders, 1);
    a = fl_coord_client(s->coord, script_id(s, "a"));
    ck_assert_uint_eq(a->n_rejected + a->n_lost + a->n_accepted, 0);
    ck_assert_uint_eq(a->n_selected, 1);
    ck_assert_uint_eq(a->counted_round, 0);
    script_free(s);
}

TEST(an_update_that_cannot_be_read_three_times_leaves_the_round)
{
    struct script *s = aggregating();
    const struct fl_client_rec *a;
    size_t i;

    for (i = 0; i < 3; i++) {
        ck_assert_uint_eq(fl_coord_part(s->coord, script_id(s, "a"))->state,
                          FL_PARTICIPANT_ACCEPTED);
        script_forget(s);
        script_fail(s, FL_EIO, "cannot read 'a.upload'", script_id(s, "a"));
        script_run_to(s, (i + 1) * 100000);
    }
    script_answer(s);
    script_expect(s, "[200000] - client 'a': update lost by this server and left out, which does "
                     "not count against the client: cannot read 'a.upload'\n"
                     "[200000] aggregate 1.1 b:accepted:111\n"
                     "[300000] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 56 of "
                     "56 bytes uploaded\n"
                     "[300000] commit 1.1\n");
    a = fl_coord_client(s->coord, script_id(s, "a"));
    ck_assert_uint_eq(a->n_rejected + a->n_lost + a->n_accepted, 0);
    script_free(s);
}

TEST(when_all_updates_are_bad_the_attempt_is_aborted)
{
    struct script *s = aggregating();

    script_fail(s, FL_ENUMERIC, "unit b: too long", script_id(s, "a"));
    script_fail(s, FL_ENUMERIC, "unit b: too long", script_id(s, "b"));
    script_expect(s, "[    0] - client 'a': update left out: unit b: too long\n"
                     "[    0] aggregate 1.1 b:accepted:111\n"
                     "[    0] - client 'b': update left out: unit b: too long\n"
                     "[    0] - round 1 attempt 1: AGGREGATING -> IDLE, aborted (too few usable "
                     "updates), retrying in 50 ms\n"
                     "[    0] persist selection 1.2\n");
    script_free(s);
}

TEST(a_model_that_is_not_finite_pauses_the_federation)
{
    struct script *s = aggregating();

    script_fail(s, FL_ENUMERIC, "not a finite number", UINT32_MAX);
    script_answer_all(s);
    script_expect(s, "[    0] - round 1 attempt 1: AGGREGATING -> IDLE, aborted (diverged: not a "
                     "finite number), retrying in 50 ms\n"
                     "[    0] persist pause: round 1 attempt 1 diverged: not a finite number; "
                     "lower training.learning_rate and restart the server\n"
                     "[    0] persist selection 1.2\n"
                     "[    0] closed 1.1\n"
                     "[    0] - round 1 attempt 2: IDLE -> PAUSED, round 1 attempt 1 diverged: not "
                     "a finite number; lower training.learning_rate and restart the server\n");
    script_why(s, "round 1 is PAUSED: round 1 attempt 1 diverged: not a finite number; lower "
                  "training.learning_rate and restart the server; 'flctl resume' continues");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    script_simple(s, FL_EV_RESUME);
    script_run_to(s, 50);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_SELECTING);
    ck_assert_uint_eq(fl_coord_round(s->coord), 1);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}

TEST(a_failed_evaluation_commits_without_accuracy)
{
    struct script *s = script_new("fedavg");

    s->conf.evaluate_every = 1;
    s->conf.evaluate_server = true;
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 1);
    script_report(s, "a", NULL);
    s->manual = true;
    script_stored(s, "a");
    script_answer(s);
    script_answer(s);
    script_forget(s);
    script_fail(s, FL_EIO, "test set is gone", UINT32_MAX);
    script_expect(s, "[    0] - round 1: evaluation failed: test set is gone\n"
                     "[    0] - round 1 attempt 1: EVALUATING -> COMMITTING, loss 2.0000, 56 of 56 "
                     "bytes uploaded\n"
                     "[    0] commit 1.1\n");
    ck_assert_double_eq(s->record.accuracy, -1.0);
    script_free(s);
}

TEST(a_client_gets_its_record_with_its_first_selection_or_not_at_all)
{
    struct script *s = script_new("fedavg");

    s->conf.start_clients = 2;
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "0.5");
    s->manual = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_SELECTING);
    ck_assert_uint_eq(s->n_works, 1);
    ck_assert_uint_eq(s->n_selected_records, 1);
    script_fail(s, FL_EIO, "disk", UINT32_MAX);
    s->n_selected_records = 0;
    script_run_to(s, 50); /* The same again: the record is not on disk yet. */
    ck_assert_uint_eq(s->n_selected_records, 1);
    script_free(s);
}

/* --- bad reports --- */

struct bad_report {
    uint64_t samples;
    double loss;
    float d[4];
    size_t n;
    const char *reason;
};

static const struct bad_report bad_reports[] = {
    {0, 1.0, {1, 1, 1}, 3, "report: 0 samples, expected at least 1"},
    {5, (double)NAN, {1, 1, 1}, 3, "report: the training loss is NaN or infinite"},
    {5, (double)INFINITY, {1, 1, 1}, 3, "report: the training loss is NaN or infinite"},
    {5, 1.0, {1, 1, 1}, 2, "report: 2 divergences, expected 3, one per layer"},
    {5, 1.0, {1, 1, 1, 1}, 4, "report: 4 divergences, expected 3, one per layer"},
    {5, 1.0, {0}, 0, "report: 0 divergences, expected 3, one per layer"},
    {5, 1.0, {1, NAN, 1}, 3, "report: the divergence of layer 1 is not a finite number >= 0"},
    {5, 1.0, {1, 1, -1}, 3, "report: the divergence of layer 2 is not a finite number >= 0"},
    {5, 1.0, {INFINITY, 1, 1}, 3, "report: the divergence of layer 0 is not a finite number >= 0"},
};

TEST_EACH(a_bad_report_rejects_the_client_for_the_round, ARRAY_LEN(bad_reports))
{
    const struct bad_report *bad = &bad_reports[_i];
    struct script *s = script_of_two("fedldf");
    char text[256];

    script_report_of(s, "a", 1, 1, bad->samples, bad->loss, bad->d, bad->n);
    (void)snprintf(text, sizeof(text),
                   "[    0] - client 'a' rejected: %s\n[    0] a REJECTED 1.1 (%s)\n", bad->reason,
                   bad->reason);
    script_expect(s, text);
    /* It cannot mend it: the round goes on as if it were absent. */
    script_report(s, "a", moved);
    script_expect(s, "[    0] a DISMISSED 1.1\n");
    script_report(s, "b", moved);
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 1);
    ck_assert_uint_eq(s->record.feedback_bytes, 12);
    ck_assert_uint_eq(fl_coord_client(s->coord, 0)->n_rejected, 1);
    script_free(s);
}

TEST(an_invalid_upload_rejects_the_client_for_the_round)
{
    struct script *s = script_of_two("fedavg");

    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_forget(s);
    script_invalid(s, "a", "unit 'b' is too long");
    script_expect(s, "[    0] - client 'a' rejected: unit 'b' is too long\n"
                     "[    0] a REJECTED 1.1 (unit 'b' is too long)\n");
    script_stored(s, "a"); /* a second try is not welcome */
    script_expect(s, "[    0] a DISMISSED 1.1\n");
    script_stored(s, "b");
    ck_assert_uint_eq(s->record.n_responders, 1);
    script_free(s);
}
