/*
 * Who does the work: prepared for one description at a time, and which held result goes with it;
 * and evaluations, which need nothing else.
 */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/client_kept.h"
#include "tests/lib/client_spy.h"
#include "tests/lib/suites.h"

static const struct rig_server plain;

/* --- preparing --- */

static bool wants(struct rig *r, const char *name)
{
    struct fl_client_state_value value = {name, r->theta};
    const uint8_t all[] = {1, 1};
    const struct fl_round_key key = {1, 1};

    /* Only what is wanted may be put; what else is there is dropped by this. */
    if (!fl_client_state_wanted(r->worker.keeps)) {
        return false;
    }
    ck_assert_int_eq(fl_client_state_put(r->worker.keeps, key, &value, 1, &r->err), FL_OK);
    ck_assert_int_eq(fl_client_state_grant(r->worker.keeps, key, all, NULL, &r->err), FL_OK);
    return true;
}

TEST_EACH(what_is_kept_is_what_solver_codec_and_personal_policy_need, 6)
{
    static const struct {
        struct rig_server server;
        const char *names[3];
    } rows[] = {
        {{.solver = "sgd"}, {NULL}},
        {{.solver = "scaffold"}, {"scaffold.control", NULL}},
        {{.codec = "ternary residual=yes"}, {FL_KEEP_RESIDUAL, NULL}},
        {{.personal = "own"}, {FL_KEEP_PERSONAL, FL_KEEP_ANCHOR, NULL}},
        {{.personal = "ditto"}, {FL_KEEP_PERSONAL, NULL}},
        {{.wants_previous_dot = true}, {FL_KEEP_PREVIOUS, NULL}},
    };
    const struct fl_round_key next = {2, 1};
    const struct fl_round_key first = {1, 1};
    struct rig r;
    size_t i;

    client_rig_init(&r, &rows[_i].server, false);
    ck_assert(fl_client_state_wanted(r.worker.keeps) == (rows[_i].names[0] != NULL));
    for (i = 0; rows[_i].names[i] != NULL; i++) {
        ck_assert(wants(&r, rows[_i].names[i]));
        ck_assert_int_eq(fl_client_state_settle(r.worker.keeps, next, first, 0, &r.err), FL_OK);
        ck_assert(client_kept(r.worker.keeps, rows[_i].names[i]));
        ck_assert_int_eq(
            fl_client_state_settle(r.worker.keeps, first, (struct fl_round_key){0}, 0, &r.err),
            FL_OK);
    }
    rig_done(&r);
}

TEST(a_network_that_does_not_fit_the_data_leaves_nothing_prepared)
{
    const struct rig_server server = {.personal = "own"};
    struct fl_wire_welcome w = rig_welcome(&server);
    struct fl_setup *s = NULL;
    struct rig r;

    client_rig_init(&r, &server, false);
    w.input[0]++;
    ck_assert_int_eq(fl_setup_create(&w, &s, &r.err), FL_OK);
    ck_assert_int_eq(fl_worker_prepare(&r.worker, s, &r.err), FL_ESHAPE);
    ck_assert_int_ne(r.err.msg[0], '\0');
    ck_assert(!fl_client_state_wanted(r.worker.keeps));
    fl_setup_unref(s);
    rig_done(&r);
}

TEST(a_forgotten_description_keeps_nothing)
{
    const struct rig_server server = {.personal = "own"};
    struct rig r;

    client_rig_init(&r, &server, false);
    ck_assert(fl_client_state_wanted(r.worker.keeps));
    fl_worker_forget(&r.worker);
    ck_assert(!fl_client_state_wanted(r.worker.keeps));
    ck_assert_int_eq(fl_worker_prepare(&r.worker, r.setup, &r.err), FL_OK);
    ck_assert(fl_client_state_wanted(r.worker.keeps));
    rig_done(&r);
}

TEST(a_solver_that_keeps_too_much_is_refused)
{
    struct fl_keep many[FL_CLIENT_STATE_MAX];
    char names[FL_CLIENT_STATE_MAX][8];
    struct fl_solver_ops greedy = spy_solver;
    struct rig r;
    size_t i;

    client_rig_init(&r, &plain, false);
    for (i = 0; i < FL_CLIENT_STATE_MAX - 1; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "k%zu", i);
        many[i] = (struct fl_keep){names[i], false};
    }
    greedy.keeps = many;
    r.setup->solver = &greedy;
    many[FL_CLIENT_STATE_MAX - 5] = (struct fl_keep){NULL, false}; /* 11, and room for our own 5. */
    ck_assert_int_eq(fl_worker_prepare(&r.worker, r.setup, &r.err), FL_OK);
    many[FL_CLIENT_STATE_MAX - 5] = (struct fl_keep){names[FL_CLIENT_STATE_MAX - 5], false};
    many[FL_CLIENT_STATE_MAX - 4] = (struct fl_keep){NULL, false};
    ck_assert_int_eq(fl_worker_prepare(&r.worker, r.setup, &r.err), FL_ELIMIT);
    ck_assert(!fl_client_state_wanted(r.worker.keeps));
    rig_done(&r);
}

TEST(a_kept_name_is_the_solvers_with_its_own_in_front)
{
    char name[FL_NAME_MAX];
    char longest[FL_NAME_MAX];

    ck_assert_int_eq(fl_kept_name(&spy_solver, "one", name), FL_OK);
    ck_assert_str_eq(name, "spy.one");
    (void)memset(longest, 'x', sizeof(longest));
    longest[FL_NAME_MAX - 5] = '\0'; /* "spy." and a NUL fill the rest. */
    ck_assert_int_eq(fl_kept_name(&spy_solver, longest, name), FL_OK);
    longest[FL_NAME_MAX - 5] = 'x';
    longest[FL_NAME_MAX - 4] = '\0';
    ck_assert_int_eq(fl_kept_name(&spy_solver, longest, name), FL_ELIMIT);
}

TEST(a_seed_is_the_configured_one_or_that_of_the_name)
{
    ck_assert_uint_eq(fl_worker_seed("edge", 7), 7);
    ck_assert_uint_eq(fl_worker_seed("edge", 0), fl_worker_seed("edge", 0));
    ck_assert_uint_ne(fl_worker_seed("edge", 0), fl_worker_seed("edgf", 0));
    ck_assert_uint_ne(fl_worker_seed("edge", 0), 0);
}

TEST(an_empty_worker_can_be_done)
{
    struct fl_worker w = {.seed = 3};

    fl_worker_done(&w);
    ck_assert_uint_eq(w.seed, 0);
}

/* --- which held result goes with it --- */

TEST(a_held_result_without_its_pending_set_is_unfit)
{
    static const char lost[] = "its client state is missing";
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    result = rig_train_plain(&r, &task);
    ck_assert_ptr_null(fl_worker_unfit(&r.worker, result));
    result->key.attempt++;
    ck_assert_str_eq(fl_worker_unfit(&r.worker, result), lost);
    result->key.attempt--;
    result->pending = false; /* It was made while nothing was kept. */
    ck_assert_str_eq(fl_worker_unfit(&r.worker, result), lost);
    result->pending = true;
    folder_remove(client_rig_path(&r, "keep"));
    rig_restart(&r);
    ck_assert_str_eq(fl_worker_unfit(&r.worker, result), lost);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(a_held_result_with_a_pending_set_is_unfit_where_nothing_is_kept)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct rig r;

    client_rig_init(&r, &plain, false);
    result = rig_train_plain(&r, &task);
    ck_assert_ptr_null(fl_worker_unfit(&r.worker, result));
    result->pending = true;
    ck_assert_str_eq(fl_worker_unfit(&r.worker, result), "its client state is missing");
    fl_result_unref(result);
    rig_done(&r);
}

TEST_EACH(a_held_result_of_another_description_is_unfit_for_its_reason, 4)
{
    static const struct {
        struct rig_server server;
        const char *why;
    } rows[] = {
        {{.hidden = 20}, "it is for another model"},
        {{.generation = 1}, "it was made with other settings of the federation"},
        {{.solver = "scaffold"}, "it is for another algorithm"},
        {{.upload = "fedadp"}, "it is for another algorithm"},
    };
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_result *held = NULL;
    const char *why;
    struct rig r;

    client_rig_init(&r, &plain, false);
    result = rig_train_plain(&r, &task);
    rig_describe(&r, &rows[_i].server);
    ck_assert_int_eq(fl_result_load(r.dir, &held, &r.err), FL_OK);
    why = fl_worker_unfit(&r.worker, held);
    ck_assert_ptr_nonnull(why);
    ck_assert_msg(strncmp(why, rows[_i].why, strlen(rows[_i].why)) == 0, "%s", why);
    fl_result_unref(held);
    fl_result_unref(result);
    rig_done(&r);
}

/* --- evaluations --- */

static struct fl_evaluation_result evaluate(struct rig *r, const struct fl_task *task, double rate)
{
    struct fl_evaluation_result e;
    atomic_bool cancel;

    atomic_init(&cancel, false);
    ck_assert_msg(fl_evaluation_run(&r->worker,
                                    &(struct fl_evaluation_request){.setup = r->setup,
                                                                    .task = task,
                                                                    .model = r->theta,
                                                                    .rate = rate,
                                                                    .cancel = &cancel},
                                    &e, &r->err) == FL_OK,
                  "%s", r->err.msg);
    return e;
}

TEST(a_model_is_evaluated_as_it_is_where_clients_do_not_adapt)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_evaluation want;
    struct fl_evaluation_result e;
    struct rig r;

    client_rig_init(&r, &plain, true);
    ck_assert_int_eq(fl_trainer_evaluate(r.worker.trainer, r.theta, NULL, &want, &r.err), FL_OK);
    e = evaluate(&r, &task, 0.1);
    ck_assert_uint_eq(e.received.samples, r.test->n);
    ck_assert_uint_eq(e.received.correct, want.correct);
    ck_assert_double_eq(e.received.loss_sum, want.loss_sum);
    ck_assert_uint_eq(e.adapted.samples, 0);
    rig_done(&r);
}

TEST(a_client_that_adapts_tells_what_the_model_is_worth_before_and_after)
{
    const struct rig_server server = {.personal = "adapt epochs=5"};
    struct fl_task task = rig_task(0, 0); /* Before its first task. */
    struct fl_evaluation_result first;
    struct fl_evaluation_result e;
    struct rig r;

    client_rig_init(&r, &server, true);
    first = evaluate(&r, &task, 0);
    ck_assert_uint_eq(first.received.samples, r.test->n);
    ck_assert_uint_eq(first.adapted.samples, r.test->n);
    ck_assert_double_lt(first.adapted.loss_sum, first.received.loss_sum);
    /* The server's rate goes before that of the last task. */
    e = evaluate(&r, &task, 0.1);
    ck_assert_double_eq(e.adapted.loss_sum, first.adapted.loss_sum);
    e = evaluate(&r, &task, 0.01);
    ck_assert_double_ne(e.adapted.loss_sum, first.adapted.loss_sum);
    /* Nothing says how fast: as it is. */
    task.learning_rate = 0;
    e = evaluate(&r, &task, 0);
    ck_assert_double_eq(e.received.loss_sum, first.received.loss_sum);
    ck_assert_uint_eq(e.adapted.samples, 0);
    rig_done(&r);
}

/* A process that was started again has had none. */
TEST(what_a_fitted_model_is_worth_does_not_depend_on_the_tasks_before)
{
    const struct rig_server server = {.personal = "adapt steps=3"};
    struct fl_wire_welcome w = rig_welcome(&server);
    struct fl_task task = rig_task(1, 0);
    struct fl_evaluation_result e;
    struct fl_evaluation_result other;
    struct fl_setup *s = NULL;
    struct rig r;

    client_rig_init(&r, &server, true);
    w.training.epochs = 0; /* In the order that goes on from round to round. */
    w.training.steps = 3;
    ck_assert_int_eq(fl_setup_create(&w, &s, &r.err), FL_OK);
    ck_assert_int_eq(fl_worker_prepare(&r.worker, s, &r.err), FL_OK);
    fl_setup_unref(r.setup);
    r.setup = s;
    e = evaluate(&r, &task, 0.1);
    task = (struct fl_task){.key = {.round = 1}};
    other = evaluate(&r, &task, 0.1);
    ck_assert_double_eq(e.adapted.loss_sum, other.adapted.loss_sum);
    task.order_seed = 99;
    other = evaluate(&r, &task, 0.1);
    ck_assert_double_eq(e.adapted.loss_sum, other.adapted.loss_sum);
    rig_done(&r);
}

TEST_EACH(an_evaluation_fails_for_its_reason, 3)
{
    static const struct {
        double rate;
        bool with_test, canceled;
        int code;
    } rows[] = {{0.1, false, false, FL_ENOENT},
                {0.1, true, true, FL_ECANCELED},
                {1e30, true, false, FL_ENUMERIC}};
    const struct rig_server server = {.personal = "adapt epochs=2"};
    struct fl_task task = rig_task(1, 0);
    struct fl_evaluation_result e;
    atomic_bool cancel;
    struct rig r;

    client_rig_init(&r, &server, rows[_i].with_test);
    atomic_init(&cancel, rows[_i].canceled);
    ck_assert_int_eq(fl_evaluation_run(&r.worker,
                                       &(struct fl_evaluation_request){.setup = r.setup,
                                                                       .task = &task,
                                                                       .model = r.theta,
                                                                       .rate = rows[_i].rate,
                                                                       .cancel = &cancel},
                                       &e, &r.err),
                     rows[_i].code);
    ck_assert_int_ne(r.err.msg[0], '\0');
    ck_assert(!rig_has_file(&r, "result.bin"));
    rig_done(&r);
}

TEST(an_evaluation_of_a_model_of_another_description_is_refused)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_setup *before;
    struct fl_evaluation_result e;
    atomic_bool cancel;
    struct rig r;

    client_rig_init(&r, &plain, true);
    before = fl_setup_ref(r.setup);
    rig_describe(&r, &plain);
    atomic_init(&cancel, false);
    ck_assert_int_eq(
        fl_evaluation_run(
            &r.worker,
            &(struct fl_evaluation_request){
                .setup = before, .task = &task, .model = r.theta, .rate = 0.1, .cancel = &cancel},
            &e, &r.err),
        FL_ESTATE);
    ck_assert_str_eq(r.err.msg, "the setup changed: the evaluation was for another model");
    fl_setup_unref(before);
    rig_done(&r);
}
