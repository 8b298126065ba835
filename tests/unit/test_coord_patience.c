/* How few responders make a round, and how long the slow ones are waited for. */
#include <check.h>
#include <stdlib.h>

#include "tests/lib/coord_script.h"

static const char *const names[] = {"a", "b", "c", "d", "e"};

/* A round of n clients that asks half of them to respond. */
static struct script *half_of(unsigned n)
{
    struct script *s = script_new("fedavg");
    unsigned i;

    script_option(s, FL_SLOT_FRACTION, "fraction", "1");
    s->conf.start_clients = n;
    s->conf.min_responders = FL_RESPONDERS_HALF;
    s->conf.patience = 10;
    s->conf.patience_least_ms = 50;
    s->conf.train_ms = 100000;
    script_create(s, NULL);
    script_start(s);
    for (i = 0; i < n; i++) {
        script_join(s, names[i], 100);
    }
    return s;
}

static void respond(struct script *s, const char *name)
{
    script_report(s, name, NULL);
    script_stored(s, name);
}

START_TEST(half_of_the_clients_rounded_up_make_a_round)
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
            respond(s, names[i]);
        }
        ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
        ck_assert_uint_eq(s->record.n_responders, least);
        script_free(s);
    }
}
END_TEST

START_TEST(fewer_than_half_repeat_the_attempt)
{
    struct script *s = half_of(5);

    script_failed(s, "a", "no power");
    script_failed(s, "b", "no power");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    script_failed(s, "c", "no power");
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_IDLE);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_why(s, "round 1 is IDLE: attempt 2 begins after 0.1 s more (fewer than 3 can still "
                  "answer)");
    script_free(s);
}
END_TEST

START_TEST(half_of_them_holds_no_round_up_before_it_begins)
{
    struct script *s = half_of(4);
    unsigned i;

    for (i = 0; i < 4; i++) {
        respond(s, names[i]);
    }
    script_lost(s, "b");
    script_lost(s, "c");
    script_lost(s, "d");
    script_run_to(s, 10000);
    /* Three of four are away: one of those who are here is half of them. */
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    ck_assert_int_eq(fl_coord_phase(s->coord), FL_PHASE_TRAINING);
    respond(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    script_free(s);
}
END_TEST

START_TEST(a_round_without_somebody_is_a_warning)
{
    struct script *s = half_of(3);

    respond(s, "a");
    respond(s, "b");
    script_failed(s, "c", "no power");
    ck_assert_str_eq(s->warning, "round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 3 "
                                 "clients");
    script_free(s);
}
END_TEST

START_TEST(once_half_are_in_the_others_have_their_time_many_times_over)
{
    struct script *s = half_of(4);

    script_run_to(s, 20);
    respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 100000);
    script_run_to(s, 30);
    script_forget(s);
    respond(s, "b");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 30 + 300);
    script_run_to(s, 300);
    respond(s, "c"); /* What comes later moves nothing. */
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 330);
    script_run_to(s, 330);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 3);
    script_free(s);
}
END_TEST

START_TEST(the_patience_has_a_least_and_never_exceeds_the_deadline)
{
    struct script *s = half_of(2);

    script_run_to(s, 1);
    respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 1 + 50);
    script_free(s);
    s = half_of(2);
    script_run_to(s, 99000);
    respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 100000);
    script_free(s);
}
END_TEST

START_TEST(who_has_more_samples_has_more_time)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_SLOT_FRACTION, "fraction", "1");
    s->conf.start_clients = 3;
    s->conf.patience = 10;
    s->conf.train_ms = 100000;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 300);
    script_join(s, "c", 1000);
    script_run_to(s, 20);
    respond(s, "a");
    respond(s, "b");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 20 + 10 * 20 * 5);
    script_free(s);
}
END_TEST

START_TEST(without_patience_the_deadline_stays)
{
    struct script *s = script_new("fedavg");

    script_option(s, FL_SLOT_FRACTION, "fraction", "1");
    s->conf.start_clients = 2;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100);
    script_join(s, "b", 100);
    script_run_to(s, 10);
    respond(s, "a");
    ck_assert_uint_eq(fl_coord_deadline(s->coord), 1000);
    script_free(s);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("coord_patience");
    TCase *tc = tcase_create("patience");
    SRunner *sr;
    int failed;

    tcase_add_test(tc, half_of_the_clients_rounded_up_make_a_round);
    tcase_add_test(tc, fewer_than_half_repeat_the_attempt);
    tcase_add_test(tc, half_of_them_holds_no_round_up_before_it_begins);
    tcase_add_test(tc, a_round_without_somebody_is_a_warning);
    tcase_add_test(tc, once_half_are_in_the_others_have_their_time_many_times_over);
    tcase_add_test(tc, the_patience_has_a_least_and_never_exceeds_the_deadline);
    tcase_add_test(tc, who_has_more_samples_has_more_time);
    tcase_add_test(tc, without_patience_the_deadline_stays);
    suite_add_tcase(s, tc);
    sr = srunner_create(s);
    srunner_run_all(sr, CK_ENV);
    failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
