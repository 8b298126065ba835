/* What the built-in trainer does beside a displacement: personal models, adaption, summaries. */
#include <math.h>
#include <stdio.h>

#include "libfl/nn/net_metrics.h"
#include "libfl/num/vec.h"
#include "libfl/strategy/personalization/personal.h"
#include "tests/client/train/train_fixture.h"
#include "tests/lib/suites.h"

struct fixture {
    struct server server;
    struct fl_dataset *train, *test;
    struct fl_options *personal;
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
    ck_assert_int_eq(fl_options_create(fl_personal_adapt.policy.options, &f->personal), FL_OK);
}

static void fixture_done(struct fixture *f)
{
    fl_trainer_free(f->trainer);
    fl_dataset_free(f->train);
    if (f->test != NULL) {
        fl_dataset_free(f->test);
    }
    fl_options_free(f->personal);
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

static struct fl_evaluation evaluate(struct fixture *f, const float *model)
{
    struct fl_evaluation e = {0};

    ck_assert_int_eq(fl_trainer_evaluate(f->trainer, model, NULL, &e, &f->err), FL_OK);
    return e;
}

static void assert_same(const struct fl_evaluation *have, const struct fl_evaluation *want)
{
    ck_assert_uint_eq(have->samples, want->samples);
    ck_assert_uint_eq(have->correct, want->correct);
    ck_assert_double_eq(have->loss_sum, want->loss_sum);
}

TEST(a_raw_result_holds_the_parameters_and_the_norm_of_what_changed)
{
    struct fl_train_result moved, raw;
    struct fl_train_task task;
    struct fixture f;
    size_t i;

    fixture_init(&f, false);
    prepare(&f);
    task = task_of(&f.server);
    moved = train(&f, &task);
    task.raw = true;
    raw = train(&f, &task);
    for (i = 0; i < f.server.count; i++) {
        float d = raw.delta[i] - f.server.theta[i];

        ck_assert(d == moved.delta[i]);
    }
    ck_assert_mem_eq(raw.divergence, moved.divergence,
                     fl_layout_units(f.server.model.layout) * sizeof(float));
    fl_train_result_done(&moved);
    fl_train_result_done(&raw);
    fixture_done(&f);
}

/* Lambdas; 0: plain descent. */
TEST_EACH(a_model_beside_makes_the_steps_of_prox_from_its_own_start, 2)
{
    struct fl_options *ditto = NULL;
    struct fl_train_result global, beside, want;
    struct fl_evaluation accuracy;
    struct fl_train_task task;
    struct fixture f;
    float *own;
    size_t i;

    fixture_init(&f, true);
    own = malloc(f.server.count * sizeof(*own));
    for (i = 0; i < f.server.count; i++) {
        own[i] = f.server.theta[i] + 0.1f * (float)sin((double)i);
    }
    prepare(&f);
    task = task_of(&f.server);
    want = train(&f, &task);
    ck_assert_int_eq(fl_options_create(fl_personal_ditto.policy.options, &ditto), FL_OK);
    ck_assert_int_eq(fl_options_set(ditto, "lambda", _i == 0 ? "0.7" : "0", NULL), FL_OK);
    f.server.model.personal = &fl_personal_ditto;
    f.server.model.personal_options = ditto;
    prepare(&f);
    global = train(&f, &task);
    ck_assert_mem_eq(global.delta, want.delta, f.server.count * sizeof(float));
    fl_train_result_done(&want);
    task.model = own;
    task.anchor = f.server.theta;
    task.raw = true;
    task.beside = true;
    task.evaluate_trained = true;
    beside = train(&f, &task);
    accuracy = evaluate(&f, beside.delta);
    assert_same(&beside.trained, &accuracy);
    f.server.model.personal = NULL;
    f.server.model.solver = _i == 0 ? &fl_solver_prox : &fl_solver_sgd;
    fl_options_free(f.server.options);
    ck_assert_int_eq(fl_options_create(f.server.model.solver->policy.options, &f.server.options),
                     FL_OK);
    ck_assert(_i == 1 || fl_options_set(f.server.options, "mu", "0.7", NULL) == FL_OK);
    f.server.model.solver_options = f.server.options;
    task.beside = false;
    prepare(&f);
    want = train(&f, &task);
    ck_assert_mem_eq(beside.delta, want.delta, f.server.count * sizeof(float));
    ck_assert_mem_ne(beside.delta, own, f.server.count * sizeof(float));
    fl_train_result_done(&global);
    fl_train_result_done(&beside);
    fl_train_result_done(&want);
    fl_options_free(ditto);
    fixture_done(&f);
    free(own);
}

/* --- heads (FedPer, FedRep) --- */

/* The network of the fixture in double precision, from its exported parameters alone: whole
   batches, so that no order of samples matters. */
struct plain {
    double w1[16][INPUTS], b1[16], w2[CLASSES][16], b2[CLASSES];
};

static void plain_load(struct plain *p, const float *theta)
{
    size_t n = 0;
    size_t i;
    size_t j;

    for (i = 0; i < 16; i++) {
        for (j = 0; j < INPUTS; j++) {
            p->w1[i][j] = (double)theta[n++];
        }
    }
    for (i = 0; i < 16; i++) {
        p->b1[i] = (double)theta[n++];
    }
    for (i = 0; i < CLASSES; i++) {
        for (j = 0; j < 16; j++) {
            p->w2[i][j] = (double)theta[n++];
        }
    }
    for (i = 0; i < CLASSES; i++) {
        p->b2[i] = (double)theta[n++];
    }
}

/* Adds the gradient of the loss of one sample, over `n` of them, to `g`. */
static void plain_add_gradient(const struct plain *p, const float *x, int32_t y, double n,
                               struct plain *g)
{
    double h[16], z[CLASSES], back[16] = {0};
    double top = -1e300;
    double sum = 0;
    size_t i;
    size_t j;

    for (i = 0; i < 16; i++) {
        h[i] = p->b1[i];
        for (j = 0; j < INPUTS; j++) {
            h[i] += p->w1[i][j] * (double)x[j];
        }
        h[i] = h[i] > 0 ? h[i] : 0;
    }
    for (i = 0; i < CLASSES; i++) {
        z[i] = p->b2[i];
        for (j = 0; j < 16; j++) {
            z[i] += p->w2[i][j] * h[j];
        }
        top = fmax(top, z[i]);
    }
    for (i = 0; i < CLASSES; i++) {
        z[i] = exp(z[i] - top);
        sum += z[i];
    }
    for (i = 0; i < CLASSES; i++) {
        double d = (z[i] / sum - (y == (int32_t)i ? 1 : 0)) / n;

        g->b2[i] += d;
        for (j = 0; j < 16; j++) {
            g->w2[i][j] += d * h[j];
            back[j] += d * p->w2[i][j];
        }
    }
    for (i = 0; i < 16; i++) {
        double d = h[i] > 0 ? back[i] : 0;

        g->b1[i] += d;
        for (j = 0; j < INPUTS; j++) {
            g->w1[i][j] += d * (double)x[j];
        }
    }
}

/* Steps on all samples, with a momentum that starts at 0, that move the head or the body alone. */
static void plain_train(struct plain *p, const struct fl_dataset *ds, size_t steps, bool head,
                        double momentum)
{
    struct plain v;
    double *x = (double *)(void *)p;
    double *move = (double *)(void *)&v;
    size_t body = 16 * INPUTS + 16;
    size_t all = sizeof(*p) / sizeof(*x);
    size_t s;
    size_t i;

    (void)memset(&v, 0, sizeof(v));
    for (s = 0; s < steps; s++) {
        struct plain g;
        const double *grad = (const double *)(const void *)&g;

        (void)memset(&g, 0, sizeof(g));
        for (i = 0; i < ds->n; i++) {
            plain_add_gradient(p, (const float *)ds->x + i * INPUTS, ds->y[i], (double)ds->n, &g);
        }
        for (i = head ? body : 0; i < (head ? all : body); i++) {
            move[i] = momentum * move[i] + grad[i];
            x[i] -= 0.1 * move[i];
        }
    }
}

static struct fl_options *use_head(struct fixture *f, const char *epochs)
{
    struct fl_options *o = NULL;

    ck_assert_int_eq(fl_options_create(fl_personal_head.policy.options, &o), FL_OK);
    ck_assert_int_eq(fl_options_set(o, "epochs", epochs, NULL), FL_OK);
    f->server.model.personal = &fl_personal_head;
    f->server.model.personal_options = o;
    prepare(f);
    return o;
}

/* Collins et al. 2021, Algorithm 1. */
TEST_EACH(the_head_is_trained_with_the_body_fixed_then_the_body_with_the_head_fixed, 2)
{
    const double momentum = _i == 0 ? 0 : 0.9;
    struct fl_train_result r;
    struct fl_train_task task;
    struct fl_options *head;
    struct fl_evaluation want_accuracy;
    struct plain p;
    struct fixture f;
    float *trained;
    const double *want = (const double *)(const void *)&p;
    size_t i;

    fixture_init(&f, true);
    f.server.model.batch_size = SAMPLES;
    f.server.model.epochs = 2;
    f.server.model.momentum = momentum;
    head = use_head(&f, "3");
    task = task_of(&f.server);
    task.evaluate_trained = true;
    r = train(&f, &task);
    plain_load(&p, f.server.theta);
    plain_train(&p, f.train, 3, true, momentum);
    plain_train(&p, f.train, 2, false, momentum);
    ck_assert_uint_eq(r.steps, 2); /* Those of the model that is shared. */
    trained = malloc(f.server.count * sizeof(*trained));
    for (i = 0; i < f.server.count; i++) {
        trained[i] = f.server.theta[i] + r.delta[i];
        ck_assert_double_eq_tol((double)trained[i], want[i], 2e-6);
    }
    want_accuracy = evaluate(&f, trained);
    ck_assert_uint_eq(r.trained.correct, want_accuracy.correct);
    ck_assert_double_eq_tol(r.trained.loss_sum, want_accuracy.loss_sum, 1e-3);
    free(trained);
    fl_train_result_done(&r);
    fl_options_free(head);
    fixture_done(&f);
}

/* Arivazhagan et al. 2019: the training is that of FedAvg, what stays is decided by its caller. */
TEST(without_epochs_of_its_own_the_head_is_trained_as_any_layer_bit_for_bit)
{
    struct fl_train_result want, have;
    struct fl_train_task task;
    struct fl_options *head;
    struct fixture f;

    fixture_init(&f, false);
    prepare(&f);
    task = task_of(&f.server);
    want = train(&f, &task);
    head = use_head(&f, "0");
    have = train(&f, &task);
    ck_assert_mem_eq(have.delta, want.delta, f.server.count * sizeof(float));
    fl_train_result_done(&want);
    fl_train_result_done(&have);
    fl_options_free(head);
    fixture_done(&f);
}

static void note_progress(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *last = ctx;

    ck_assert_uint_eq(done, last[0] + 1);
    last[0] = done;
    last[1] = total;
}

/* 103 samples in batches of 10: 11 steps an epoch. */
TEST(progress_counts_the_steps_of_head_and_body_together)
{
    uint64_t seen_steps[2] = {0, 0};
    struct fl_train_result r;
    struct fl_train_task task;
    struct fl_options *head;
    struct fixture f;

    fixture_init(&f, false);
    head = use_head(&f, "3");
    task = task_of(&f.server);
    task.progress = note_progress;
    task.ctx = seen_steps;
    r = train(&f, &task);
    ck_assert_uint_eq(seen_steps[0], 5 * 11);
    ck_assert_uint_eq(seen_steps[1], 5 * 11);
    ck_assert_uint_eq(r.steps, 2 * 11);
    fl_train_result_done(&r);
    fl_options_free(head);
    fixture_done(&f);
}

TEST(the_trained_model_is_evaluated_when_asked_for)
{
    struct fl_evaluation want;
    struct fl_train_result r;
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, true);
    prepare(&f);
    task = task_of(&f.server);
    task.raw = true;
    r = train(&f, &task);
    ck_assert(!r.has_trained);
    fl_train_result_done(&r);
    task.evaluate_trained = true;
    r = train(&f, &task);
    want = evaluate(&f, r.delta);
    ck_assert(r.has_trained);
    assert_same(&r.trained, &want);
    ck_assert_double_lt(r.trained.loss_sum, r.received.loss_sum);
    fl_train_result_done(&r);
    fixture_done(&f);
    fixture_init(&f, false);
    prepare(&f);
    task.model = f.server.theta;
    r = train(&f, &task);
    ck_assert(!r.has_trained);
    fl_train_result_done(&r);
    fixture_done(&f);
}

/* --- a solver whose personal model is not what it uploads, and which summaries --- */

struct fl_solver {
    struct fl_net *net;
};

static struct {
    struct fl_solver_setup setup;
    float anchor;
    unsigned n_steps, n_finish;
} seen;

static int toy_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                      struct fl_solver **ret, struct fl_err *err)
{
    (void)o;
    (void)err;
    (void)memset(&seen, 0, sizeof(seen));
    seen.setup = *setup;
    seen.anchor = setup->anchor != NULL ? setup->anchor[3] : 0;
    *ret = calloc(1, sizeof(**ret));
    (*ret)->net = setup->net;
    return FL_OK;
}

static void toy_destroy(struct fl_solver *s)
{
    free(s);
}

static void move(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    (void)ctx;
    (void)offset;
    fl_vec_axpy(params, -0.01f, grad, n);
}

static double toy_step(struct fl_solver *s, const float *x, const int32_t *y, size_t batch)
{
    seen.n_steps++;
    return fl_net_step(s->net, x, y, batch, move, NULL);
}

static int toy_finish(struct fl_solver *s, struct fl_buf *kept, struct fl_buf *sent,
                      struct fl_err *err)
{
    (void)s;
    (void)kept;
    (void)sent;
    (void)err;
    seen.n_finish++;
    return FL_OK;
}

/* All parameters 0: every class has the same probability. */
static void toy_personal(struct fl_solver *s)
{
    ck_assert_uint_eq(seen.n_finish, 1);
    (void)memset(fl_net_params(s->net), 0, fl_net_block(s->net) * sizeof(float));
}

static int toy_summary(const struct fl_options *o, const struct fl_solver_data *data, uint64_t seed,
                       struct fl_buf *out, struct fl_err *err)
{
    float x[INPUTS];
    size_t i;

    (void)err;
    ck_assert_ptr_nonnull(o);
    ck_assert_uint_eq(data->n, SAMPLES);
    ck_assert_uint_eq(data->dim, INPUTS);
    ck_assert_uint_eq(data->classes, CLASSES);
    for (i = 0; i < data->n; i++) {
        int32_t y = data->sample(data->ctx, i, x);

        ck_assert_int_eq(y, (int32_t)(i % CLASSES));
        ck_assert_int_eq(fl_buf_add(out, x, sizeof(x)), FL_OK);
    }
    return fl_buf_add(out, &seed, sizeof(seed));
}

static const struct fl_solver_ops *toy(void)
{
    static struct fl_solver_ops ops;

    ops = (struct fl_solver_ops){.policy = fl_solver_sgd.policy,
                                 .summary = toy_summary,
                                 .create = toy_create,
                                 .destroy = toy_destroy,
                                 .step = toy_step,
                                 .finish = toy_finish,
                                 .personal = toy_personal};
    return &ops;
}

TEST(the_solver_says_which_model_is_personal_and_it_changes_no_result)
{
    struct fl_train_result without, with;
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, true);
    f.server.model.solver = toy();
    prepare(&f);
    task = task_of(&f.server);
    without = train(&f, &task);
    task.evaluate_trained = true;
    with = train(&f, &task);
    ck_assert_mem_eq(with.delta, without.delta, f.server.count * sizeof(float));
    ck_assert(with.has_trained);
    ck_assert_double_eq_tol(with.trained.loss_sum, 70 * log(CLASSES), 1e-4);
    fl_train_result_done(&without);
    fl_train_result_done(&with);
    fixture_done(&f);
}

TEST(the_solver_hears_of_anchor_population_and_purpose)
{
    struct fl_evaluation received, adapted;
    struct fl_train_result r;
    struct fl_train_task task;
    float *anchor;
    struct fixture f;

    fixture_init(&f, true);
    f.server.model.solver = toy();
    f.server.model.personal = &fl_personal_adapt;
    f.server.model.personal_options = f.personal;
    prepare(&f);
    anchor = calloc(f.server.count, sizeof(float));
    anchor[3] = 5;
    task = task_of(&f.server);
    task.anchor = anchor;
    task.asked.n_selected = 4;
    task.asked.population = 12;
    r = train(&f, &task);
    ck_assert_double_eq((double)seen.anchor, 5);
    ck_assert_uint_eq(seen.setup.n_selected, 4);
    ck_assert_uint_eq(seen.setup.population, 12);
    ck_assert(!seen.setup.adapting);
    ck_assert_uint_eq(seen.n_finish, 1);
    fl_train_result_done(&r);
    task.anchor = NULL;
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_OK);
    ck_assert(seen.setup.adapting);
    ck_assert_ptr_null(seen.setup.anchor);
    ck_assert_uint_eq(seen.n_finish, 0);
    anchor[0] = NAN;
    task.anchor = anchor;
    ck_assert_int_eq(fl_trainer_run(f.trainer, &task, &r, &f.err), FL_ENUMERIC);
    free(anchor);
    fixture_done(&f);
}

TEST(a_summary_sees_every_sample_and_the_seed)
{
    struct fl_buf out;
    uint64_t seed;
    struct fixture f;

    fixture_init(&f, false);
    fl_buf_init(&out, SIZE_MAX);
    ck_assert_int_eq(fl_trainer_summary(f.trainer, 9, &out, &f.err), FL_ESTATE);
    prepare(&f);
    ck_assert_int_eq(fl_trainer_summary(f.trainer, 9, &out, &f.err), FL_ESTATE);
    ck_assert_str_eq(f.err.msg, "the solver 'sgd' summaries nothing");
    f.server.model.solver = toy();
    prepare(&f);
    ck_assert_int_eq(fl_trainer_summary(f.trainer, 9, &out, &f.err), FL_OK);
    ck_assert_uint_eq(out.len, SAMPLES * INPUTS * sizeof(float) + sizeof(seed));
    ck_assert_mem_eq(out.data, f.train->x, SAMPLES * INPUTS * sizeof(float));
    (void)memcpy(&seed, out.data + out.len - sizeof(seed), sizeof(seed));
    ck_assert_uint_eq(seed, 9);
    fl_buf_done(&out);
    fixture_done(&f);
}

/* FedMix with everybody's summaries is FedMix with those of the others; with its own alone it is
 * sgd.
 */
TEST(what_a_client_told_itself_is_not_mixed_in)
{
    struct fl_options *sgd, *mix = NULL;
    struct fl_train_result with, without, alone, plain;
    struct fl_buf all, others;
    struct fl_solver_bytes input;
    struct fl_train_task task;
    struct fixture f;
    size_t size, one;

    fixture_init(&f, false);
    size = f.server.count * sizeof(float);
    sgd = f.server.options;
    ck_assert_int_eq(fl_options_create(fl_solver_fedmix.policy.options, &mix), FL_OK);
    ck_assert_int_eq(fl_options_set(mix, "group", "7", NULL), FL_OK);
    f.server.model.solver = &fl_solver_fedmix;
    f.server.model.solver_options = mix;
    prepare(&f);
    fl_buf_init(&all, SIZE_MAX);
    fl_buf_init(&others, SIZE_MAX);
    ck_assert_int_eq(fl_trainer_summary(f.trainer, 9, &all, &f.err), FL_OK);
    one = all.len;
    ck_assert_int_eq(fl_trainer_summary(f.trainer, 8, &all, &f.err), FL_OK);
    ck_assert_int_eq(fl_trainer_summary(f.trainer, 8, &others, &f.err), FL_OK);
    task = task_of(&f.server);
    task.summary_seed = 9;
    task.inputs = &input;
    input = (struct fl_solver_bytes){all.data, all.len};
    with = train(&f, &task);
    input = (struct fl_solver_bytes){others.data, others.len};
    without = train(&f, &task);
    input = (struct fl_solver_bytes){all.data, one};
    alone = train(&f, &task);
    f.server.model.solver = &fl_solver_sgd;
    f.server.model.solver_options = sgd;
    prepare(&f);
    plain = train(&f, &task);
    ck_assert_mem_eq(with.delta, without.delta, size);
    ck_assert_mem_eq(alone.delta, plain.delta, size);
    ck_assert_mem_ne(with.delta, plain.delta, size);
    fl_train_result_done(&with);
    fl_train_result_done(&without);
    fl_train_result_done(&alone);
    fl_train_result_done(&plain);
    fl_buf_done(&all);
    fl_buf_done(&others);
    fl_options_free(mix);
    fixture_done(&f);
}

/* --- personal.adapt --- */

static void set(struct fl_options *o, const char *name, const char *value)
{
    ck_assert_int_eq(fl_options_set(o, name, value, NULL), FL_OK);
}

/*
 * Fitting is training: of the same number of steps, on the same samples, from the same model. A
 * trainer over that data with those steps says what is to come out.
 */
TEST_EACH(an_adapted_model_is_the_received_one_after_the_steps_that_were_asked_for, 8)
{
    static const struct {
        const char *steps, *epochs, *data;
        uint32_t train_epochs, train_steps; /* of the server */
        uint32_t same_epochs, same_steps;   /* of a training that does the same */
    } rows[] = {
        {"0", "0", "train", 2, 0, 2, 0}, {"0", "3", "train", 2, 0, 3, 0},
        {"0", "1", "test", 2, 0, 1, 0},  {"11", "0", "train", 2, 0, 1, 0}, /* one pass */
        {"0", "0", "train", 0, 9, 0, 9}, {"4", "3", "train", 0, 9, 0, 4},
        {"0", "1", "train", 0, 9, 1, 0}, {"7", "0", "test", 4, 0, 1, 0}, /* one pass */
    };
    struct fl_evaluation received, adapted, want;
    struct fl_trainer *same = NULL;
    struct fl_train_result r = {0};
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, true);
    set(f.personal, "steps", rows[_i].steps);
    set(f.personal, "epochs", rows[_i].epochs);
    set(f.personal, "data", rows[_i].data);
    f.server.model.epochs = rows[_i].train_epochs;
    f.server.model.steps = rows[_i].train_steps;
    f.server.model.personal = &fl_personal_adapt;
    f.server.model.personal_options = f.personal;
    prepare(&f);
    task = task_of(&f.server);
    task.asked.key.round = 2;
    ck_assert_msg(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err) == FL_OK, "%s",
                  f.err.msg);
    want = evaluate(&f, f.server.theta);
    assert_same(&received, &want);

    ck_assert_int_eq(
        fl_trainer_builtin(rows[_i].data[1] == 'e' ? f.test : f.train, NULL, NULL, &same, &f.err),
        FL_OK);
    f.server.model.personal = NULL;
    f.server.model.epochs = rows[_i].same_epochs;
    f.server.model.steps = rows[_i].same_steps;
    ck_assert_int_eq(fl_trainer_prepare(same, &f.server.model, &f.err), FL_OK);
    task.raw = true;
    ck_assert_int_eq(fl_trainer_run(same, &task, &r, &f.err), FL_OK);
    want = evaluate(&f, r.delta);
    assert_same(&adapted, &want);
    ck_assert_double_ne(adapted.loss_sum, received.loss_sum);
    fl_train_result_done(&r);
    fl_trainer_free(same);
    fixture_done(&f);
}

TEST(without_adaption_only_the_received_model_is_evaluated)
{
    struct fl_evaluation received, adapted, want;
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, true);
    task = task_of(&f.server);
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_ESTATE);
    prepare(&f);
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_OK);
    want = evaluate(&f, f.server.theta);
    assert_same(&received, &want);
    ck_assert_uint_eq(adapted.samples, 0);
    fixture_done(&f);
    fixture_init(&f, false);
    prepare(&f);
    task.model = f.server.theta;
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_ENOENT);
    fixture_done(&f);
}

static void cancel_at_3(void *ctx, uint64_t done, uint64_t total)
{
    atomic_bool *cancel = ctx;

    ck_assert_uint_eq(total, 22);
    if (done == 3) {
        atomic_store(cancel, true);
    }
}

TEST(adaption_can_be_cancelled_and_can_diverge)
{
    struct fl_evaluation received, adapted;
    struct fl_train_task task;
    atomic_bool cancel;
    struct fixture f;

    fixture_init(&f, true);
    f.server.model.personal = &fl_personal_adapt;
    f.server.model.personal_options = f.personal;
    prepare(&f);
    task = task_of(&f.server);
    atomic_init(&cancel, false);
    task.cancel = &cancel;
    task.progress = cancel_at_3;
    task.ctx = &cancel;
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_ECANCELED);
    ck_assert_msg(strstr(f.err.msg, "after 3 of 22 steps") != NULL, "%s", f.err.msg);
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_ECANCELED);
    atomic_store(&cancel, false);
    task.progress = NULL;
    task.asked.learning_rate = 1e30;
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_ENUMERIC);
    ck_assert_msg(strstr(f.err.msg, "diverged") != NULL, "%s", f.err.msg);
    task.asked.learning_rate = 0.1;
    f.server.theta[1] = INFINITY;
    ck_assert_int_eq(fl_trainer_adapt(f.trainer, &task, &received, &adapted, &f.err), FL_ENUMERIC);
    fixture_done(&f);
}

/* --- metrics of evaluations --- */

/* The accuracies of the classes, weighted by their samples, are the accuracy. */
static void expect_class_accuracies(const struct fl_evaluation *e)
{
    double correct = 0;
    double worst = 2;
    double have;
    size_t k;

    for (k = 0; k < CLASSES; k++) {
        char name[32];
        size_t n = (e->samples + CLASSES - 1 - k) / CLASSES; /* make_data() */

        (void)snprintf(name, sizeof(name), "class_accuracy/%zu", k);
        ck_assert_msg(fl_eval_metrics_find(e->metrics, name, &have), "'%s'", e->metrics);
        correct += have * (double)n;
        worst = have < worst ? have : worst;
    }
    ck_assert_double_eq_tol(correct, (double)e->correct, 1e-6);
    ck_assert(fl_eval_metrics_find(e->metrics, "worst_class", &have));
    ck_assert_double_eq_tol(have, worst, 1e-9);
}

TEST(evaluations_have_the_metrics_that_the_server_asks_for_and_no_others)
{
    struct fl_dataset *larger = make_data(151, INPUTS, CLASSES, 5);
    struct fl_evaluation e;
    struct fl_train_result r;
    struct fl_train_task task;
    struct fixture f;

    fixture_init(&f, true);
    prepare(&f);
    e = evaluate(&f, f.server.theta);
    ck_assert_str_eq(e.metrics, "");
    f.server.model.metrics = 1u << FL_NET_METRIC_CLASS_ACCURACY | 1u << FL_NET_METRIC_WORST_CLASS;
    prepare(&f);
    e = evaluate(&f, f.server.theta);
    expect_class_accuracies(&e);
    task = task_of(&f.server);
    task.evaluate_trained = true;
    r = train(&f, &task);
    expect_class_accuracies(&r.received);
    expect_class_accuracies(&r.trained);
    ck_assert_str_ne(r.received.metrics, r.trained.metrics);
    fl_train_result_done(&r);
    ck_assert_int_eq(fl_trainer_set_data(f.trainer, f.train, larger, &f.err), FL_OK);
    e = evaluate(&f, f.server.theta);
    ck_assert_uint_eq(e.samples, 151);
    expect_class_accuracies(&e);
    fixture_done(&f);
    fl_dataset_free(larger);
}
