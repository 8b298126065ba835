/* A client that is simulated sees a view of the data set where a real one has files of its own. */
#include "tests/client/train/train_fixture.h"
#include "tests/lib/suites.h"

#define SIDE   6
#define DIM    ((size_t)SIDE * SIDE)
#define OTHERS 200 /* samples of all clients */
#define MINE   53  /* not a multiple of the batch */
#define TESTS  17

static const char *const image_layers[] = {"flatten", "dense 8", "relu", "dense 3"};

/* What a solver, and the way of training, needs to be tried. */
struct way {
    const char *name;
    const struct fl_solver_ops *solver;
    uint32_t epochs, steps;
    enum fl_data_augment augment;
    double validation; /* of the training part, when there is no test part */
};

static const struct way ways[] = {
    {"epochs", &fl_solver_sgd, 2, 0, FL_AUGMENT_NONE, 0},
    {"steps", &fl_solver_sgd, 0, 9, FL_AUGMENT_NONE, 0},
    {"augmented", &fl_solver_sgd, 2, 0, FL_AUGMENT_FLIP_CROP, 0},
    {"validation", &fl_solver_sgd, 2, 0, FL_AUGMENT_NONE, 0.2},
    {"prox, augmented, validation", &fl_solver_prox, 0, 9, FL_AUGMENT_FLIP_CROP, 0.2},
    {"fedmix", &fl_solver_fedmix, 2, 0, FL_AUGMENT_NONE, 0.2},
    {"pfedme", &fl_solver_pfedme, 1, 0, FL_AUGMENT_NONE, 0},
};

static struct fl_dataset *everybody(void)
{
    const size_t dims[3] = {1, SIDE, SIDE};
    struct fl_dataset *ds = NULL;
    struct fl_rng rng;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_U8, OTHERS, dims, 3, &ds, NULL), FL_OK);
    fl_rng_seed(&rng, 3);
    for (i = 0; i < OTHERS * DIM; i++) {
        ((uint8_t *)ds->x)[i] = (uint8_t)fl_rng_below(&rng, 256);
    }
    for (i = 0; i < OTHERS; i++) {
        ds->y[i] = (int32_t)fl_rng_below(&rng, 3);
    }
    ds->classes = 3;
    ck_assert_int_eq(fl_dataset_norm_pixels(ds, NULL), FL_OK);
    return ds;
}

/* The samples as a set of their own: what a client reads from its files. */
static struct fl_dataset *files(const struct fl_dataset *ds, const uint32_t *items, size_t n)
{
    struct fl_dataset *ret = NULL;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(ds->type, n, ds->dims, ds->n_dims, &ret, NULL), FL_OK);
    for (i = 0; i < n; i++) {
        (void)memcpy((uint8_t *)ret->x + i * DIM, (const uint8_t *)ds->x + items[i] * DIM, DIM);
        ret->y[i] = ds->y[items[i]];
    }
    ret->classes = ds->classes;
    ck_assert_int_eq(fl_dataset_copy_norm(ret, ds, NULL), FL_OK);
    return ret;
}

static struct fl_dataset *view(const struct fl_dataset *ds, const uint32_t *items, size_t n)
{
    struct fl_dataset *ret = NULL;

    ck_assert_int_eq(fl_dataset_view(ds, items, n, &ret, NULL), FL_OK);
    return ret;
}

/* A round with what the way says, its summary included; the data goes. */
static struct fl_train_result train(const struct way *way, struct fl_dataset *mine,
                                    struct fl_dataset *test, size_t *ret_count)
{
    const struct fl_net_spec spec = {
        .input = {1, SIDE, SIDE}, .n_input = 3, .layers = image_layers, .n_layers = 4};
    struct fl_train_model model = {.net = spec,
                                   .solver = way->solver,
                                   .epochs = way->epochs,
                                   .steps = way->steps,
                                   .batch_size = 10};
    struct fl_train_task task = {.asked.key.round = 3,
                                 .asked.learning_rate = 0.05,
                                 .asked.seed = 77,
                                 .asked.order_seed = 5,
                                 .summary_seed = 9};
    struct fl_train_result result = {0};
    struct fl_trainer *trainer = NULL;
    struct fl_options *options = NULL;
    struct fl_net *net = NULL;
    struct fl_solver_bytes input;
    struct fl_err err = {0};
    struct fl_buf summary;
    struct fl_rng rng;
    float *theta;

    if (way->validation > 0.0) {
        fl_dataset_free(test);
        ck_assert_int_eq(fl_dataset_split(mine, way->validation, 1, &test, NULL), FL_OK);
    }
    ck_assert_int_eq(fl_dataset_set_augment(mine, way->augment, NULL), FL_OK);
    ck_assert_int_eq(fl_net_create(&spec, 8, &net, NULL), FL_OK);
    fl_rng_seed(&rng, 1);
    fl_net_init(net, &rng);
    *ret_count = fl_layout_count(fl_net_layout(net));
    theta = calloc(*ret_count, sizeof(float));
    fl_net_get(net, theta);
    ck_assert_int_eq(fl_options_create(way->solver->policy.options, &options), FL_OK);
    model.layout = fl_net_layout(net);
    model.solver_options = options;
    task.model = theta;
    ck_assert_int_eq(fl_trainer_builtin(mine, test, NULL, &trainer, NULL), FL_OK);
    ck_assert_msg(fl_trainer_prepare(trainer, &model, &err) == FL_OK, "%s", err.msg);
    fl_buf_init(&summary, FL_SUMMARY_MAX);
    if (way->solver->summary != NULL) {
        /* Its own and another's, so that the own one has to be known again. */
        ck_assert_msg(fl_trainer_summary(trainer, 9, &summary, &err) == FL_OK, "%s", err.msg);
        ck_assert_msg(fl_trainer_summary(trainer, 8, &summary, &err) == FL_OK, "%s", err.msg);
        input = (struct fl_solver_bytes){summary.data, summary.len};
        task.inputs = &input;
    }
    ck_assert_msg(fl_trainer_run(trainer, &task, &result, &err) == FL_OK, "%s", err.msg);
    fl_buf_done(&summary);
    fl_trainer_free(trainer);
    fl_options_free(options);
    fl_net_free(net);
    free(theta);
    fl_dataset_free(mine);
    fl_dataset_free(test);
    return result;
}

TEST_EACH(a_view_trains_as_files_do_bit_for_bit, ARRAY_LEN(ways))
{
    const struct way *way = &ways[_i];
    struct fl_dataset *ds = everybody();
    struct fl_train_result a;
    struct fl_train_result b;
    uint32_t items[MINE + TESTS];
    size_t count = 0;
    uint32_t i;

    for (i = 0; i < MINE + TESTS; i++) {
        items[i] = (5 + 37 * i) % OTHERS;
    }
    a = train(way, files(ds, items, MINE), files(ds, items + MINE, TESTS), &count);
    b = train(way, view(ds, items, MINE), view(ds, items + MINE, TESTS), &count);
    ck_assert_uint_gt(count, 0);
    ck_assert_mem_eq(a.delta, b.delta, count * sizeof(float));
    ck_assert_uint_eq(a.samples, b.samples);
    ck_assert_uint_eq(a.steps, b.steps);
    ck_assert(memcmp(&a.train_loss, &b.train_loss, sizeof(double)) == 0);
    ck_assert_uint_eq(a.received.samples, b.received.samples);
    ck_assert_uint_gt(a.received.samples, 0);
    ck_assert_uint_eq(a.received.correct, b.received.correct);
    ck_assert(memcmp(&a.received.loss_sum, &b.received.loss_sum, sizeof(double)) == 0);
    fl_train_result_done(&a);
    fl_train_result_done(&b);
    fl_dataset_free(ds);
}
