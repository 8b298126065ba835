/* Epochs of the server's sum of client state (SCAFFOLD's controls): when it restarts at zero. */
#include <check.h>
#include <string.h>

#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

static struct script *scaffold(void)
{
    struct script *s = script_new("scaffold");

    s->conf.start_clients = 2;
    s->conf.evaluate_every = 1;
    s->conf.evaluate_server = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 200);
    return s;
}

/* What it trained with is of that round. */
static void report_kept(struct script *s, const char *name, uint64_t kept)
{
    struct fl_event ev = {.type = FL_EV_REPORT};

    ev.u.report.client = script_id(s, name);
    ev.u.report.round = fl_coord_round(s->coord);
    ev.u.report.attempt = fl_coord_attempt(s->coord);
    ev.u.report.samples = 100;
    ev.u.report.has_kept = true;
    ev.u.report.kept_round = kept;
    ev.u.report.kept_attempt = kept != 0;
    script_step(s, &ev);
    script_stored(s, name);
}

/* A round that both answer; the last task sent says which epoch the next one is of. */
static void round_of_both(struct script *s, uint64_t kept_by_a, uint64_t kept_by_b)
{
    report_kept(s, "a", kept_by_a);
    report_kept(s, "b", kept_by_b);
}

TEST(the_sum_begins_anew_when_a_client_lost_its_part_of_it)
{
    struct script *s = scaffold();

    round_of_both(s, 0, 0); /* Nobody was counted yet: nothing can be lost. */
    round_of_both(s, 1, 1);
    ck_assert_uint_eq(s->task.round, 3);
    ck_assert_uint_eq(s->task.size.epoch, 1);
    round_of_both(s, 2, 0);
    ck_assert_uint_eq(s->task.round, 4);
    ck_assert_uint_eq(s->task.size.epoch, 4);
    /* What is of round 3 is not in it, so no client can lose that. */
    round_of_both(s, 3, 0);
    ck_assert_uint_eq(s->task.round, 5);
    ck_assert_uint_eq(s->task.size.epoch, 4);
    round_of_both(s, 4, 3); /* An older folder in its place. */
    ck_assert_uint_eq(s->task.size.epoch, 6);
    script_free(s);
}

TEST(the_sum_begins_anew_when_a_client_in_it_is_forgotten)
{
    struct script *s = scaffold();

    script_join(s, "c", 100);
    round_of_both(s, 0, 0);
    ck_assert_uint_eq(s->task.size.members, 3);
    script_forget_client(s, "c"); /* It came too late for round 1, and is in round 2. */
    round_of_both(s, 1, 1);
    ck_assert_uint_eq(s->task.size.epoch, 1);
    ck_assert_uint_eq(s->task.size.members, 2);
    script_forget_client(s, "b");
    report_kept(s, "a", 2);
    ck_assert_uint_eq(s->task.round, 4);
    ck_assert_uint_eq(s->task.size.epoch, 4);
    ck_assert_uint_eq(s->task.size.members, 1); /* Those that are there. */
    script_free(s);
}

TEST(the_sum_restarts_when_a_client_in_it_is_evicted)
{
    struct script *s = scaffold();

    script_join(s, "c", 100);
    round_of_both(s, 0, 0);
    script_evict(s, "c"); /* It joined too late for round 1, so it is not in the sum. */
    report_kept(s, "a", 1);
    report_kept(s, "b", 1);
    ck_assert_uint_eq(s->task.round, 3);
    ck_assert_uint_eq(s->task.size.epoch, 1);
    script_exclude(s, "b"); /* A disabled client may return with its control. */
    report_kept(s, "a", 2);
    report_kept(s, "c", 0);
    ck_assert_uint_eq(s->task.round, 4);
    ck_assert_uint_eq(s->task.size.epoch, 1);
    script_forget(s);
    script_evict(s, "b");
    script_evict(s, "b"); /* As the next start does. */
    ck_assert_ptr_nonnull(strstr(s->warning, "client 'b' was evicted, and its control is in"));
    report_kept(s, "a", 3);
    report_kept(s, "c", 3);
    ck_assert_uint_eq(s->task.round, 5);
    ck_assert_uint_eq(s->task.size.epoch, 5);
    script_free(s);
}

TEST(the_epoch_of_an_eviction_is_durable_at_once)
{
    struct script *s = scaffold();

    round_of_both(s, 0, 0);
    s->manual = true;
    script_evict(s, "b");
    ck_assert_uint_eq(s->n_works, 1);
    ck_assert_int_eq(s->works[0].type, FL_EFF_PERSIST_PAUSE);
    ck_assert_uint_eq(s->works[0].epoch, 3);
    script_free(s);
}

TEST(a_control_that_is_committed_after_the_eviction_is_in_no_later_sum)
{
    struct script *s = scaffold();

    report_kept(s, "b", 0);
    report_kept(s, "a", 0);
    script_simple(s, FL_EV_NEW_EPOCH);
    report_kept(s, "b", 1);
    report_kept(s, "a", 1);
    ck_assert_uint_eq(s->task.size.epoch, 3);
    report_kept(s, "b", 0);
    s->manual = true;
    report_kept(s, "a", 0);
    script_answer(s); /* The record, then the aggregation. */
    script_answer(s);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    script_evict(s, "b");
    s->manual = false;
    script_answer_all(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 3);
    ck_assert_uint_eq(s->task.size.epoch, 4);
    script_free(s);
}

TEST(an_accepted_control_of_a_forgotten_client_is_in_no_later_sum)
{
    struct script *s = scaffold();

    report_kept(s, "b", 0);
    script_forget_client(s, "b");
    report_kept(s, "a", 0);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->task.size.epoch, 2);
    script_free(s);
}

TEST(the_operator_resets_controls_where_there_are_any)
{
    struct script *s = scaffold();

    round_of_both(s, 0, 0);
    script_simple(s, FL_EV_NEW_EPOCH);
    script_forget(s);
    round_of_both(s, 1, 1);
    ck_assert_uint_eq(s->task.size.epoch, 3);
    script_free(s);
    s = script_new("fedavg");
    script_create(s, NULL);
    script_simple(s, FL_EV_NEW_EPOCH);
    script_expect(s,
                  "[    0] answer (no): solver 'sgd' has no controls: there is nothing to reset\n");
    script_free(s);
}
