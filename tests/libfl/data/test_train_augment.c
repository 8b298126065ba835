/* Augmentation of the training batches of the built-in engine. */
#include "tests/client/train/train_fixture.h"
#include "tests/lib/suites.h"

#define SIDE 6

static const char *const image_layers[] = {"flatten", "dense 3"};

struct rig {
    struct fl_dataset *train, *test;
    struct fl_net *net;
    struct fl_options *options;
    struct fl_train_model model;
    float *theta;
    size_t count;
};

static void rig_init(struct rig *r)
{
    const struct fl_net_spec spec = {
        .input = {1, SIDE, SIDE}, .n_input = 3, .layers = image_layers, .n_layers = 2};
    const size_t dims[3] = {1, SIDE, SIDE};
    struct fl_rng rng;
    size_t i;

    *r = (struct rig){.train = NULL};
    ck_assert_int_eq(fl_dataset_create(FL_DATA_U8, 40, dims, 3, &r->train, NULL), FL_OK);
    fl_rng_seed(&rng, 3);
    for (i = 0; i < r->train->n * r->train->dim; i++) {
        ((uint8_t *)r->train->x)[i] = (uint8_t)fl_rng_below(&rng, 256);
    }
    for (i = 0; i < r->train->n; i++) {
        r->train->y[i] = (int32_t)(i % 3);
    }
    r->train->classes = 3;
    ck_assert_int_eq(fl_dataset_split(r->train, 0.25, 1, &r->test, NULL), FL_OK);
    ck_assert_int_eq(fl_net_create(&spec, 8, &r->net, NULL), FL_OK);
    fl_net_init(r->net, &rng);
    r->count = fl_layout_count(fl_net_layout(r->net));
    r->theta = calloc(r->count, sizeof(float));
    ck_assert_ptr_nonnull(r->theta);
    fl_net_get(r->net, r->theta);
    ck_assert_int_eq(fl_options_create(fl_solver_sgd.policy.options, &r->options), FL_OK);
    r->model = (struct fl_train_model){.layout = fl_net_layout(r->net),
                                       .net = spec,
                                       .solver = &fl_solver_sgd,
                                       .solver_options = r->options,
                                       .epochs = 2,
                                       .batch_size = 10};
}

static void rig_done(struct rig *r)
{
    fl_dataset_free(r->train);
    fl_dataset_free(r->test);
    fl_net_free(r->net);
    fl_options_free(r->options);
    free(r->theta);
}

static struct fl_train_result train(struct rig *r, enum fl_data_augment augment, uint64_t seed,
                                    double rate)
{
    struct fl_train_task task = {
        .asked.key.round = 1, .model = r->theta, .asked.learning_rate = rate, .asked.seed = seed};
    struct fl_train_result result = {0};
    struct fl_trainer *trainer = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_dataset_set_augment(r->train, augment, NULL), FL_OK);
    ck_assert_int_eq(fl_trainer_builtin(r->train, r->test, NULL, &trainer, NULL), FL_OK);
    ck_assert_msg(fl_trainer_prepare(trainer, &r->model, &err) == FL_OK, "%s", err.msg);
    ck_assert_msg(fl_trainer_run(trainer, &task, &result, &err) == FL_OK, "%s", err.msg);
    fl_trainer_free(trainer);
    return result;
}

static bool same(const struct rig *r, const struct fl_train_result *a,
                 const struct fl_train_result *b)
{
    return memcmp(a->delta, b->delta, r->count * sizeof(float)) == 0;
}

TEST(augmented_training_follows_the_seed_of_the_task)
{
    struct rig r;
    struct fl_train_result plain;
    struct fl_train_result plain_other;
    struct fl_train_result a;
    struct fl_train_result again;
    struct fl_train_result other;

    rig_init(&r);
    r.model.epochs = 0; /* Steps through a fixed order: nothing else follows the seed. */
    r.model.steps = 4;
    plain = train(&r, FL_AUGMENT_NONE, 77, 0.1);
    plain_other = train(&r, FL_AUGMENT_NONE, 78, 0.1);
    a = train(&r, FL_AUGMENT_FLIP_CROP, 77, 0.1);
    again = train(&r, FL_AUGMENT_FLIP_CROP, 77, 0.1);
    other = train(&r, FL_AUGMENT_FLIP_CROP, 78, 0.1);
    ck_assert(same(&r, &plain, &plain_other));
    ck_assert(!same(&r, &plain, &a));
    ck_assert(same(&r, &a, &again));
    ck_assert(!same(&r, &a, &other));
    /* What is evaluated is never augmented. */
    ck_assert(a.has_received && plain.received.loss_sum == a.received.loss_sum);
    fl_train_result_done(&plain);
    fl_train_result_done(&plain_other);
    fl_train_result_done(&a);
    fl_train_result_done(&again);
    fl_train_result_done(&other);
    rig_done(&r);
}

/*
 * How far two steps over the same batch are from twice the first of them, relative to the first;
 * with so small a rate the model hardly moves between them.
 */
static double bend(struct rig *r, enum fl_data_augment augment)
{
    struct fl_train_result one;
    struct fl_train_result two;
    double moved = 0.0;
    double off = 0.0;
    size_t i;

    r->model.batch_size = 30; /* all of the training part, always in the same order */
    r->model.epochs = 0;
    r->model.steps = 1;
    one = train(r, augment, 5, 1e-3);
    r->model.steps = 2;
    two = train(r, augment, 5, 1e-3);
    for (i = 0; i < r->count; i++) {
        double first = (double)one.delta[i];
        double rest = (double)two.delta[i] - 2.0 * first;

        moved += first * first;
        off += rest * rest;
    }
    fl_train_result_done(&one);
    fl_train_result_done(&two);
    return off / moved;
}

TEST(every_step_augments_anew)
{
    struct rig r;

    rig_init(&r);
    ck_assert_double_lt(bend(&r, FL_AUGMENT_NONE), 1e-3);
    ck_assert_double_gt(bend(&r, FL_AUGMENT_FLIP_CROP), 1e-2);
    rig_done(&r);
}
