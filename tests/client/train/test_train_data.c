/*
 * One trainer over the data of one client after the other: what it makes is what a new trainer
 * makes, whatever the algorithm.
 */
#include <stdio.h>

#include "tests/client/train/train_fixture.h"
#include "tests/lib/suites.h"

#define CLIENTS 4
#define TURNS   9

struct client {
    struct fl_dataset *train, *test;
    struct fl_buf summary;
};

struct world {
    struct server server;
    struct fl_strategy *strategy;
    struct client clients[CLIENTS];
    struct fl_buf collection; /* of all */
    struct fl_err err;
};

/* Fewer samples than a batch and many more; with and without test data, and with more of that. */
static const size_t n_train[CLIENTS] = {23, 5, 67, 41};
static const size_t n_test[CLIENTS] = {30, 0, 9, 140};
/* Forth and back, and twice the same. */
static const size_t turns[TURNS] = {1, 0, 0, 2, 1, 3, 1, 2, 0};

static const char *const layers[] = {"dense 16", "bn", "relu", "dropout 0.2", "dense 3"};

static uint64_t seed_of(size_t k)
{
    return 100 + k;
}

static struct fl_trainer *new_trainer(struct world *w, size_t k)
{
    struct fl_trainer *t = NULL;

    ck_assert_int_eq(fl_trainer_builtin(w->clients[k].train, w->clients[k].test, NULL, &t, &w->err),
                     FL_OK);
    ck_assert_msg(fl_trainer_prepare(t, &w->server.model, &w->err) == FL_OK, "%s", w->err.msg);
    return t;
}

static void describe(struct world *w, const char *preset, uint32_t epochs, uint32_t steps)
{
    struct fl_train_model *m = &w->server.model;
    struct fl_net_spec spec = {.input = {INPUTS}, .n_input = 1, .layers = layers, .n_layers = 5};

    fl_net_free(w->server.net);
    ck_assert_int_eq(fl_net_create(&spec, 8, &w->server.net, NULL), FL_OK);
    w->server.count = fl_layout_count(fl_net_layout(w->server.net));
    free(w->server.theta);
    w->server.theta = calloc(w->server.count, sizeof(float));
    fl_net_get(w->server.net, w->server.theta);
    ck_assert_int_eq(fl_strategy_create(preset, &w->strategy, &w->err), FL_OK);
    m->layout = fl_net_layout(w->server.net);
    m->net = spec;
    m->solver = w->strategy->solver;
    m->solver_options = w->strategy->options[FL_COMPONENT_SOLVER];
    m->personal = w->strategy->personal;
    m->personal_options = w->strategy->options[FL_COMPONENT_PERSONAL];
    m->epochs = epochs;
    m->steps = steps;
    m->batch_size = 10;
}

static void make_summaries(struct world *w)
{
    size_t k;

    fl_buf_init(&w->collection, SIZE_MAX);
    for (k = 0; k < CLIENTS; k++) {
        struct client *c = &w->clients[k];
        struct fl_trainer *t = NULL;

        fl_buf_init(&c->summary, FL_SUMMARY_MAX);
        if (w->strategy->solver->summary == NULL) {
            continue;
        }
        t = new_trainer(w, k);
        ck_assert_msg(fl_trainer_summary(t, seed_of(k), &c->summary, &w->err) == FL_OK, "%s",
                      w->err.msg);
        ck_assert_int_eq(fl_buf_add(&w->collection, c->summary.data, c->summary.len), FL_OK);
        fl_trainer_free(t);
    }
}

static void world_init(struct world *w, const char *preset, uint32_t epochs, uint32_t steps)
{
    struct fl_rng rng;
    size_t k;

    (void)memset(w, 0, sizeof(*w));
    server_init(&w->server);
    describe(w, preset, epochs, steps);
    fl_rng_seed(&rng, 1);
    fl_net_init(w->server.net, &rng);
    fl_net_get(w->server.net, w->server.theta);
    for (k = 0; k < CLIENTS; k++) {
        w->clients[k].train = make_data(n_train[k], INPUTS, CLASSES, 3 + k);
        w->clients[k].test = n_test[k] > 0 ? make_data(n_test[k], INPUTS, CLASSES, 30 + k) : NULL;
    }
    make_summaries(w);
}

static void world_done(struct world *w)
{
    size_t k;

    for (k = 0; k < CLIENTS; k++) {
        fl_dataset_free(w->clients[k].train);
        fl_dataset_free(w->clients[k].test);
        fl_buf_done(&w->clients[k].summary);
    }
    fl_buf_done(&w->collection);
    fl_strategy_free(w->strategy);
    server_done(&w->server);
}

/* A block of the model's shape, small and the same in every run. */
static float *block(const struct world *w, uint64_t seed)
{
    float *ret = calloc(w->server.count, sizeof(*ret));
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, seed);
    for (i = 0; i < w->server.count; i++) {
        ret[i] = 0.01f * (float)fl_rng_normal(&rng);
    }
    return ret;
}

struct outcome {
    struct fl_train_result trained;
    struct fl_evaluation received, adapted;
    struct fl_buf summary;
};

static void outcome_done(struct outcome *o)
{
    fl_train_result_done(&o->trained);
    fl_buf_done(&o->summary);
}

/* The task of client `k` in its `turn`, by `t`, which is over its data. */
static void carry_out(struct world *w, struct fl_trainer *t, size_t k, size_t turn,
                      struct outcome *ret)
{
    const struct fl_solver_ops *solver = w->strategy->solver;
    struct fl_train_task task = task_of(&w->server);
    struct fl_solver_bytes inputs[4] = {{NULL, 0}};
    struct fl_solver_bytes kept[4] = {{NULL, 0}};
    float *blocks[8] = {NULL};
    size_t bytes = w->server.count * sizeof(float);
    size_t i;

    *ret = (struct outcome){.summary = {.data = NULL}};
    for (i = 0; i < fl_solver_names(solver->inputs); i++) {
        bool opaque =
            solver->collection != NULL && strcmp(solver->inputs[i], solver->collection) == 0;

        blocks[i] = block(w, 50 + i);
        inputs[i] = opaque ? (struct fl_solver_bytes){w->collection.data, w->collection.len}
                           : (struct fl_solver_bytes){blocks[i], bytes};
    }
    for (i = 0; i < fl_solver_keeps(solver->keeps); i++) {
        blocks[4 + i] = block(w, 70 + 10 * k + i);
        kept[i] = (struct fl_solver_bytes){blocks[4 + i], bytes};
    }
    task.asked.key.round = turn + 1;
    task.asked.learning_rate = 0.01;
    task.asked.seed = 1000 * turn + k;
    task.asked.order_seed = 5 + k;
    task.summary_seed = seed_of(k);
    task.raw = w->strategy->personal->own;
    task.evaluate_trained = w->strategy->personal->trained;
    task.asked.n_selected = 3;
    task.asked.population = CLIENTS;
    task.inputs = inputs;
    task.kept = kept;
    ck_assert_msg(fl_trainer_run(t, &task, &ret->trained, &w->err) == FL_OK, "%s", w->err.msg);
    if (w->clients[k].test != NULL) {
        ck_assert_msg(fl_trainer_adapt(t, &task, &ret->received, &ret->adapted, &w->err) == FL_OK,
                      "%s", w->err.msg);
    }
    if (solver->summary != NULL) {
        fl_buf_init(&ret->summary, FL_SUMMARY_MAX);
        ck_assert_int_eq(fl_trainer_summary(t, seed_of(k), &ret->summary, &w->err), FL_OK);
    }
    for (i = 0; i < 8; i++) {
        free(blocks[i]);
    }
}

static void same_bytes(const struct fl_buf *a, const struct fl_buf *b)
{
    ck_assert_uint_eq(a->len, b->len);
    ck_assert(a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void same_evaluation(const struct fl_evaluation *a, const struct fl_evaluation *b)
{
    ck_assert_uint_eq(a->samples, b->samples);
    ck_assert_uint_eq(a->correct, b->correct);
    ck_assert(memcmp(&a->loss_sum, &b->loss_sum, sizeof(a->loss_sum)) == 0);
}

static void same(const struct world *w, const struct outcome *x, const struct outcome *y)
{
    const struct fl_train_result *a = &x->trained;
    const struct fl_train_result *b = &y->trained;
    size_t i;

    ck_assert_uint_eq(a->samples, b->samples);
    ck_assert_uint_eq(a->steps, b->steps);
    ck_assert(memcmp(&a->train_loss, &b->train_loss, sizeof(a->train_loss)) == 0);
    ck_assert(memcmp(a->delta, b->delta, w->server.count * sizeof(float)) == 0);
    ck_assert(memcmp(a->divergence, b->divergence,
                     fl_layout_units(w->server.model.layout) * sizeof(float)) == 0);
    ck_assert_int_eq(a->has_received, b->has_received);
    ck_assert_uint_eq(a->received.samples, b->received.samples);
    ck_assert(memcmp(&a->received.loss_sum, &b->received.loss_sum, sizeof(a->received.loss_sum)) ==
              0);
    ck_assert_int_eq(a->has_trained, b->has_trained);
    same_evaluation(&a->trained, &b->trained);
    ck_assert_uint_eq(a->n_kept, b->n_kept);
    ck_assert_uint_eq(a->n_sent, b->n_sent);
    for (i = 0; i < a->n_kept; i++) {
        same_bytes(&a->kept[i], &b->kept[i]);
    }
    for (i = 0; i < a->n_sent; i++) {
        same_bytes(&a->sent[i], &b->sent[i]);
    }
    same_evaluation(&x->received, &y->received);
    same_evaluation(&x->adapted, &y->adapted);
    same_bytes(&x->summary, &y->summary);
}

static void one_trainer_for_all(const char *preset, uint32_t epochs, uint32_t steps)
{
    struct fl_trainer *one;
    struct world w;
    size_t turn;

    world_init(&w, preset, epochs, steps);
    one = new_trainer(&w, turns[0]);
    for (turn = 0; turn < TURNS; turn++) {
        const struct client *c = &w.clients[turns[turn]];
        struct fl_trainer *fresh = new_trainer(&w, turns[turn]);
        struct outcome a;
        struct outcome b;

        ck_assert_msg(fl_trainer_set_data(one, c->train, c->test, &w.err) == FL_OK, "%s",
                      w.err.msg);
        carry_out(&w, one, turns[turn], turn, &a);
        carry_out(&w, fresh, turns[turn], turn, &b);
        same(&w, &a, &b);
        outcome_done(&a);
        outcome_done(&b);
        fl_trainer_free(fresh);
    }
    fl_trainer_free(one);
    world_done(&w);
}

TEST(a_trainer_over_other_data_makes_what_a_new_one_makes_for_every_preset)
{
    const struct fl_preset *preset = fl_strategy_presets();

    for (; preset->name != NULL; preset++) {
        (void)fprintf(stderr, "%s\n", preset->name); /* where it ends, if it does */
        one_trainer_for_all(preset->name, 2, 0);
        one_trainer_for_all(preset->name, 0, 7);
    }
}

TEST(data_may_be_given_before_a_model_is_described)
{
    struct fl_trainer *one = NULL;
    struct outcome a;
    struct outcome b;
    struct fl_trainer *fresh;
    struct world w;

    world_init(&w, "fedavg", 1, 0);
    ck_assert_int_eq(fl_trainer_builtin(w.clients[1].train, NULL, NULL, &one, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_set_data(one, w.clients[2].train, w.clients[2].test, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_prepare(one, &w.server.model, NULL), FL_OK);
    fresh = new_trainer(&w, 2);
    carry_out(&w, one, 2, 0, &a);
    carry_out(&w, fresh, 2, 0, &b);
    same(&w, &a, &b);
    outcome_done(&a);
    outcome_done(&b);
    fl_trainer_free(fresh);
    fl_trainer_free(one);
    world_done(&w);
}

/* 0: other inputs; 1: the same of the test data; 2: more classes; 3: no samples */
TEST_EACH(data_that_does_not_fit_is_refused_and_that_before_stays, 4)
{
    static const int codes[] = {FL_ESHAPE, FL_ESHAPE, FL_ESHAPE, FL_EINVAL};
    struct fl_dataset *bad =
        make_data(10, _i < 2 ? INPUTS + 1 : INPUTS, _i == 2 ? CLASSES + 1 : CLASSES, 9);
    struct fl_trainer *fresh;
    struct fl_trainer *one;
    struct outcome a;
    struct outcome b;
    struct world w;
    size_t n = bad->n;

    world_init(&w, "fedavg", 1, 0);
    one = new_trainer(&w, 0);
    bad->n = _i == 3 ? 0 : n;
    ck_assert_int_eq(
        fl_trainer_set_data(one, _i == 1 ? w.clients[1].train : bad, _i == 1 ? bad : NULL, &w.err),
        codes[_i]);
    ck_assert_ptr_nonnull(strstr(w.err.msg, _i == 1 ? "test data" : "training data"));
    fresh = new_trainer(&w, 0);
    carry_out(&w, one, 0, 0, &a);
    carry_out(&w, fresh, 0, 0, &b);
    same(&w, &a, &b);
    outcome_done(&a);
    outcome_done(&b);
    fl_trainer_free(fresh);
    fl_trainer_free(one);
    bad->n = n;
    fl_dataset_free(bad);
    world_done(&w);
}

TEST(a_program_that_trains_has_its_own_data)
{
    static const char *const argv[] = {"/bin/true", NULL};
    const struct fl_command_conf conf = {.program.argv = argv, .program.work_dir = "/tmp"};
    struct fl_dataset *ds = make_data(10, INPUTS, CLASSES, 9);
    struct fl_trainer *t = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_trainer_command(&conf, &t, &err), FL_OK);
    ck_assert_int_eq(fl_trainer_set_data(t, ds, NULL, &err), FL_EUNIMPL);
    fl_trainer_free(t);
    fl_dataset_free(ds);
}
