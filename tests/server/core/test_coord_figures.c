/* Rounds of personal models, and what a round's record says: every table hangs on it. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/figures/share.h"
#include "tests/lib/coord_script.h"
#include "tests/lib/suites.h"

#define MODEL 56 /* 4 (d + s) of the script's model */
#define MANY  ((uint64_t)1 << 40)

static bool yes(const struct fl_options *o)
{
    (void)o;
    return true;
}

static struct fl_event report_of(const struct script *s, const char *name)
{
    struct fl_event ev = {.type = FL_EV_REPORT};

    ev.u.report.client = script_id(s, name);
    ev.u.report.round = fl_coord_round(s->coord);
    ev.u.report.attempt = fl_coord_attempt(s->coord);
    ev.u.report.samples = 100;
    ev.u.report.steps = 5;
    ev.u.report.train_loss = 2.0;
    return ev;
}

/* --- personal models --- */

TEST(only_who_uploaded_in_the_last_round_has_a_personal_model)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "own");
    script_set(s, FL_COMPONENT_UPLOAD, "hdfl");
    script_option(s, FL_COMPONENT_UPLOAD, "n", "1");
    script_begin(s, 2);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_stored(s, "a");
    script_stored(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert(s->clients[0].counted_update != s->clients[1].counted_update);
    script_join(s, "a", 100);
    ck_assert_int_eq(s->task.personal_model, s->clients[0].counted_update);
    script_join(s, "b", 100);
    ck_assert_int_eq(s->task.personal_model, s->clients[1].counted_update);
    script_free(s);
}

TEST(a_lost_uploader_is_left_out_of_the_mixing)
{
    struct script *s = script_fedavg();
    static const char *const names[] = {"a", "b", "c"};
    bool lost = false;
    uint32_t i;

    script_set(s, FL_COMPONENT_PERSONAL, "own");
    script_set(s, FL_COMPONENT_UPLOAD, "hdfl");
    script_option(s, FL_COMPONENT_UPLOAD, "n", "2");
    script_begin(s, 3);
    for (i = 0; i < 3; i++) {
        script_report(s, names[i], NULL);
    }
    for (i = 0; i < 3; i++) {
        if (fl_coord_part(s->coord, i)->state == FL_PARTICIPANT_EMPTY) {
            continue;
        }
        if (lost) {
            script_stored(s, names[i]);
        } else {
            script_lost(s, names[i]);
            lost = true;
        }
    }
    script_run_to(s, 200); /* The grace of the lost one is over. */
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.n_responders, 2);
    ck_assert_uint_eq(s->record.uplink_bytes, MODEL);
    ck_assert_uint_eq(s->aggregate.n_parts, 1);
    for (i = 0; i < 3; i++) {
        lost = s->clients[i].n_lost > 0;
        ck_assert_uint_eq(s->clients[i].counted_round, lost ? 0 : 1);
        ck_assert(!lost || !s->clients[i].counted_update);
    }
    script_free(s);
}

TEST(without_uploads_by_design_a_round_is_whole_without_an_update)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "own");
    script_set(s, FL_COMPONENT_UPLOAD, "none");
    s->conf.rounds = 1;
    s->conf.min_responders = 2;
    script_begin(s, 2);
    script_forget(s);
    script_report(s, "a", NULL);
    script_report(s, "b", NULL);
    script_expect(
        s, "[    0] persist update 1.1 a:empty:000\n"
           "[    0] a ACCEPTED 1.1\n"
           "[    0] persist update 1.1 b:empty:000\n"
           "[    0] - round 1 attempt 1: TRAINING -> UPLOADING, 2 of 2 reports, 1 accepted\n"
           "[    0] b ACCEPTED 1.1\n"
           "[    0] - round 1 attempt 1: UPLOADING -> AGGREGATING, 0 updates of 2 responders\n"
           "[    0] aggregate 1.1\n"
           "[    0] - round 1 attempt 1: AGGREGATING -> COMMITTING, loss 2.0000, 0 of 112 bytes "
           "uploaded\n"
           "[    0] commit 1.1\n"
           "[    0] closed 1.1\n"
           "[    0] - round 1 attempt 1: COMMITTING -> IDLE, committed with 2 of 2 clients\n"
           "[    0] * DRAIN 2.1 (all rounds are done)\n"
           "[    0] - round 2 attempt 1: IDLE -> DRAINING, all rounds are done\n"
           "[    0] - round 2 attempt 1: DRAINING -> STOPPED, everything is on disk\n"
           "[    0] FINISHED\n");
    ck_assert_uint_eq(s->clients[0].counted_round, 1);
    ck_assert(!s->clients[0].counted_update);
    ck_assert_uint_eq(s->record.uplink_bytes, 0);
    ck_assert_uint_eq(s->record.n_responders, 2);
    script_free(s);
}

TEST(without_uploads_too_few_reports_abort_nevertheless)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "own");
    script_set(s, FL_COMPONENT_UPLOAD, "none");
    s->conf.min_responders = 2;
    script_begin(s, 2);
    script_report(s, "a", NULL);
    script_failed(s, "b", "no power");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 0);
    ck_assert_uint_eq(fl_coord_attempt(s->coord), 2);
    script_free(s);
}

/* --- reports --- */

TEST_EACH(a_missing_inner_product_is_rejected_only_when_it_is_needed, 2)
{
    struct fl_aggregate_ops ops = fl_aggregate_mean;
    struct script *s = script_fedavg();
    struct fl_event ev;

    if (_i == 1) {
        ops.wants_previous_dot = yes;
        s->strategy->aggregate = &ops;
    }
    script_begin(s, 2);
    ev = report_of(s, "a");
    ev.u.report.previous_dot = (double)NAN;
    script_step(s, &ev);
    ck_assert_int_eq(fl_coord_part(s->coord, 0)->state,
                     _i == 1 ? FL_PARTICIPANT_REJECTED : FL_PARTICIPANT_REPORTED);
    ck_assert_double_eq(fl_coord_part(s->coord, 0)->previous_dot, 0.0);
    script_free(s);
}

TEST(inner_products_are_kept_and_counted_with_eight_bytes)
{
    struct fl_aggregate_ops ops = fl_aggregate_mean;
    struct script *s = script_fedavg();
    struct fl_event ev;

    ops.wants_previous_dot = yes;
    s->strategy->aggregate = &ops;
    script_begin(s, 2);
    ev = report_of(s, "a");
    ev.u.report.previous_dot = -1.5;
    script_step(s, &ev);
    ck_assert_double_eq(fl_coord_part(s->coord, 0)->previous_dot, -1.5);
    script_stored(s, "a");
    script_report(s, "b", NULL);
    script_failed(s, "b", "no power"); /* Its report was on the line all the same. */
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_uint_eq(s->record.feedback_bytes, 2 * 8);
    ck_assert_uint_eq(s->record.uplink_bytes, MODEL + 2 * 8);
    ck_assert_uint_eq(s->record.uplink_bytes_full, MODEL);
    script_free(s);
}

static void report_evaluations(struct script *s, const char *name, struct fl_eval_rec received,
                               struct fl_eval_rec trained)
{
    struct fl_event ev = report_of(s, name);

    ev.u.report.received = received;
    ev.u.report.trained = trained;
    script_step(s, &ev);
    script_stored(s, name);
}

#define EVAL(samples, correct, loss) ((struct fl_eval_rec){samples, correct, loss, NULL})
#define EVAL_METRICS(samples, correct, loss, metrics) \
    ((struct fl_eval_rec){samples, correct, loss, metrics})

TEST(reports_give_the_figures_of_personal_models)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    script_begin(s, 3);
    report_evaluations(s, "a", EVAL(10, 4, 9.0), EVAL(10, 8, 5.0));
    report_evaluations(s, "b", EVAL(2, 2, 9.0), EVAL(2, 1, 5.0));
    report_evaluations(s, "c", EVAL(0, 0, 0.0), EVAL(0, 0, 0.0));
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(s->record.personal_accuracy, 9.0 / 12.0);
    ck_assert_double_eq(s->record.personal_mean, (0.8 + 0.5) / 2.0);
    ck_assert_double_eq(s->record.received_accuracy, 6.0 / 12.0);
    ck_assert_double_eq(s->record.received_mean, (0.4 + 1.0) / 2.0);
    ck_assert_uint_eq(s->record.n_personal, 2);
    ck_assert_double_eq(s->record.accuracy, -1.0);
    script_free(s);
}

TEST(metrics_of_clients_are_means_by_samples_or_sums_in_the_record_of_the_round)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    script_begin(s, 3);
    report_evaluations(s, "a", EVAL_METRICS(10, 4, 9.0, "f1=0.5 errors+=6"),
                       EVAL_METRICS(10, 8, 5.0, "f1=0.75"));
    report_evaluations(s, "b", EVAL_METRICS(2, 2, 9.0, "errors+=1 f1=0.25:1"), EVAL(2, 1, 5.0));
    report_evaluations(s, "c", EVAL(0, 0, 0.0), EVAL(0, 0, 0.0));
    ck_assert_str_eq(s->record.metrics,
                     "received/errors=7 received/f1=0.477272727273 personal/f1=0.75");
    script_free(s);
}

static const char *const bad_metrics[] = {"f1=0.5 f1=0.5", "accuracy=1", "f1=high", "a b=1",
                                          "received/f1=1", "f1=1:11",    "\x1b[m=1"};

/* Its other numbers count, and so do the metrics of the others. */
TEST_EACH(bad_metrics_of_a_client_are_left_out_alone_and_its_error_says_why, 7)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    script_begin(s, 2);
    report_evaluations(s, "a", EVAL_METRICS(10, 4, 9.0, bad_metrics[_i]), EVAL(10, 8, 5.0));
    ck_assert_ptr_nonnull(strstr(s->error, "a: metrics of the received model left out: "));
    ck_assert_ptr_null(strchr(s->error, '\x1b'));
    report_evaluations(s, "b", EVAL_METRICS(10, 8, 9.0, "f1=0.25"), EVAL(10, 8, 5.0));
    ck_assert_double_eq(s->record.received_accuracy, 0.6);
    ck_assert_str_eq(s->record.metrics, "received/f1=0.25");
    script_free(s);
}

TEST(metrics_of_the_servers_evaluation_have_their_own_names)
{
    struct script *s = script_fedavg();

    s->conf.evaluate_every = 1;
    s->conf.evaluate_server = true;
    s->accuracy = 0.5;
    s->metrics = "f1=0.5 errors+=3:2";
    script_begin(s, 1);
    report_evaluations(s, "a", EVAL_METRICS(10, 4, 9.0, "f1=0.25"), EVAL(0, 0, 0.0));
    ck_assert_str_eq(s->record.metrics, "f1=0.5 errors=3 received/f1=0.25");
    s->metrics = "f1=nan";
    report_evaluations(s, "a", EVAL(0, 0, 0.0), EVAL(0, 0, 0.0));
    ck_assert_double_eq(s->record.accuracy, 0.5);
    ck_assert_str_eq(s->record.metrics, "");
    script_free(s);
}

TEST(only_responders_are_in_the_figures)
{
    struct script *s = script_fedavg();
    struct fl_event ev;

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    script_begin(s, 2);
    report_evaluations(s, "a", EVAL(10, 4, 9.0), EVAL(10, 8, 5.0));
    ev = report_of(s, "b");
    ev.u.report.trained = EVAL(10, 10, 0.0);
    script_step(s, &ev);
    script_failed(s, "b", "no power");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(s->record.personal_accuracy, 0.8);
    ck_assert_uint_eq(s->record.n_personal, 1);
    ck_assert_double_eq(s->record.client_accuracy_mean, 0.8);
    ck_assert_double_eq(s->record.client_accuracy_std, 0.0);
    script_free(s);
}

static void respond_with(struct script *s, struct fl_eval_rec received)
{
    report_evaluations(s, "a", received, EVAL(0, 0, 0.0));
}

TEST(who_announced_no_test_samples_is_held_to_its_first_report)
{
    struct script *s = script_fedavg();

    s->conf.evaluate_every = 1;
    s->conf.evaluate_clients = true;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 5); /* a tenth of it are test samples: none */
    respond_with(s, EVAL(0, 0, 0.0));
    ck_assert_double_eq(s->record.received_accuracy, -1.0);
    respond_with(s, EVAL(40, 10, 9.0));
    ck_assert_double_eq(s->record.received_accuracy, 0.25);
    respond_with(s, EVAL(41, 41, 0.0));
    ck_assert_double_eq(s->record.received_accuracy, -1.0);
    respond_with(s, EVAL(20, 10, 9.0));
    ck_assert_double_eq(s->record.received_accuracy, 0.5);
    /* It was never asked for an evaluation, which would have held the rounds up. */
    ck_assert_uint_eq(fl_coord_committed(s->coord), 4);
    script_free(s);
}

static const struct fl_eval_rec nonsense[] = {
    {.samples = 10, .correct = 11},
    {.samples = 11, .correct = 5}, /* 10 were announced */
    {.samples = 10, .correct = 5, .loss_sum = (double)NAN},
};

TEST_EACH(an_evaluation_that_cannot_be_true_is_left_out_and_the_update_counts, 3)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    script_begin(s, 1);
    report_evaluations(s, "a", nonsense[_i], nonsense[_i]);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(s->record.personal_accuracy, -1.0);
    ck_assert_double_eq(s->record.personal_mean, -1.0);
    ck_assert_double_eq(s->record.received_accuracy, -1.0);
    ck_assert_double_eq(s->record.received_mean, -1.0);
    ck_assert_uint_eq(s->record.n_personal, 0);
    ck_assert(s->clients[0].counted_update);
    script_free(s);
}

/* Of 10, 10 and 2^40 test samples the last ones count as ten times 10. */
TEST(weight_cap_bounds_a_client_in_the_figures_of_evaluations)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    s->conf.weight_cap = 10.0;
    s->conf.start_clients = 3;
    script_create(s, NULL);
    script_start(s);
    script_join(s, "a", 100); /* a tenth of them are test samples */
    script_join(s, "b", 100);
    script_join(s, "c", 10 * MANY);
    report_evaluations(s, "a", EVAL(10, 10, 0.0), EVAL(10, 5, 0.0));
    report_evaluations(s, "b", EVAL(10, 10, 0.0), EVAL(10, 5, 0.0));
    report_evaluations(s, "c", EVAL(MANY, 0, 0.0), EVAL(MANY, MANY, 0.0));
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq_tol(s->record.received_accuracy, 20.0 / 120.0, 1e-12);
    ck_assert_double_eq_tol(s->record.personal_accuracy, 110.0 / 120.0, 1e-12);
    ck_assert_double_eq_tol(s->record.personal_mean, 2.0 / 3.0, 1e-12);
    script_free(s);
}

TEST(without_personal_models_only_the_received_one_is_told)
{
    struct script *s = script_fedavg();

    script_begin(s, 1);
    report_evaluations(s, "a", EVAL(10, 4, 9.0), EVAL(10, 8, 5.0));
    ck_assert_double_eq(s->record.received_accuracy, 0.4);
    ck_assert_double_eq(s->record.personal_accuracy, -1.0);
    ck_assert_uint_eq(s->record.n_personal, 0);
    script_free(s);
}

static void evaluate(struct script *s, const char *name, struct fl_eval_rec result,
                     struct fl_eval_rec adapted)
{
    struct fl_event ev = {.type = FL_EV_EVAL_REPORT};

    ev.u.eval.client = script_id(s, name);
    ev.u.eval.round = fl_coord_round(s->coord);
    ev.u.eval.result = result;
    ev.u.eval.adapted = adapted;
    script_step(s, &ev);
}

TEST(fitted_models_are_evaluated_by_every_client_whoever_took_part)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "adapt");
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "0.1");
    s->conf.evaluate_every = 1; /* The configuration need not ask for clients' evaluations. */
    script_begin(s, 2);
    script_respond(s, fl_coord_part(s->coord, 0) != NULL ? "a" : "b");
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    evaluate(s, "a", EVAL(10, 4, 10.0), EVAL(10, 8, 5.0));
    evaluate(s, "b", EVAL(5, 1, 5.0), EVAL(5, 5, 1.0));
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_double_eq(s->record.accuracy, 5.0 / 15.0);
    ck_assert_double_eq(s->record.loss, 1.0);
    ck_assert_double_eq(s->record.received_accuracy, 5.0 / 15.0);
    ck_assert_double_eq(s->record.received_mean, (0.4 + 0.2) / 2.0);
    ck_assert_double_eq(s->record.personal_accuracy, 13.0 / 15.0);
    ck_assert_double_eq(s->record.personal_mean, (0.8 + 1.0) / 2.0);
    ck_assert_uint_eq(s->record.n_personal, 2);
    script_free(s);
}

/* Those of who was not selected, too; a failed commit has the same ones again. */
TEST(a_commit_has_the_evaluations_of_each_client)
{
    static const char evals[] = "b 10 received 0.400 1.000 f1=0.5 personal 0.800 0.500 -\n"
                                "a 5 received 0.200 1.000 - personal 1.000 0.200 f1=1\n";
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "adapt");
    script_option(s, FL_COMPONENT_FRACTION, "fraction", "0.1");
    s->conf.evaluate_every = 1;
    script_begin(s, 3);
    ck_assert_msg(fl_coord_part(s->coord, 1) != NULL, "the seed draws another client than b");
    script_respond(s, "b");
    evaluate(s, "b", EVAL_METRICS(10, 4, 10.0, "f1=0.5"), EVAL(10, 8, 5.0));
    evaluate(s, "a", EVAL(5, 1, 5.0), EVAL_METRICS(5, 5, 1.0, "f1=1"));
    s->manual = true;
    evaluate(s, "c", EVAL(0, 0, 0.0), EVAL(0, 0, 0.0));
    ck_assert_str_eq(s->evals, evals);
    s->evals[0] = '\0';
    script_fail(s, FL_ENOSPC, "no space left", UINT32_MAX);
    script_run_to(s, 100);
    script_answer(s);
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_str_eq(s->evals, evals);
    script_free(s);
}

TEST(a_commit_has_the_evaluations_that_responders_reported)
{
    struct script *s = script_fedavg();
    struct fl_event ev;

    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    script_begin(s, 2);
    report_evaluations(s, "a", EVAL_METRICS(10, 4, 9.0, "f1=0.5"), EVAL(10, 8, 5.0));
    ev = report_of(s, "b");
    ev.u.report.trained = EVAL(10, 10, 0.0);
    script_step(s, &ev);
    script_failed(s, "b", "no power");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert_str_eq(s->evals, "a 10 received 0.400 0.900 f1=0.5 personal 0.800 0.500 -\n");
    s->evals[0] = '\0';
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_str_eq(s->evals, "");
    script_free(s);
}

/* Loss mse or mae: on the server, and else on the clients. */
TEST_EACH(evaluations_of_values_have_losses_and_no_accuracy, 2)
{
    struct script *s = script_fedavg();

    s->conf.no_accuracy = true;
    s->conf.evaluate_every = 1;
    s->conf.evaluate_server = _i == 0;
    s->conf.evaluate_clients = _i == 1;
    s->accuracy = 0;
    script_begin(s, 1);
    report_evaluations(s, "a", EVAL_METRICS(10, 0, 9.0, "mae=0.25"), EVAL(0, 0, 0.0));
    if (_i == 1) {
        evaluate(s, "a", EVAL_METRICS(10, 0, 5.0, "mae=0.5"), EVAL(0, 0, 0.0));
        ck_assert_double_eq(s->record.loss, 0.5);
        ck_assert_double_eq(s->record.client_loss_mean, 0.5);
        ck_assert(fl_share_is_none(s->record.client_accuracy_mean));
        ck_assert(fl_share_is_none(s->record.client_accuracy_worst_tenth));
        ck_assert_ptr_nonnull(strstr(s->record.metrics, "received/mae=0.25"));
    }
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert(fl_share_is_none(s->record.accuracy));
    ck_assert(fl_share_is_none(s->record.received_accuracy));
    ck_assert(!fl_share_measured(s->record.personal_accuracy));
    script_free(s);
}

TEST_EACH(losses_of_clients_add_up_to_a_finite_figure, 2)
{
    struct script *s = script_fedavg();
    double loss = _i == 0 ? DBL_MAX : -DBL_MAX;
    static const char *const names[] = {"a", "b"};
    unsigned i;

    s->conf.evaluate_clients = true;
    s->conf.evaluate_every = 1;
    script_begin(s, 2);
    for (i = 0; i < 2; i++) {
        struct fl_event ev = report_of(s, names[i]);

        ev.u.report.train_loss = loss;
        script_step(s, &ev);
        script_stored(s, names[i]);
    }
    ck_assert_uint_eq(fl_coord_phase(s->coord), FL_PHASE_EVALUATING);
    evaluate(s, "a", EVAL(10, 4, loss), EVAL(0, 0, 0.0));
    evaluate(s, "b", EVAL(10, 4, loss), EVAL(0, 0, 0.0));
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    ck_assert(isfinite(s->record.train_loss));
    ck_assert(isfinite(s->record.loss));
    ck_assert(s->record.loss * loss > 0);
    ck_assert(isfinite(s->record.client_loss_mean));
    ck_assert(s->record.client_loss_mean * loss > 0);
    ck_assert_double_eq(s->record.accuracy, 0.4);
    script_free(s);
}

static void client_accuracy_is(const struct script *s, double mean, double std, double loss)
{
    ck_assert_double_eq_tol(s->record.client_accuracy_mean, mean, 1e-12);
    ck_assert_double_eq_tol(s->record.client_accuracy_std, std, 1e-12);
    ck_assert_double_eq_tol(s->record.client_loss_mean, loss, 1e-12);
}

TEST(the_accuracies_of_clients_are_those_of_the_new_model_also_beside_an_evaluation_by_the_server)
{
    struct script *s = script_fedavg();

    s->conf.evaluate_every = 2;
    s->conf.evaluate_clients = true;
    s->conf.evaluate_server = true;
    s->accuracy = 0.5;
    script_begin(s, 2);
    report_evaluations(s, "a", EVAL(10, 1, 90.0), EVAL(0, 0, 0.0));
    report_evaluations(s, "b", EVAL(10, 2, 90.0), EVAL(0, 0, 0.0));
    client_accuracy_is(s, -1.0, -1.0, 0.0); /* Only the received model was evaluated. */
    script_respond(s, "a");
    script_respond(s, "b");
    evaluate(s, "a", EVAL(10, 4, 10.0), EVAL(0, 0, 0.0));
    evaluate(s, "b", EVAL(5, 4, 15.0), EVAL(0, 0, 0.0));
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_double_eq(s->record.accuracy, 0.5);
    client_accuracy_is(s, 0.6, 0.2, 2.0);
    ck_assert_double_eq(s->record.client_accuracy_worst_tenth, 0.4);
    ck_assert_double_eq_tol(s->record.client_accuracy_median, 0.6, 1e-12);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 3);
    client_accuracy_is(s, -1.0, -1.0, 0.0);
    script_free(s);
}

TEST(the_accuracies_of_clients_are_those_of_their_own_models_where_they_have_some)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "adapt");
    s->conf.evaluate_every = 1;
    script_begin(s, 2);
    script_respond(s, "a");
    script_respond(s, "b");
    evaluate(s, "a", EVAL(10, 1, 90.0), EVAL(10, 5, 10.0));
    evaluate(s, "b", EVAL(10, 2, 90.0), EVAL(10, 9, 30.0));
    client_accuracy_is(s, 0.7, 0.2, 2.0);
    script_free(s);
    s = script_fedavg();
    script_set(s, FL_COMPONENT_PERSONAL, "trained");
    script_begin(s, 2);
    report_evaluations(s, "a", EVAL(10, 1, 90.0), EVAL(10, 5, 10.0));
    report_evaluations(s, "b", EVAL(10, 2, 90.0), EVAL(10, 9, 30.0));
    ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
    client_accuracy_is(s, 0.7, 0.2, 2.0);
    script_free(s);
}

/* 0.1 + 0.7 + 0.2 has other last bits than 0.2 + 0.7 + 0.1. */
TEST(what_clients_find_adds_up_to_the_same_bits_whoever_is_first)
{
    static const char *const orders[][3] = {{"a", "b", "c"}, {"c", "b", "a"}};
    static const uint64_t correct[] = {1, 7, 2};
    struct fl_round_rec records[2];
    unsigned o;
    unsigned i;

    for (o = 0; o < 2; o++) {
        struct script *s = script_fedavg();

        script_set(s, FL_COMPONENT_PERSONAL, "adapt");
        s->conf.evaluate_every = 1;
        script_begin(s, 3);
        for (i = 0; i < 3; i++) {
            script_respond(s, orders[o][i]);
        }
        for (i = 0; i < 3; i++) {
            unsigned k = (unsigned)(orders[o][i][0] - 'a');
            struct fl_eval_rec found = EVAL(10, correct[k], 0.1 * (double)correct[k]);

            evaluate(s, orders[o][i], found, found);
        }
        ck_assert_uint_eq(fl_coord_committed(s->coord), 1);
        records[o] = s->record;
        script_free(s);
    }
    ck_assert(0.1 + 0.7 + 0.2 != 0.2 + 0.7 + 0.1);
    ck_assert_double_eq(records[0].loss, records[1].loss);
    ck_assert_double_eq(records[0].personal_mean, records[1].personal_mean);
    ck_assert_double_eq(records[0].received_mean, records[1].received_mean);
    ck_assert_double_eq(records[0].client_accuracy_mean, records[1].client_accuracy_mean);
    ck_assert_double_eq(records[0].client_loss_mean, records[1].client_loss_mean);
}

TEST(the_attention_of_the_aggregation_is_on_record)
{
    struct script *s = script_fedavg();

    s->effective = 3.5;
    s->self_weight = (double)INFINITY;
    script_begin(s, 1);
    script_respond(s, "a");
    ck_assert_double_eq(s->record.effective, 3.5);
    ck_assert_double_eq(s->record.self_weight, 0.0);
    script_free(s);
}

TEST(clients_that_a_robust_rule_left_out_are_on_record_of_their_round_alone)
{
    struct script *s = script_fedavg();

    s->robust_clients = "a 0 12.5";
    script_begin(s, 1);
    script_respond(s, "a");
    ck_assert_str_eq(s->record.robust_clients, "a 0 12.5");
    s->robust_clients = NULL;
    script_respond(s, "a");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_str_eq(s->record.robust_clients, "");
    script_free(s);
}

/* --- bytes --- */

TEST(payloads_of_the_solver_are_counted_and_summaries_once)
{
    static const char *const inputs[] = {"control", "union", NULL};
    struct fl_solver_ops ops = fl_solver_sgd;
    struct script *s = script_fedavg();

    ops.inputs = inputs;
    ops.collection = "union";
    s->strategy->solver = &ops;
    s->collection_bytes = 1000;
    script_begin(s, 2);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(s->record.downlink_bytes, 2 * (2 * MODEL + 1000));
    ck_assert_uint_eq(s->record.uplink_bytes, 2 * MODEL + 1000); /* The union came up once. */
    ck_assert_uint_eq(s->record.uplink_bytes_full, 2 * MODEL);
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(s->record.downlink_bytes, 2 * (2 * MODEL));
    ck_assert_uint_eq(s->record.uplink_bytes, 2 * MODEL);
    script_join(s, "c", 100); /* It has to fetch the union, though it collection nothing. */
    script_respond(s, "a");
    script_respond(s, "b");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 3);
    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 4);
    ck_assert_uint_eq(s->record.downlink_bytes, 3 * (2 * MODEL) + 1000);
    script_free(s);
}

TEST(own_models_go_down_as_personal_models_only)
{
    struct script *s = script_fedavg();

    script_set(s, FL_COMPONENT_PERSONAL, "own");
    script_set(s, FL_COMPONENT_UPLOAD, "hdfl");
    script_option(s, FL_COMPONENT_UPLOAD, "n", "1");
    script_begin(s, 3);
    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(s->record.downlink_bytes, 3 * MODEL); /* Everybody starts from it. */
    script_respond(s, "a");
    script_respond(s, "b");
    script_respond(s, "c");
    ck_assert_uint_eq(fl_coord_committed(s->coord), 2);
    ck_assert_uint_eq(s->record.downlink_bytes, MODEL);
    ck_assert_uint_eq(s->record.uplink_bytes, MODEL);
    ck_assert_uint_eq(s->record.uplink_bytes_full, 3 * MODEL);
    script_free(s);
}

static void traffic_of(const struct script *s, uint64_t round, uint64_t up, uint64_t down)
{
    ck_assert_uint_eq(s->record.round, round);
    ck_assert_uint_eq(s->record.wire_up_bytes, up);
    ck_assert_uint_eq(s->record.wire_down_bytes, down);
}

/* What an aborted attempt and the time between rounds took counts in the next round. */
TEST(each_byte_of_the_network_is_in_the_record_of_one_round)
{
    struct script *s = script_fedavg();

    script_begin(s, 2);
    s->traffic = (struct fl_traffic_sums){1000, 5000};
    script_respond(s, "a");
    s->traffic = (struct fl_traffic_sums){1700, 5100};
    script_respond(s, "b");
    traffic_of(s, 1, 1700, 5100);
    s->traffic = (struct fl_traffic_sums){1800, 9000};
    script_respond(s, "a");
    script_wish(s, FL_EV_ABORT_ROUND, "by hand");
    script_run_to(s, s->now + 500);
    script_respond(s, "a");
    s->traffic = (struct fl_traffic_sums){2100, 10000};
    script_respond(s, "b");
    traffic_of(s, 2, 400, 4900);
    ck_assert_uint_eq(s->record.attempt, 2);
    script_free(s);
}
