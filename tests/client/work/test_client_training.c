/*
 * One training: what the solver is handed, what becomes of what it made, and that what is written
 * is written in an order that a kill at any point survives.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libfl/strategy/upload/upload.h"
#include "tests/lib/client_kept.h"
#include "tests/lib/client_spy.h"
#include "tests/lib/suites.h"

#define KILLED 77

/* --- the files that are published, in order; or the process ends before one --- */

static char published[1024];
static const char *kill_at; /* the end of a path */

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

int __wrap_rename(const char *from, const char *to)
{
    const char *name = strrchr(to, '/');
    size_t len = strlen(published);

    if (kill_at != NULL && strcmp(name, kill_at) == 0) {
        _exit(KILLED);
    }
    (void)snprintf(published + len, sizeof(published) - len, "%s ", name + 1);
    return __real_rename(from, to);
}

static const struct rig_server plain;

static struct fl_inputs inputs_of(struct rig *r, const struct fl_task *task)
{
    struct rig_payload model = {"model", r->theta, r->count * sizeof(float), false};
    struct fl_inputs in = {.n = 0};

    ck_assert_uint_eq(rig_fetch(r, task, &model, 1, &in), 1);
    return in;
}

static double dot(const struct fl_result *a, const struct fl_result *b)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < a->n_floats; i++) {
        sum += (double)a->delta[i] * (double)b->delta[i];
    }
    return sum;
}

/* --- what the solver is handed --- */

TEST(inputs_and_kept_values_are_handed_over_in_the_solvers_order)
{
    struct fl_task task = rig_task(1, 0);
    struct rig r;
    float *first;
    float *second;
    struct fl_result *result;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    first = rig_filled(&r, 1);
    second = rig_filled(&r, 2);
    spy.keeps[0] = 10;
    spy.keeps[1] = 20;
    {
        /* The server's order is another one, and it lists what nobody asked for. */
        size_t len = r.count * sizeof(float);
        struct rig_payload all[] = {{"first", first, len, false},
                                    {"model", r.theta, len, false},
                                    {"else", first, len, false},
                                    {"second", second, len, false}};

        result = rig_train(&r, &task, all, 4);
        ck_assert_uint_eq(spy.inputs[0].len, len);
        ck_assert_double_eq(spy.inputs[0].first, 2);
        ck_assert_uint_eq(spy.inputs[1].len, len);
        ck_assert_double_eq(spy.inputs[1].first, 1);
        ck_assert_uint_eq(spy.kept[0].len, 0);
        rig_grant(&r, result);
        fl_result_unref(result);
        /* What is not listed is none, and does not shift the others. */
        task = rig_task(2, 1);
        result = rig_train(&r, &task, all, 2);
        ck_assert_uint_eq(spy.inputs[0].len, 0);
        ck_assert_double_eq(spy.inputs[1].first, 1);
        ck_assert_uint_eq(spy.kept[0].len, len);
        ck_assert_double_eq(spy.kept[0].first, 10);
        ck_assert_double_eq(spy.kept[1].first, 20);
        fl_result_unref(result);
    }
    free(first);
    free(second);
    rig_done(&r);
}

static void count_step(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *last = ctx;

    ck_assert_uint_eq(total, SPY_STEPS);
    ck_assert_uint_eq(done, *last + 1);
    *last = done;
}

TEST(what_a_task_says_reaches_the_solver)
{
    struct fl_task task = {
        .key = {9, 3}, .learning_rate = 0.25, .seed = 5, .n_selected = 4, .population = 40};
    struct fl_training *t = NULL;
    struct fl_result *result;
    struct fl_inputs in;
    uint64_t last = 0;
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    in = inputs_of(&r, &task);
    ck_assert_int_eq(fl_training_new(&r.worker, &task, &in, count_step, &last, &t, &r.err), FL_OK);
    ck_assert_ptr_null(in.setup); /* They were taken. */
    ck_assert_int_eq(fl_training_run(t, &r.err), FL_OK);
    ck_assert_uint_eq(last, SPY_STEPS);
    ck_assert_uint_eq(spy.setup.round, 9);
    ck_assert_double_eq(spy.setup.learning_rate, 0.25);
    ck_assert_uint_eq(spy.setup.seed, 5);
    ck_assert_uint_eq(spy.setup.n_selected, 4);
    ck_assert_uint_eq(spy.setup.population, 40);
    ck_assert_double_eq(spy.start, (double)r.theta[0]);
    result = fl_training_take(t);
    ck_assert_uint_eq(result->key.round, 9);
    ck_assert_uint_eq(result->key.attempt, 3);
    ck_assert_ptr_null(fl_training_take(t)); /* Once. */
    fl_training_free(t);
    fl_training_free(NULL);
    fl_result_unref(result);
    rig_done(&r);
}

/* --- what becomes of what it made --- */

TEST(a_result_holds_what_was_trained_measured_and_sent)
{
    const struct rig_server server = {.generation = 6};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct rig r;
    size_t i;

    client_rig_init(&r, &plain, true);
    spy_describe(&r, &server);
    spy.sends = 7;
    result = rig_train_plain(&r, &task);
    ck_assert_uint_eq(result->samples, r.train->n);
    ck_assert_uint_eq(result->steps, SPY_STEPS);
    ck_assert_double_eq(result->train_loss, 0.25);
    ck_assert(result->has_received && !result->has_trained);
    ck_assert_uint_eq(result->received.samples, r.test->n);
    ck_assert_uint_eq(result->generation[0], 6);
    ck_assert_mem_eq(result->digest, fl_layout_digest(r.setup->layout), FL_DIGEST_SIZE);
    ck_assert_uint_eq(result->n_units, 2);
    ck_assert_uint_eq(result->n_floats, r.count);
    ck_assert_uint_eq(result->n_sent, 1);
    ck_assert_ptr_null(result->mask);
    for (i = 0; i < r.count; i++) {
        ck_assert_double_eq_tol((double)result->delta[i], (double)SPY_MOVED, 1e-5);
        ck_assert_double_eq((double)result->sent[0][i], 7);
    }
    ck_assert_double_gt((double)result->divergence[0],
                        (double)result->divergence[1]); /* It is larger. */
    fl_result_unref(result);
    rig_done(&r);
}

TEST(the_held_result_is_the_one_that_was_made_and_is_fit)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *held = NULL;
    struct fl_result *result;
    struct rig r;

    client_rig_init(&r, &plain, true);
    spy_describe(&r, &plain);
    result = rig_train_plain(&r, &task);
    rig_restart(&r);
    ck_assert_int_eq(fl_result_load(r.dir, &held, &r.err), FL_OK);
    ck_assert_uint_eq(held->key.round, 1);
    ck_assert(held->pending);
    ck_assert_mem_eq(held->delta, result->delta, r.count * sizeof(float));
    ck_assert_mem_eq(held->sent[0], result->sent[0], r.count * sizeof(float));
    ck_assert_double_eq(held->received.loss_sum, result->received.loss_sum);
    ck_assert_ptr_null(fl_worker_unfit(&r.worker, held));
    fl_result_unref(held);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(the_mask_is_what_the_upload_policy_says_of_model_and_update)
{
    const struct rig_server server = {.upload = "fedadp rho=0.5"};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    size_t n_sent = 0;
    uint8_t *want;
    struct rig r;
    size_t i;

    client_rig_init(&r, &server, false);
    result = rig_train_plain(&r, &task);
    ck_assert_uint_eq(result->n_mask, 16 + 3);
    want = malloc(result->n_mask);
    ck_assert_int_eq(r.setup->upload->mask(r.setup->upload_options, r.setup->layout, r.theta,
                                           result->delta, want),
                     FL_OK);
    ck_assert_mem_eq(result->mask, want, result->n_mask);
    for (i = 0; i < result->n_mask; i++) {
        n_sent += want[i] != 0;
    }
    ck_assert_uint_lt(n_sent, result->n_mask);
    ck_assert_ptr_null(fl_worker_unfit(&r.worker, result));
    free(want);
    fl_result_unref(result);
    rig_done(&r);
}

TEST(previous_dot_is_with_the_last_update_that_counted)
{
    const struct rig_server server = {.wants_previous_dot = true};
    struct fl_result *made[3];
    struct fl_task task = rig_task(1, 0);
    struct rig r;
    size_t i;

    client_rig_init(&r, &server, false);
    made[0] = rig_train_plain(&r, &task);
    ck_assert_double_eq(made[0]->previous_dot, 0); /* There was none. */
    task = rig_task(2, 1);
    task.seed = 78;
    made[1] = rig_train_plain(&r, &task);
    ck_assert_double_eq_tol(made[1]->previous_dot, dot(made[0], made[1]), 1e-9);
    ck_assert_double_gt(made[1]->previous_dot, 0);
    task = rig_task(3, 1); /* Round 2 was not counted. */
    task.seed = 79;
    made[2] = rig_train_plain(&r, &task);
    ck_assert_double_eq_tol(made[2]->previous_dot, dot(made[0], made[2]), 1e-9);
    ck_assert_double_ne(made[2]->previous_dot, dot(made[1], made[2]));
    for (i = 0; i < 3; i++) {
        fl_result_unref(made[i]);
    }
    rig_done(&r);
}

/* The update that the same client makes without momentum, of a seed. */
static struct fl_result *rig_raw(uint64_t round, uint64_t seed)
{
    struct fl_task task = rig_task(round, 0);
    struct fl_result *result;
    struct rig r;

    client_rig_init(&r, &plain, false);
    task.seed = seed;
    result = rig_train_plain(&r, &task);
    rig_done(&r);
    return result;
}

static void assert_momentum(const struct rig *r, const struct fl_result *made,
                            const struct fl_result *kept, const struct fl_result *raw, size_t l)
{
    const struct fl_unit *unit = fl_layout_unit(r->setup->layout, l);
    double sum = 0;
    size_t i;

    for (i = unit->offset; i < unit->offset + unit->count; i++) {
        double want = kept != NULL ? 0.75 * (double)kept->delta[i] + 0.25 * (double)raw->delta[i]
                                   : (double)raw->delta[i];

        ck_assert(made->delta[i] == (float)want);
        sum += (double)made->delta[i] * (double)made->delta[i];
    }
    ck_assert_double_gt(sum, 0);
    ck_assert_double_eq_tol((double)made->divergence[l], sqrt(sum), 1e-6 * sqrt(sum));
}

TEST(an_upload_is_the_momentum_of_the_updates_that_were_aggregated_also_after_a_restart)
{
    const struct rig_server server = {.client_momentum = 0.75};
    struct fl_result *made[3];
    struct fl_result *raw[3];
    struct rig r;
    size_t i;
    size_t l;

    for (i = 0; i < 3; i++) {
        raw[i] = rig_raw(i + 1, 77 + i);
    }
    client_rig_init(&r, &server, false);
    for (i = 0; i < 3; i++) {
        struct fl_task task = rig_task(i + 1, i > 0 ? 1 : 0); /* Round 2 is not aggregated. */

        task.seed = 77 + i;
        made[i] = rig_train_plain(&r, &task);
        rig_grant(&r, made[i]);
        for (l = 0; l < fl_layout_units(r.setup->layout); l++) {
            assert_momentum(&r, made[i], i > 0 ? made[0] : NULL, raw[i], l);
        }
        rig_restart(&r);
    }
    for (i = 0; i < 3; i++) {
        fl_result_unref(made[i]);
        fl_result_unref(raw[i]);
    }
    rig_done(&r);
}

TEST(a_layer_that_was_not_aggregated_has_no_momentum_yet)
{
    const struct rig_server server = {.client_momentum = 0.75};
    const uint8_t last_only[] = {0, 1};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *raw = rig_raw(2, 78);
    struct fl_result *made[2];
    struct fl_code code;
    struct rig r;

    client_rig_init(&r, &server, false);
    made[0] = rig_train_plain(&r, &task);
    code = rig_code(&r, made[0], last_only);
    ck_assert_int_eq(fl_code_run(&code, &r.err), FL_OK);
    fl_code_done(&code);
    task = rig_task(2, 1);
    task.seed = 78;
    made[1] = rig_train_plain(&r, &task);
    assert_momentum(&r, made[1], NULL, raw, 0);
    assert_momentum(&r, made[1], made[0], raw, 1);
    fl_result_unref(made[0]);
    fl_result_unref(made[1]);
    fl_result_unref(raw);
    rig_done(&r);
}

TEST(what_the_counted_round_made_is_kept_and_of_another_is_dropped)
{
    struct fl_task task = rig_task(1, 0);
    struct rig r;
    float *kept;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    spy.keeps[1] = 100;
    fl_result_unref(rig_train_plain(&r, &task));
    ck_assert(!client_kept(r.worker.keeps, "spy.two")); /* Not before it counts. */
    task = rig_task(2, 1);
    spy.keeps[1] = 200;
    fl_result_unref(rig_train_plain(&r, &task));
    ck_assert_double_eq(spy.kept[1].first, 100);
    task = rig_task(3, 1);
    fl_result_unref(rig_train_plain(&r, &task));
    ck_assert_double_eq(spy.kept[1].first, 100);
    kept = rig_kept(&r, "spy.two");
    ck_assert_double_eq((double)kept[r.count - 1], 100);
    free(kept);
    rig_done(&r);
}

TEST(only_units_that_were_granted_are_kept_of_a_value_per_unit)
{
    const uint8_t last_only[] = {0, 1};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct fl_code code;
    struct rig r;
    float *one;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    spy.keeps[0] = 100;
    result = rig_train_plain(&r, &task);
    code = rig_code(&r, result, last_only);
    ck_assert_int_eq(fl_code_run(&code, &r.err), FL_OK);
    fl_code_done(&code);
    fl_result_unref(result);
    task = rig_task(2, 1);
    fl_result_unref(rig_train_plain(&r, &task));
    one = rig_kept(&r, "spy.one");
    ck_assert_double_eq((double)one[0], 0);
    ck_assert_double_eq((double)one[fl_layout_unit(r.setup->layout, 1)->offset], 100);
    free(one);
    rig_done(&r);
}

TEST(a_value_that_the_solver_leaves_empty_stays_as_it_was)
{
    struct fl_task task = rig_task(1, 0);
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    spy.keeps[1] = 100;
    fl_result_unref(rig_train_plain(&r, &task));
    task = rig_task(2, 1);
    spy.leaves_two = true;
    fl_result_unref(rig_train_plain(&r, &task));
    task = rig_task(3, 2);
    fl_result_unref(rig_train_plain(&r, &task));
    ck_assert_double_eq(spy.kept[1].first, 100);
    rig_done(&r);
}

/* --- the order on the disk --- */

TEST(the_pending_set_is_written_before_the_held_result)
{
    struct fl_task task = rig_task(1, 0);
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    published[0] = '\0';
    fl_result_unref(rig_train_plain(&r, &task));
    ck_assert_str_eq(published, "spy.one.1.keep spy.two.2.keep layout index result.bin ");
    rig_done(&r);
}

/* Killed before any of the files is there, the task comes again and is trained again. */
TEST_EACH(a_client_that_is_killed_before_its_result_is_held_trains_again, 4)
{
    static const char *const files[] = {"/spy.one.1.keep", "/spy.two.2.keep", "/index",
                                        "/result.bin"};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *held = NULL;
    struct fl_result *again;
    int status = 0;
    struct rig r;
    pid_t pid;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        kill_at = files[_i];
        fl_result_unref(rig_train_plain(&r, &task));
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == KILLED);
    rig_restart(&r);
    ck_assert_int_eq(fl_result_load(r.dir, &held, &r.err), FL_ENOENT);
    ck_assert(fl_client_state_pending(r.worker.keeps, task.key) == (_i == 3));
    again = rig_train_plain(&r, &task);
    ck_assert_ptr_null(fl_worker_unfit(&r.worker, again));
    ck_assert_int_eq(fl_result_load(r.dir, &held, &r.err), FL_OK);
    ck_assert_mem_eq(held->delta, again->delta, r.count * sizeof(float));
    fl_result_unref(held);
    fl_result_unref(again);
    rig_done(&r);
}

TEST(a_client_that_keeps_nothing_writes_its_result_alone)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct rig r;

    client_rig_init(&r, &plain, false);
    published[0] = '\0';
    result = rig_train_plain(&r, &task);
    ck_assert(!result->pending);
    ck_assert_str_eq(published, "result.bin ");
    ck_assert(!rig_has_file(&r, "keep"));
    fl_result_unref(result);
    rig_done(&r);
}

/* --- when it fails --- */

static void cancel(void *ctx)
{
    fl_training_cancel(ctx);
}

TEST_EACH(a_cancelled_training_ends_and_leaves_nothing, 2)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_training *t = NULL;
    struct fl_inputs in;
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    in = inputs_of(&r, &task);
    ck_assert_int_eq(fl_training_new(&r.worker, &task, &in, NULL, NULL, &t, &r.err), FL_OK);
    if (_i == 0) {
        fl_training_cancel(t); /* Before it began. */
    } else {
        spy.at_step = cancel;
        spy.ctx = t;
    }
    ck_assert_int_eq(fl_training_run(t, &r.err), FL_ECANCELED);
    ck_assert_ptr_null(fl_training_take(t));
    fl_training_free(t);
    ck_assert(!fl_client_state_pending(r.worker.keeps, task.key));
    ck_assert(!rig_has_file(&r, "result.bin"));
    rig_done(&r);
}

TEST(a_divergence_is_told_as_one_and_leaves_nothing)
{
    const struct rig_server server = {.solver = "scaffold"};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result = NULL;
    struct rig_payload model;
    struct rig r;

    client_rig_init(&r, &server, false);
    model = (struct rig_payload){"model", r.theta, r.count * sizeof(float), false};
    task.learning_rate = 1e30;
    ck_assert_int_eq(rig_try(&r, &task, &model, 1, &result), FL_ENUMERIC);
    ck_assert_int_ne(r.err.msg[0], '\0');
    ck_assert_ptr_null(result);
    ck_assert(!fl_client_state_pending(r.worker.keeps, task.key));
    ck_assert(!rig_has_file(&r, "result.bin"));
    rig_done(&r);
}

TEST(without_a_model_there_is_no_training)
{
    struct fl_inputs in = {.n = 0};
    struct fl_task task = rig_task(1, 0);
    struct fl_training *t = NULL;
    struct rig r;

    client_rig_init(&r, &plain, false);
    in.setup = fl_setup_ref(r.setup);
    ck_assert_int_eq(fl_training_new(&r.worker, &task, &in, NULL, NULL, &t, &r.err), FL_OK);
    ck_assert_int_eq(fl_training_run(t, &r.err), FL_ESTATE);
    ck_assert_str_eq(r.err.msg, "no model was fetched");
    fl_training_free(t);
    rig_done(&r);
}

TEST_EACH(what_was_fetched_for_another_model_is_not_trained_on, 2)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_training *t = NULL;
    struct fl_inputs in;
    struct rig r;

    client_rig_init(&r, &plain, false);
    in = inputs_of(&r, &task);
    if (_i == 0) {
        rig_describe(&r, &plain);
    } else { /* Nothing was fetched. */
        fl_inputs_done(&in);
    }
    ck_assert_int_eq(fl_training_new(&r.worker, &task, &in, NULL, NULL, &t, &r.err), FL_ESTATE);
    ck_assert_str_eq(r.err.msg, "the fetched payloads are for another setup");
    ck_assert_ptr_null(in.setup); /* Taken all the same. */
    rig_done(&r);
}

TEST_EACH(a_block_of_the_wrong_size_is_refused_with_both_sizes, 2)
{
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result = NULL;
    struct rig_payload model;
    char want[160];
    struct rig r;

    client_rig_init(&r, &plain, false);
    spy_describe(&r, &plain);
    model = (struct rig_payload){"model", r.theta, r.count * sizeof(float), false};
    spy.keeps_len[1] = _i == 0 ? 5 : 0;
    spy.sends_len = _i == 0 ? 0 : 5;
    ck_assert_int_eq(rig_try(&r, &task, &model, 1, &result), FL_ESHAPE);
    (void)snprintf(want, sizeof(want), "the solver 'spy' made 20 bytes of '%s', expected %zu",
                   _i == 0 ? "two" : "what it sends", r.count * sizeof(float));
    ck_assert_ptr_nonnull(strstr(r.err.msg, want));
    ck_assert(!rig_has_file(&r, "result.bin"));
    rig_done(&r);
}
