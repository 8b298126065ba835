/*
 * Clients with a model of their own (personal: own): where a training starts, what it is pulled
 * to, and what of both is kept.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/client_spy.h"
#include "tests/lib/suites.h"

#define NEAR 1e-5

static float *personal_model, *model;

static size_t bytes(const struct rig *r)
{
    return r->count * sizeof(float);
}

static void begin(struct rig *r, const char *personal, bool with_test)
{
    const struct rig_server server = {.personal = personal};

    client_rig_init(r, &server, with_test);
    spy_describe(r, &server);
    personal_model = rig_filled(r, 8);
    model = rig_filled(r, 2);
}

static void end(struct rig *r)
{
    free(personal_model);
    free(model);
    rig_done(r);
}

/* The server sends the personalized model `value` beside its model, as it always lists that. */
static void train_mixed(struct rig *r, uint64_t round, uint64_t counted, float value)
{
    struct fl_task task = rig_task(round, counted);
    float *data = rig_filled(r, value);
    struct rig_payload list[] = {{"model", model, bytes(r), false},
                                 {"personal_model", data, bytes(r), false}};

    fl_result_unref(rig_train(r, &task, list, 2));
    free(data);
}

static struct fl_result *train_alone(struct rig *r, uint64_t round, uint64_t counted)
{
    struct fl_task task = rig_task(round, counted);
    struct rig_payload list[] = {{"model", model, bytes(r), false}};

    return rig_train(r, &task, list, 1);
}

/* The first and the last entry of what is kept. */
static void expect_kept(struct rig *r, const char *name, double value)
{
    float *data = rig_kept(r, name);

    ck_assert_double_eq_tol((double)data[0], value, NEAR);
    ck_assert_double_eq_tol((double)data[r->count - 1], value, NEAR);
    free(data);
}

TEST(a_client_without_anything_starts_from_the_model_and_keeps_both)
{
    struct fl_result *result;
    struct rig r;

    begin(&r, "own beta=0.25", false);
    result = train_alone(&r, 1, 0);
    ck_assert_double_eq(spy.start, 2);
    ck_assert_double_eq(spy.anchor, 0); /* None: where it starts. */
    /* What is sent are parameters, not a displacement. */
    ck_assert_double_eq_tol((double)result->delta[0], 2 + (double)SPY_MOVED, NEAR);
    fl_result_unref(result);
    fl_result_unref(train_alone(&r, 2, 1));
    expect_kept(&r, FL_KEEP_ANCHOR, 2);
    expect_kept(&r, FL_KEEP_PERSONAL, 2 + (double)SPY_MOVED);
    end(&r);
}

/* --- a model beside the global one (personal: ditto) --- */

/* With a rate of 0 the model beside stays where it starts: at the received one, then at its own. */
static struct fl_result *train_beside(struct rig *r, uint64_t round, uint64_t counted, float value,
                                      double rate)
{
    struct fl_task task = rig_task(round, counted);
    float *data = rig_filled(r, value);
    struct rig_payload list[] = {{"model", data, bytes(r), false}};
    struct fl_result *result;

    task.learning_rate = rate;
    result = rig_train(r, &task, list, 1);
    free(data);
    return result;
}

TEST_EACH(a_model_beside_starts_from_the_received_one_and_goes_on_when_it_was_counted, 2)
{
    const bool counted = _i == 0;
    struct fl_result *result;
    struct rig r;

    begin(&r, "ditto", true);
    result = train_beside(&r, 1, 0, 2, 0);
    /* What is sent is the displacement of the global model, by the solver of the server. */
    ck_assert_double_eq_tol((double)result->delta[0], (double)SPY_MOVED, NEAR);
    ck_assert(result->has_trained);
    fl_result_unref(result);
    fl_result_unref(train_beside(&r, 2, counted ? 1 : 0, 5, 0));
    rig_restart(&r);
    fl_result_unref(train_beside(&r, 3, 2, 7, 0));
    expect_kept(&r, FL_KEEP_PERSONAL, counted ? 2 : 5);
    end(&r);
}

TEST(a_model_beside_changes_nothing_of_what_is_sent)
{
    struct fl_result *with;
    struct fl_result *without;
    struct rig r;

    begin(&r, "ditto lambda=0.3", true);
    with = train_beside(&r, 1, 0, 2, 0.1);
    end(&r);
    begin(&r, "none", true);
    without = train_beside(&r, 1, 0, 2, 0.1);
    ck_assert_mem_eq(with->delta, without->delta, bytes(&r));
    ck_assert_mem_eq(with->divergence, without->divergence, with->n_units * sizeof(float));
    ck_assert_double_eq(with->train_loss, without->train_loss);
    ck_assert_uint_eq(with->steps, without->steps);
    ck_assert_double_eq(with->received.loss_sum, without->received.loss_sum);
    fl_result_unref(with);
    fl_result_unref(without);
    end(&r);
}

/* --- heads (personal: head) --- */

static struct fl_result *train_head(struct rig *r, uint64_t round, uint64_t counted,
                                    const float *theta)
{
    struct fl_task task = rig_task(round, counted);
    struct rig_payload list[] = {{"model", theta, bytes(r), false}};

    return rig_train(r, &task, list, 1);
}

/* The committed head; NULL: none. */
static float *head_kept(struct rig *r)
{
    float *kept = NULL;
    int rv = fl_client_state_load(r->worker.keeps, FL_KEEP_LOCAL, &kept, &r->err);

    ck_assert_msg(rv == FL_OK || rv == FL_ENOENT, "%s", r->err.msg);
    return kept;
}

/* FedPer and FedRep. The head of the second round is that of the first one if it was counted. */
TEST_EACH(a_head_stays_on_the_client_and_goes_on_when_it_was_counted, 4)
{
    const struct rig_server server = {.personal = _i < 2 ? "head" : "head epochs=2"};
    const bool counted = _i % 2 == 0;
    size_t offset, count; /* of the head */
    size_t last;
    struct fl_result *result;
    float *want;
    float *kept;
    size_t moved = 0;
    struct rig r;
    size_t i;

    client_rig_init(&r, &server, true);
    last = fl_layout_units(r.setup->layout) - 1;
    offset = fl_layout_unit(r.setup->layout, last)->offset;
    count = fl_layout_unit(r.setup->layout, last)->count;
    result = train_head(&r, 1, 0, r.theta);
    for (i = 0; i < count; i++) {
        ck_assert_double_eq((double)result->delta[offset + i], 0);
    }
    for (i = 0; i < offset; i++) {
        moved += result->delta[i] < 0 || result->delta[i] > 0;
    }
    ck_assert_uint_gt(moved, offset / 2);
    ck_assert_double_eq((double)result->divergence[last], 0);
    ck_assert(result->has_trained);
    fl_result_unref(result);
    rig_restart(&r);
    fl_result_unref(train_head(&r, 2, counted ? 1 : 0, r.theta));
    kept = head_kept(&r);
    if (counted) {
        ck_assert_ptr_nonnull(kept);
        ck_assert_mem_ne(kept, r.theta + offset, count * sizeof(*kept));
    } else {
        ck_assert_ptr_null(kept);
    }
    /* The second round's own head follows on what was kept. */
    rig_restart(&r);
    fl_result_unref(train_head(&r, 3, 2, r.theta));
    want = head_kept(&r);
    ck_assert_ptr_nonnull(want);
    ck_assert(kept == NULL || memcmp(want, kept, count * sizeof(*kept)) != 0);
    free(want);
    free(kept);
    rig_done(&r);
}

/* --- models of their own --- */

TEST(a_personal_model_is_blended_with_the_anchor_by_beta)
{
    struct rig r;

    begin(&r, "own beta=0.25", false);
    train_mixed(&r, 1, 0, 8);
    ck_assert_double_eq(spy.start, 8); /* No anchor yet: the personalized model itself. */
    train_mixed(&r, 2, 1, 16);
    expect_kept(&r, FL_KEEP_ANCHOR, 8);
    ck_assert_double_eq_tol(spy.start, 0.75 * 8 + 0.25 * 16, NEAR);
    ck_assert_double_eq(spy.anchor, 0);
    train_mixed(&r, 3, 2, 0);
    expect_kept(&r, FL_KEEP_ANCHOR, 10); /* Where round 2 started, not what came. */
    ck_assert_double_eq_tol(spy.start, 0.75 * 10, NEAR);
    end(&r);
}

TEST(with_beta_1_a_personal_model_is_where_it_starts)
{
    struct rig r;

    begin(&r, "own", false);
    train_mixed(&r, 1, 0, 8);
    train_mixed(&r, 2, 1, 16);
    ck_assert_double_eq(spy.start, 16);
    end(&r);
}

TEST(a_personal_model_of_a_round_that_was_not_counted_is_no_anchor)
{
    struct rig r;

    begin(&r, "own beta=0.5", false);
    train_mixed(&r, 1, 0, 8);
    train_mixed(&r, 2, 1, 100);
    train_mixed(&r, 3, 1, 4);
    ck_assert_double_eq_tol(spy.start, 0.5 * 8 + 0.5 * 4, NEAR);
    end(&r);
}

TEST(without_a_personal_model_a_client_trains_on_from_its_own_model_to_its_anchor)
{
    struct rig r;

    begin(&r, "own beta=0.25", false);
    train_mixed(&r, 1, 0, 8);
    fl_result_unref(train_alone(&r, 2, 1));
    ck_assert_double_eq_tol(spy.start, 8 + (double)SPY_MOVED, NEAR);
    ck_assert_double_eq(spy.anchor, 8);
    /* The anchor is what was received last: it stays, the own model moves on. */
    fl_result_unref(train_alone(&r, 3, 2));
    ck_assert_double_eq_tol(spy.start, 8 + 2 * (double)SPY_MOVED, NEAR);
    ck_assert_double_eq(spy.anchor, 8);
    end(&r);
}

TEST(without_a_personal_model_a_client_with_its_own_model_fetches_nothing)
{
    struct fl_task task = rig_task(2, 1);
    struct fl_inputs in = {.n = 0};
    struct rig_payload list[2];
    struct rig r;

    begin(&r, "own", false);
    list[0] = (struct rig_payload){"model", model, bytes(&r), false};
    list[1] = (struct rig_payload){"personal_model", personal_model, bytes(&r), false};
    train_mixed(&r, 1, 0, 8);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 1, &in), 0);
    ck_assert_ptr_nonnull(in.own);
    ck_assert_uint_eq(in.n, 0);
    fl_inputs_done(&in);
    ck_assert_uint_eq(rig_fetch(&r, &task, list, 2, &in), 1);
    ck_assert_ptr_null(in.own);
    ck_assert_str_eq(in.list[0].name, "personal_model");
    fl_inputs_done(&in);
    end(&r);
}

TEST(a_client_whose_own_model_is_damaged_starts_from_the_model_again)
{
    struct rig r;

    begin(&r, "own", false);
    train_mixed(&r, 1, 0, 8);
    fl_result_unref(train_alone(&r, 2, 1));
    /* Of round 1: the anchor has serial 4 behind "one", "two" and the personal model. */
    ck_assert(rig_has_file(&r, "keep/own.personal.3.keep"));
    folder_remove(client_rig_path(&r, "keep/own.personal.3.keep"));
    fl_result_unref(train_alone(&r, 2, 1));
    ck_assert_double_eq(spy.start, 2);
    ck_assert_ptr_nonnull(strstr(r.lines, "client state 'own.personal' is lost"));
    end(&r);
}

TEST(without_its_anchor_a_client_is_pulled_to_its_own_model)
{
    struct rig r;

    begin(&r, "own", false);
    train_mixed(&r, 1, 0, 8);
    fl_result_unref(train_alone(&r, 2, 1));
    ck_assert(rig_has_file(&r, "keep/own.anchor.4.keep"));
    folder_remove(client_rig_path(&r, "keep/own.anchor.4.keep"));
    fl_result_unref(train_alone(&r, 2, 1));
    ck_assert_double_eq_tol(spy.start, 8 + (double)SPY_MOVED, NEAR);
    ck_assert_ptr_null(spy.setup.anchor);
    end(&r);
}

TEST(what_a_client_with_its_own_model_trained_is_judged_on_its_test_data)
{
    struct fl_result *result;
    struct rig r;

    begin(&r, "own", true);
    result = train_alone(&r, 1, 0);
    ck_assert(result->has_received && result->has_trained);
    ck_assert_uint_eq(result->trained.samples, r.test->n);
    fl_result_unref(result);
    end(&r);
}

/* --- the presets, with their own solvers --- */

static double distance(const float *a, const float *b, size_t n)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    }
    return sqrt(sum);
}

/* FedMCSA: what is pulled harder to the anchor ends nearer to it. */
TEST(fedmcsa_pulls_a_client_that_trains_on_to_what_it_received_last)
{
    static const char *const solvers[] = {"prox mu=0", "prox mu=5 anchor=fixed"};
    double far[2];
    size_t i;

    for (i = 0; i < 2; i++) {
        const struct rig_server server = {.solver = solvers[i], .personal = "own", .epochs = 3};
        struct fl_task task = rig_task(1, 0);
        struct fl_result *result;
        struct rig_payload list;
        float *anchor;
        struct rig r;

        client_rig_init(&r, &server, false);
        list = (struct rig_payload){"personal_model", r.theta, bytes(&r), false};
        fl_result_unref(rig_train(&r, &task, &list, 1));
        task = rig_task(2, 1);
        list.name = "model"; /* No personalized model: it trains on. */
        result = rig_train(&r, &task, &list, 1);
        anchor = rig_kept(&r, FL_KEEP_ANCHOR);
        ck_assert_mem_eq(anchor, r.theta, bytes(&r));
        far[i] = distance(result->delta, anchor, r.count);
        free(anchor);
        fl_result_unref(result);
        rig_done(&r);
    }
    ck_assert_double_lt(far[1], 0.5 * far[0]);
}

TEST(pfedme_with_mixing_sends_parameters_and_judges_the_personal_model)
{
    const struct rig_server server = {.solver = "pfedme lambda=5", .personal = "own"};
    struct fl_task task = rig_task(1, 0);
    struct fl_result *result;
    struct rig r;
    float *own;

    client_rig_init(&r, &server, true);
    result = rig_train_plain(&r, &task);
    ck_assert(result->has_trained);
    ck_assert_double_lt(distance(result->delta, r.theta, r.count), 1);
    task = rig_task(2, 1);
    fl_result_unref(rig_train_plain(&r, &task));
    own = rig_kept(&r, FL_KEEP_PERSONAL);
    ck_assert_mem_eq(own, result->delta, bytes(&r));
    free(own);
    fl_result_unref(result);
    rig_done(&r);
}
