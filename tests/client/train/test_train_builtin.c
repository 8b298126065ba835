#include <math.h>
#include <stdio.h>

#include "libfl/num/vec.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/suites.h"

struct fixture {
    struct server server;
    struct fl_dataset *train, *test;
    struct fl_trainer *trainer;
    struct fl_err err;
};

static void fixture_init(struct fixture *f, bool with_test)
{
    (void)memset(f, 0, sizeof(*f));
    server_init(&f->server);
    f->train = make_data(SAMPLES, INPUTS, CLASSES, 3);
    f->test = with_test ? make_data(70, INPUTS, CLASSES, 4) : NULL;
    ck_assert_int_eq(fl_trainer_builtin(f->train, f->test, NULL, &f->trainer, &f->err), FL_OK);
}

static void fixture_done(struct fixture *f)
{
    fl_trainer_free(f->trainer);
    fl_dataset_free(f->train);
    if (f->test != NULL) {
        fl_dataset_free(f->test);
    }
    server_done(&f->server);
}

static void prepare(struct fixture *f)
{
    ck_assert_msg(fl_trainer_prepare(f->trainer, &f->server.model, &f->err) == FL_OK, "%s",
                  f->err.msg);
}

static struct fl_train_result train(struct fixture *f, const struct fl_train_task *task)
{
    struct fl_train_result r = {0};

    ck_assert_msg(fl_trainer_run(f->trainer, task, &r, &f->err) == FL_OK, "%s", f->err.msg);
    return r;
}

TEST(the_loss_falls_and_the_model_learns)
{
    struct fl_train_task task;
    struct fl_train_result r;
    struct fl_evaluation e = {0};
    double first = 0;
    double loss = 0;
    struct fixture f;
    size_t i;
    int round;

    fixture_init(&f, true);
    prepare(&f);
    task = task_of(&f.server);
    for (round = 1; round <= 5; round++) {
        task.asked.key.round = (uint64_t)round;
        r = train(&f, &task);
        ck_assert_uint_eq(r.samples, SAMPLES);
        ck_assert_uint_eq(r.steps, 2 * 11);
        first = round == 1 ? r.train_loss : first;
        loss = r.train_loss;
        for (i = 0; i < f.server.count; i++) {
            f.server.theta[i] += r.delta[i];
        }
        fl_train_result_done(&r);
    }
    ck_assert_double_lt(loss, 0.5 * first);
    ck_assert_int_eq(fl_trainer_evaluate(f.trainer, f.server.theta, NULL, &e, &f.err), FL_OK);
    ck_assert_uint_eq(e.samples, 70);
    ck_assert_uint_ge(e.correct, 60);
    fixture_done(&f);
}

static void sgd_by_hand(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    float lr = *(const float *)ctx;
    size_t i;

    (void)offset;
    for (i = 0; i < n; i++) {
        params[i] = params[i] - lr * grad[i];
    }
}

/* Epochs: order from (seed, epoch), last short batch used (docs/algorithms.md#local-steps). */
TEST_EACH(training_is_the_sgd_loop_bit_for_bit, 2)
{
    float x[10 * INPUTS];
    int32_t y[10];
    uint32_t order[SAMPLES];
    struct fl_train_task task;
    struct fl_train_result r;
    struct fl_net *net = NULL;
    float lr = 0.1f;
    float *expected;
    struct fixture f;
    struct fl_rng rng;
    double loss = 0;
    uint64_t epoch;
    size_t at;
    size_t i;

    fixture_init(&f, _i != 0);
    prepare(&f);
    task = task_of(&f.server);
    r = train(&f, &task);
    ck_assert_int_eq(fl_net_create(&f.server.model.net, 10, &net, NULL), FL_OK);
    fl_net_set(net, f.server.theta);
    for (epoch = 0; epoch < 2; epoch++) {
        for (i = 0; i < SAMPLES; i++) {
            order[i] = (uint32_t)i;
        }
        fl_rng_key(&rng, task.asked.seed, FL_RNG_BATCH, epoch, 0);
        fl_rng_shuffle(&rng, order, SAMPLES);
        for (at = 0; at < SAMPLES; at += 10) {
            size_t n = SAMPLES - at < 10 ? SAMPLES - at : 10;

            fl_dataset_gather(f.train, order + at, n, x, y);
            loss += fl_net_step(net, x, y, n, sgd_by_hand, &lr) * (double)n;
        }
    }
    expected = calloc(f.server.count, sizeof(float));
    fl_net_get(net, expected);
    fl_vec_sub(expected, expected, f.server.theta, f.server.count);
    ck_assert_mem_eq(r.delta, expected, f.server.count * sizeof(float));
    ck_assert_double_eq_tol(r.train_loss, loss / (2 * SAMPLES), 1e-12);
    free(expected);
    fl_net_free(net);
    fl_train_result_done(&r);
    fixture_done(&f);
}

TEST(the_seed_decides_the_result)
{
    struct fl_train_task task;
    struct fl_train_result a;
    struct fl_train_result b;
    struct fl_train_result c;
    struct fixture f;
    size_t size;

    fixture_init(&f, true);
    prepare(&f);
    task = task_of(&f.server);
    size = f.server.count * sizeof(float);
    a = train(&f, &task);
    task.asked.seed = 78;
    c = train(&f, &task);
    task.asked.seed = 77;
    prepare(&f); /* as after a new Welcome */
    b = train(&f, &task);
    ck_assert_mem_eq(a.delta, b.delta, size);
    ck_assert_mem_ne(a.delta, c.delta, size);
    fl_train_result_done(&a);
    fl_train_result_done(&b);
    fl_train_result_done(&c);
    fixture_done(&f);
}

/* Counted steps walk in one order: what differs between seeds here are dropout's masks. */
TEST(the_seed_decides_the_masks_of_dropout)
{
    static const char *const layers[] = {"dense 16", "relu", "dropout 0.5", "dense 3"};
    struct fl_train_task task;
    struct fl_train_result a, b, c;
    struct fixture f;

    fixture_init(&f, false);
    f.server.model.net.layers = layers;
    f.server.model.net.n_layers = 4;
    f.server.model.epochs = 0;
    f.server.model.steps = 8;
    prepare(&f);
    task = task_of(&f.server);
    a = train(&f, &task);
    b = train(&f, &task);
    ck_assert_mem_eq(a.delta, b.delta, f.server.count * sizeof(float));
    task.asked.seed++;
    c = train(&f, &task);
    ck_assert_mem_ne(a.delta, c.delta, f.server.count * sizeof(float));
    fl_train_result_done(&a);
    fl_train_result_done(&b);
    fl_train_result_done(&c);
    fixture_done(&f);
}

TEST(divergence_is_the_norm_of_each_unit)
{
    struct fl_train_result r;
    struct fl_train_task task;
    struct fixture f;
    size_t l;

    fixture_init(&f, false);
    prepare(&f);
    task = task_of(&f.server);
    r = train(&f, &task);
    for (l = 0; l < fl_layout_units(f.server.model.layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(f.server.model.layout, l);

        ck_assert_double_gt((double)r.divergence[l], 0);
        ck_assert_double_eq_tol((double)r.divergence[l],
                                fl_vec_norm2(r.delta + unit->offset, unit->count), 1e-5);
    }
    ck_assert(!r.has_received);
    fl_train_result_done(&r);
    fixture_done(&f);
}

TEST(the_received_model_is_evaluated_before_training)
{
    struct fl_train_result r;
    struct fl_train_task task;
    struct fl_evaluation e = {0};
    struct fixture f;

    fixture_init(&f, true);
    prepare(&f);
    task = task_of(&f.server);
    r = train(&f, &task);
    ck_assert_int_eq(fl_trainer_evaluate(f.trainer, f.server.theta, NULL, &e, &f.err), FL_OK);
    ck_assert(r.has_received);
    ck_assert_uint_eq(r.received.samples, e.samples);
    ck_assert_uint_eq(r.received.correct, e.correct);
    ck_assert_double_eq(r.received.loss_sum, e.loss_sum);
    fl_train_result_done(&r);
    fixture_done(&f);
}

/* Identity 14. */
TEST(a_rate_of_zero_is_an_update_of_zero)
{
    struct fl_train_result r;
    struct fl_train_task task;
    struct fixture f;
    size_t i;

    fixture_init(&f, false);
    prepare(&f);
    task = task_of(&f.server);
    task.asked.learning_rate = 0;
    r = train(&f, &task);
    for (i = 0; i < f.server.count; i++) {
        ck_assert_double_eq((double)r.delta[i], 0);
    }
    ck_assert_double_eq((double)r.divergence[0], 0);
    fl_train_result_done(&r);
    fixture_done(&f);
}

/* The families that count steps: one order, walked through across rounds. */
TEST(steps_walk_through_the_data_across_rounds)
{
    struct fl_train_task task;
    struct fl_train_result two;
    struct fl_train_result one;
    float *theta;
    struct fixture f;
    uint64_t round;
    size_t i;

    fixture_init(&f, false);
    f.server.model.epochs = 0;
    f.server.model.steps = 8;
    prepare(&f);
    task = task_of(&f.server);
    two = train(&f, &task);
    ck_assert_uint_eq(two.steps, 8);
    fl_train_result_done(&two);
    /* 4 rounds of 7 steps are 2 rounds of 14: batches 0..27 of 11 in a pass. */
    theta = calloc(f.server.count, sizeof(float));
    (void)memcpy(theta, f.server.theta, f.server.count * sizeof(float));
    f.server.model.steps = 7;
    prepare(&f);
    task.model = theta;
    for (round = 1; round <= 4; round++) {
        task.asked.key.round = round;
        task.asked.seed = round; /* does not matter here */
        one = train(&f, &task);
        for (i = 0; i < f.server.count; i++) {
            theta[i] += one.delta[i];
        }
        fl_train_result_done(&one);
    }
    f.server.model.steps = 14;
    prepare(&f);
    task.model = f.server.theta;
    for (round = 1; round <= 2; round++) {
        task.asked.key.round = round;
        two = train(&f, &task);
        for (i = 0; i < f.server.count; i++) {
            f.server.theta[i] += two.delta[i];
        }
        fl_train_result_done(&two);
    }
    for (i = 0; i < f.server.count; i++) {
        ck_assert_double_eq_tol((double)theta[i], (double)f.server.theta[i], 1e-5);
    }
    free(theta);
    fixture_done(&f);
}

/* The federation's seed decides that order, the same in every round. */
TEST(the_order_that_steps_walk_through_follows_the_order_seed)
{
    struct fl_train_task task;
    struct fl_train_result first;
    struct fl_train_result same;
    struct fl_train_result other;
    struct fixture f;

    fixture_init(&f, false);
    f.server.model.epochs = 0;
    f.server.model.steps = 3;
    prepare(&f);
    task = task_of(&f.server);
    task.asked.order_seed = 5;
    first = train(&f, &task);
    task.asked.seed++; /* another round's */
    same = train(&f, &task);
    task.asked.order_seed = 6;
    other = train(&f, &task);
    ck_assert_mem_eq(first.delta, same.delta, f.server.count * sizeof(float));
    ck_assert_mem_ne(first.delta, other.delta, f.server.count * sizeof(float));
    fl_train_result_done(&first);
    fl_train_result_done(&same);
    fl_train_result_done(&other);
    fixture_done(&f);
}

struct canceller {
    atomic_bool cancel;
    uint64_t at, last, total;
};

static void cancel_at(void *ctx, uint64_t done, uint64_t total)
{
    struct canceller *c = ctx;

    c->last = done;
    c->total = total;
    if (done == c->at) {
        atomic_store(&c->cancel, true);
    }
}

TEST(training_is_cancelled_between_steps)
{
    struct fl_train_result r = {0};
    struct canceller c = {.at = 5};
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, true);
    prepare(&f);
    task = task_of(&f.server);
    atomic_init(&c.cancel, false);
    task.cancel = &c.cancel;
    task.progress = cancel_at;
    task.ctx = &c;
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ECANCELED);
    ck_assert_uint_eq(c.last, 5);
    ck_assert_uint_eq(c.total, 22);
    ck_assert_str_eq(f.err.msg, "training was cancelled after 5 of 22 steps");
    ck_assert_ptr_null(r.delta);
    /* At once, while the received model is evaluated. */
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ECANCELED);
    atomic_store(&c.cancel, false);
    c.at = 0;
    r = train(&f, &task);
    ck_assert_uint_eq(c.last, 22);
    fl_train_result_done(&r);
    fixture_done(&f);
}

TEST(divergence_to_nan_is_an_error_that_says_so)
{
    struct fl_train_result r = {0};
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, false);
    prepare(&f);
    task = task_of(&f.server);
    task.asked.learning_rate = 1e30;
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ENUMERIC);
    ck_assert_msg(strstr(f.err.msg, "diverged") != NULL, "%s", f.err.msg);
    f.server.theta[3] = NAN;
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ENUMERIC);
    ck_assert_str_eq(f.err.msg, "the received model is not finite");
    fixture_done(&f);
}

TEST_EACH(a_network_that_does_not_fit_the_data_is_refused_with_both_numbers, 2)
{
    static const struct {
        size_t inputs, classes;
        const char *text[2];
    } rows[] = {
        {13, 3, {"takes 12 inputs", "has 13 values"}},
        {12, 4, {"has 3 classes", "training data has 4"}},
    };
    struct fl_trainer *trainer = NULL;
    struct fl_dataset *ds;
    struct fl_err err = {0};
    struct server s;

    server_init(&s);
    ds = make_data(20, rows[_i].inputs, rows[_i].classes, 1);
    ck_assert_int_eq(fl_trainer_builtin(ds, NULL, NULL, &trainer, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(trainer, &s.model, &err), FL_ESHAPE);
    ck_assert_msg(strstr(err.msg, rows[_i].text[0]) != NULL, "%s", err.msg);
    ck_assert_msg(strstr(err.msg, rows[_i].text[1]) != NULL, "%s", err.msg);
    fl_trainer_free(trainer);
    fl_dataset_free(ds);
    server_done(&s);
}

TEST(fewer_classes_in_the_data_than_in_the_network_are_fine)
{
    struct fl_trainer *trainer = NULL;
    struct fl_dataset *ds;
    struct server s;

    server_init(&s);
    ds = make_data(20, INPUTS, 2, 1);
    ck_assert_int_eq(fl_trainer_builtin(ds, NULL, NULL, &trainer, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(trainer, &s.model, NULL), FL_OK);
    fl_trainer_free(trainer);
    fl_dataset_free(ds);
    server_done(&s);
}

TEST(descriptions_that_cannot_be_trained_are_refused)
{
    static const char *const other[] = {"dense 17", "relu", "dense 3"};
    static const char *const bad[] = {"dense x"};
    struct fl_train_result r = {0};
    struct fl_evaluation e;
    struct fl_train_model m;
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, false);
    task = task_of(&f.server);
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ESTATE);
    m = f.server.model;
    m.net.n_layers = 0;
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &m, &f.err), FL_EUNIMPL);
    ck_assert_msg(strstr(f.err.msg, "trainer: command") != NULL, "%s", f.err.msg);
    m = f.server.model;
    m.epochs = 0;
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &m, &f.err), FL_EPROTO);
    m = f.server.model;
    m.batch_size = 0;
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &m, &f.err), FL_EPROTO);
    m = f.server.model;
    m.net.layers = other;
    ck_assert_int_eq(fl_trainer_prepare(f.trainer, &m, &f.err), FL_ESHAPE);
    ck_assert_msg(strstr(f.err.msg, "17") != NULL, "%s", f.err.msg);
    m.net.layers = bad;
    m.net.n_layers = 1;
    ck_assert_int_ne(fl_trainer_prepare(f.trainer, &m, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ESTATE);
    ck_assert_int_eq(fl_trainer_evaluate(f.trainer, f.server.theta, NULL, &e, &f.err), FL_ENOENT);
    fixture_done(&f);
}

TEST(a_batch_larger_than_the_data_is_the_data)
{
    struct fl_train_result r;
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, false);
    f.server.model.batch_size = UINT32_MAX;
    prepare(&f);
    task = task_of(&f.server);
    r = train(&f, &task);
    ck_assert_uint_eq(r.steps, 2);
    fl_train_result_done(&r);
    fixture_done(&f);
}

TEST(no_samples_is_an_error_at_once)
{
    struct fl_trainer *trainer = NULL;
    struct fl_dataset *ds = make_data(1, 2, 1, 1);
    struct fl_err err = {0};

    ds->n = 0;
    ck_assert_int_eq(fl_trainer_builtin(ds, NULL, NULL, &trainer, &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "the training data has no samples");
    ds->n = 1;
    fl_dataset_free(ds);
    fl_trainer_free(NULL);
}

/* --- a solver that gets, keeps and sends: the way control variates will come --- */

struct fl_solver {
    struct fl_net *net;
    uint32_t seen;
    unsigned n_steps;
};

static int toy_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                      struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *s = calloc(1, sizeof(*s));

    (void)o;
    (void)err;
    ck_assert_uint_eq(setup->n_selected, 9);
    ck_assert_uint_eq(setup->n_steps, 22);
    ck_assert_uint_eq(setup->seed, 77);
    ck_assert_uint_eq(setup->round, 1);
    ck_assert_mem_eq(setup->inputs[0].data, "control", 7);
    if (setup->kept[0].data != NULL) {
        ck_assert_uint_eq(setup->kept[0].len, sizeof(s->seen));
        (void)memcpy(&s->seen, setup->kept[0].data, sizeof(s->seen));
    }
    s->net = setup->net;
    *ret = s;
    return FL_OK;
}

static void toy_destroy(struct fl_solver *s)
{
    free(s);
}

static double toy_step(struct fl_solver *s, const float *x, const int32_t *y, size_t batch)
{
    float lr = 0.01f;

    s->n_steps++;
    return fl_net_step(s->net, x, y, batch, sgd_by_hand, &lr);
}

static int toy_finish(struct fl_solver *s, struct fl_buf *kept, struct fl_buf *sent,
                      struct fl_err *err)
{
    (void)err;
    s->seen++;
    ck_assert_uint_eq(s->n_steps, 22);
    /* What is uploaded need not be where training ended (pFedMe). */
    fl_net_params(s->net)[0] += 1;
    ck_assert_int_eq(fl_buf_add(&kept[0], &s->seen, sizeof(s->seen)), FL_OK);
    return fl_buf_add(&sent[0], "dc", 2);
}

static const char *const toy_inputs[] = {"control", NULL};
static const struct fl_keep toy_keeps[] = {{"own", false}, {NULL, false}};
static const char *const toy_sends[] = {"change", NULL};

TEST(a_solver_gets_keeps_and_sends)
{
    struct fl_solver_ops ops = {.policy = fl_solver_sgd.policy,
                                .inputs = toy_inputs,
                                .keeps = toy_keeps,
                                .sends = toy_sends,
                                .create = toy_create,
                                .destroy = toy_destroy,
                                .step = toy_step,
                                .finish = toy_finish};
    struct fl_solver_bytes inputs[1] = {{.data = "control", .len = 7}};
    struct fl_solver_bytes kept[1] = {{.data = NULL}};
    struct fl_train_result r;
    struct fl_train_task task;
    struct fixture f;
    uint32_t seen = 0;
    uint32_t i;

    fixture_init(&f, false);
    f.server.model.solver = &ops;
    prepare(&f);
    task = task_of(&f.server);
    task.asked.n_selected = 9;
    task.inputs = inputs;
    task.kept = kept;
    for (i = 1; i <= 3; i++) {
        r = train(&f, &task);
        ck_assert_uint_eq(r.n_kept, 1);
        ck_assert_uint_eq(r.n_sent, 1);
        ck_assert_uint_eq(r.kept[0].len, sizeof(seen));
        (void)memcpy(&seen, r.kept[0].data, sizeof(seen));
        ck_assert_uint_eq(seen, i);
        ck_assert_mem_eq(r.sent[0].data, "dc", 2);
        kept[0].data = &seen;
        kept[0].len = sizeof(seen);
        fl_train_result_done(&r);
    }
    fixture_done(&f);
}
