#ifndef FL_TESTS_TRAIN_FIXTURE_H
#define FL_TESTS_TRAIN_FIXTURE_H

/* A small problem that a dense network learns, and the model of a server for it. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/trainer.h"

#define INPUTS  12
#define CLASSES 3
#define SAMPLES 103 /* not a multiple of any batch here: the last one is short */

static const char *const train_layers[] = {"dense 16", "relu", "dense 3"};

/* Classes are shifted clouds. */
static inline struct fl_dataset *make_data(size_t n, size_t inputs, size_t classes, uint64_t seed)
{
    size_t dims[3] = {inputs, 1, 1};
    struct fl_dataset *ds = NULL;
    struct fl_rng rng;
    float *x;
    size_t i;
    size_t j;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, n, dims, 1, &ds, NULL), FL_OK);
    fl_rng_seed(&rng, seed);
    x = ds->x;
    for (i = 0; i < n; i++) {
        ds->y[i] = (int32_t)(i % classes);
        for (j = 0; j < inputs; j++) {
            x[i * inputs + j] =
                (float)fl_rng_normal(&rng) + (j % classes == i % classes ? 1.5f : 0.0f);
        }
    }
    ds->classes = classes;
    return ds;
}

struct server {
    struct fl_net *net; /* holds the initial model */
    struct fl_train_model model;
    struct fl_options *options;
    float *theta;
    size_t count;
};

static inline void server_init(struct server *s)
{
    struct fl_net_spec spec = {
        .input = {INPUTS}, .n_input = 1, .layers = train_layers, .n_layers = 3};
    struct fl_rng rng;

    (void)memset(s, 0, sizeof(*s));
    ck_assert_int_eq(fl_net_create(&spec, 8, &s->net, NULL), FL_OK);
    fl_rng_seed(&rng, 1);
    fl_net_init(s->net, &rng);
    s->count = fl_layout_count(fl_net_layout(s->net));
    s->theta = calloc(s->count, sizeof(float));
    fl_net_get(s->net, s->theta);
    ck_assert_int_eq(fl_options_create(fl_solver_sgd.policy.options, &s->options), FL_OK);
    s->model.layout = fl_net_layout(s->net);
    s->model.net = spec;
    s->model.solver = &fl_solver_sgd;
    s->model.solver_options = s->options;
    s->model.epochs = 2;
    s->model.batch_size = 10;
}

static inline void server_done(struct server *s)
{
    fl_net_free(s->net);
    fl_options_free(s->options);
    free(s->theta);
}

static inline struct fl_train_task task_of(const struct server *s)
{
    return (struct fl_train_task){
        .asked.key.round = 1, .model = s->theta, .asked.learning_rate = 0.1, .asked.seed = 77};
}

#endif
