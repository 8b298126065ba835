/* Over-selection: the first K clients are aggregated, the others are stopped or have a grace. */
#include <check.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static const float high_in_bc[] = {1, 2, 3};
static const float high_in_a[] = {3, 1, 1};

/* K = 2 of three that are selected. */
static struct script *over_selected(struct script *s)
{
    s->conf.population = 2;
    s->conf.over_selection = 1.5;
    s->conf.start_clients = 3;
    s->conf.rounds = 1;
    return s;
}

static void join_three(struct script *s)
{
    script_start(s);
    script_join(s, "a", 1);
    script_join(s, "b", 1);
    script_join(s, "c", 1);
}

TEST(of_an_over_selected_round_the_first_k_updates_are_aggregated_and_the_others_stopped)
{
    struct script *s = over_selected(script_fedavg());

    script_create(s, NULL);
    join_three(s);
    script_forget(s);
    script_run_to(s, 10);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_report(s, "c", NULL); /* A report is no update. */
    script_stored(s, "c");
    script_stored(s, "b");
    script_expect(
        s, "[   10] - round 1 attempt 1: TRAINING -> UPLOADING, 3 of 3 reports, 0 accepted\n"
           "[   10] persist update 1.1 c:accepted:111\n"
           "[   10] c ACCEPTED 1.1\n"
           "[   10] persist update 1.1 b:accepted:111\n"
           "[   10] a DISMISSED 1.1\n"
           "[   10] - round 1: 2 clients are in as selected by the fraction, dismissed: a\n"
           "[   10] b ACCEPTED 1.1\n"
           "[   10] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
           "[   10] aggregate 1.1 b:accepted:111 c:accepted:111\n"
           "[   10] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 112 of 112 bytes "
           "uploaded\n"
           "[   10] commit 1.1\n"
           "[   10] closed 1.1\n"
           "[   10] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 3 clients\n"
           "[   10] * DRAIN 2.1 (all rounds are done)\n"
           "[   10] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[   10] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[   10] FINISHED\n");
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_selected, 1);
    ck_assert_uint_eq(fl_coord_client(s->coord, script_id(s, "a"))->n_lost, 0);
    script_free(s);
}

TEST(of_an_over_selected_round_the_first_k_reports_are_planned_for)
{
    struct script *s = over_selected(script_fedldf());

    script_create(s, NULL);
    join_three(s);
    script_forget(s);
    script_report(s, "c", high_in_a);
    script_report(s, "a", high_in_bc);
    script_report(s, "b", high_in_a); /* Too late. */
    script_expect(s,
                  "[    0] b DISMISSED 1.1\n"
                  "[    0] - round 1: 2 clients are in as selected by the fraction, dismissed: b\n"
                  "[    0] - round 1 attempt 1: TRAINING -> PLANNING, 2 of 3 reports\n"
                  "[    0] persist plan 1.1 a:planned:011 b:lost c:planned:100\n"
                  "[    0] - round 1 attempt 1: PLANNING -> UPLOADING, 2 clients have 1000 ms to "
                  "upload, 0 have an empty upload mask\n"
                  "[    0] a PLAN 1.1 units 011\n"
                  "[    0] c PLAN 1.1 units 100\n"
                  "[    0] b DISMISSED 1.1\n");
    script_stored(s, "a");
    script_stored(s, "c");
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

/* Of three, hdfl asks one for all; K = 2 others, who send nothing, make no round. */
TEST(clients_of_whom_nothing_is_asked_do_not_end_an_over_selected_round_without_an_update)
{
    struct script *s = over_selected(script_new("hdfl"));
    static const char *const names[] = {"a", "b", "c"};
    const char *sender = NULL;
    size_t i;

    script_option(s, FL_COMPONENT_FRACTION, "fraction", "1");
    script_option(s, FL_COMPONENT_UPLOAD, "n", "1");
    script_create(s, NULL);
    join_three(s);
    for (i = 0; i < 3; i++) {
        if (fl_coord_part(s->coord, script_id(s, names[i]))->units[0] != 0) {
            ck_assert_ptr_null(sender);
            sender = names[i];
        } else {
            script_report(s, names[i], NULL);
        }
    }
    ck_assert_ptr_nonnull(sender);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_report(s, sender, NULL);
    script_stored(s, sender);
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    script_free(s);
}

TEST(over_selection_waits_for_the_rest_no_longer_than_the_grace)
{
    struct script *s = over_selected(script_fedavg());

    s->conf.over_grace = true;
    script_create(s, NULL);
    join_three(s);
    script_forget(s);
    script_run_to(s, 10);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "b");
    script_stored(s, "a");
    script_run_to(s, 500);
    script_expect(
        s,
        "[   10] - round 1: 2 clients are in as selected by the fraction, the others have 100 ms\n"
        "[   10] persist update 1.1 b:accepted:111\n"
        "[   10] b ACCEPTED 1.1\n"
        "[   10] persist update 1.1 a:accepted:111\n"
        "[   10] a ACCEPTED 1.1\n"
        "[  110] c DISMISSED 1.1\n"
        "[  110] - round 1: timed out at the deadline: c\n"
        "[  110] - round 1 attempt 1: TRAINING -> UPLOADING, 2 of 3 reports, 2 accepted\n"
        "[  110] - round 1 attempt 1: UPLOADING -> AGGREGATING, 2 updates of 2 responders\n"
        "[  110] aggregate 1.1 a:accepted:111 b:accepted:111\n"
        "[  110] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 112 of 112 bytes "
        "uploaded\n"
        "[  110] commit 1.1\n"
        "[  110] closed 1.1\n"
        "[  110] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 3 clients\n"
        "[  110] * DRAIN 2.1 (all rounds are done)\n"
        "[  110] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
        "[  110] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
        "[  110] FINISHED\n");
    script_free(s);
}
