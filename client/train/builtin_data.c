/*
 * The data of the built-in engine, and the buffers sized by it. Runs on the training thread. One
 * engine may train for several clients in turn: buffers only grow, and nothing computed from one
 * client's data is used for the next. Makes no steps: builtin_trainer.c does.
 */
#include <stdlib.h>

#include "client/train/builtin_impl.h"
#include "libfl/base/str.h"

/* --- the network --- */

static void forget_description(struct fl__builtin *b)
{
    size_t i;

    for (i = 0; b->layers != NULL && i < b->spec.n_layers; i++) {
        free(b->layers[i]);
    }
    free(b->layers);
    b->layers = NULL;
    b->spec = (struct fl_net_spec){.n_layers = 0};
}

int fl__builtin_describe(struct fl__builtin *b, const struct fl_net_spec *spec)
{
    size_t i;

    forget_description(b);
    b->layers = calloc(spec->n_layers, sizeof(*b->layers));
    if (b->layers == NULL) {
        return FL_ENOMEM;
    }
    b->spec = *spec;
    b->spec.layers = (const char *const *)b->layers;
    b->spec.kernels = b->kernels;
    for (i = 0; i < spec->n_layers; i++) {
        b->layers[i] = fl_str_dup(spec->layers[i]);
        if (b->layers[i] == NULL) {
            return FL_ENOMEM;
        }
    }
    return FL_OK;
}

/* Size of the largest set that steps are made on. */
static size_t builtin_largest_set(const struct fl__builtin *b, const struct fl_dataset *train,
                                  const struct fl_dataset *test)
{
    return b->adapt_on_test && test != NULL && test->n > train->n ? test->n : train->n;
}

static size_t batch_of(const struct fl__builtin *b, size_t samples)
{
    return samples < b->batch_size ? samples : b->batch_size;
}

int fl__builtin_make_net(struct fl__builtin *b, struct fl_err *err)
{
    size_t batch = batch_of(b, builtin_largest_set(b, b->train, b->test));
    int rv = fl_net_create(&b->spec, batch, &b->net, err);

    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "the server's network");
    }
    b->max_batch = batch;
    return FL_OK;
}

/* Replaces the network by one for larger batches; its parameters are lost. */
static int widen_net(struct fl__builtin *b, size_t samples, struct fl_err *err)
{
    size_t want = batch_of(b, samples);
    struct fl_net *wider = NULL;
    int rv;

    if (want <= b->max_batch) {
        return FL_OK;
    }
    /* At least doubled, so that clients of increasing size cause few reallocations. */
    want = want < 2 * b->max_batch ? batch_of(b, 2 * b->max_batch) : want;
    rv = fl_net_create(&b->spec, want, &wider, err);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "the server's network");
    }
    fl_net_free(b->net);
    b->net = wider;
    b->max_batch = want;
    return FL_OK;
}

/* --- memory --- */

static int builtin_room(void **list, size_t *cap, size_t n, size_t size, struct fl_err *err)
{
    void *more;

    if (n <= *cap) {
        return FL_OK;
    }
    more = malloc(n * size);
    if (more == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%zu samples: out of memory", n);
    }
    free(*list); /* Nothing reads the old contents: they belong to a finished step. */
    *list = more;
    *cap = n;
    return FL_OK;
}

/* Metrics of evaluations on `test`. */
static int builtin_take_metrics(struct fl__builtin *b, const struct fl_dataset *test,
                                struct fl_err *err)
{
    enum fl_net_output output = fl_net_output_of(b->spec.layers, b->spec.n_layers);
    struct fl_net_metrics *wider = NULL;
    int rv;

    if (b->which_metrics == 0 || test == NULL || (b->metrics != NULL && test->n <= b->room.metrics))
    {
        return FL_OK;
    }
    rv = fl_net_metrics_create(b->which_metrics, output, fl_net_classes(b->net), test->n, &wider,
                               err);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "metrics of evaluations");
    }
    fl_net_metrics_free(b->metrics);
    b->metrics = wider;
    b->room.metrics = test->n;
    return FL_OK;
}

int fl__builtin_take_memory(struct fl__builtin *b, const struct fl_dataset *train,
                            const struct fl_dataset *test, struct fl_err *err)
{
    size_t piece = test != NULL ? fl_net_piece(b->net) : 1;
    size_t held = piece > b->max_batch ? piece : b->max_batch;
    void *lists[] = {b->order, b->order_test, b->x, b->y};
    const struct {
        size_t *cap;
        size_t n, size;
    } rooms[] = {{&b->room.order, builtin_largest_set(b, train, test), sizeof(*b->order)},
                 {&b->room.order_test, piece, sizeof(*b->order_test)},
                 {&b->room.x, held, train->dim * sizeof(*b->x)},
                 {&b->room.y, held, sizeof(*b->y)}};
    size_t i;
    int rv = FL_OK;

    for (i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        rv = builtin_room(&lists[i], rooms[i].cap, rooms[i].n, rooms[i].size, err);
        if (rv != FL_OK) {
            break;
        }
    }
    b->order = lists[0];
    b->order_test = lists[1];
    b->x = lists[2];
    b->y = lists[3];
    if (rv != FL_OK) {
        return rv;
    }
    return builtin_take_metrics(b, test, err);
}

void fl__builtin_forget_data(struct fl__builtin *b)
{
    free(b->order);
    free(b->order_test);
    free(b->x);
    free(b->y);
    fl_buf_done(&b->own_summary);
    fl_net_metrics_free(b->metrics);
    forget_description(b);
    b->metrics = NULL;
    b->order = NULL;
    b->order_test = NULL;
    b->x = NULL;
    b->y = NULL;
    b->room = (struct fl__builtin_room){0};
}

/* --- the data --- */

static int check_one(const struct fl_net *net, const struct fl_dataset *ds, const char *part,
                     struct fl_err *err)
{
    const char *source = ds->source != NULL ? ds->source : "memory";

    if (fl_net_inputs(net) != ds->dim) {
        return fl_err_set(err, FL_ESHAPE,
                          "the server's network takes %zu inputs, a sample of the %s data has %zu "
                          "values (%zux%zux%zu, %.200s)",
                          fl_net_inputs(net), part, ds->dim, ds->dims[0], ds->dims[1], ds->dims[2],
                          source);
    }
    if (fl_net_values(net) != ds->n_targets) {
        return fl_err_set(err, FL_ESHAPE,
                          "the server's network predicts %zu values (0: a class), the %s data has "
                          "%zu (%.200s): model.loss of the server and the labels do not fit",
                          fl_net_values(net), part, ds->n_targets, source);
    }
    if (fl_net_classes(net) < ds->classes) {
        return fl_err_set(err, FL_ESHAPE,
                          "the server's network has %zu classes, the %s data has %zu (%.200s)",
                          fl_net_classes(net), part, ds->classes, source);
    }
    return FL_OK;
}

int fl__builtin_check_data(const struct fl__builtin *b, const struct fl_dataset *train,
                           const struct fl_dataset *test, struct fl_err *err)
{
    int rv = check_one(b->net, train, "training", err);

    if (rv != FL_OK || test == NULL) {
        return rv;
    }
    return check_one(b->net, test, "test", err);
}

int fl__builtin_set_data(struct fl_trainer *trainer, const struct fl_dataset *train,
                         const struct fl_dataset *test, struct fl_err *err)
{
    struct fl__builtin *b = (struct fl__builtin *)(void *)trainer;
    int rv;

    if (train->n == 0) {
        return fl_err_set(err, FL_EINVAL, "the training data has no samples");
    }
    if (b->net != NULL) {
        rv = fl__builtin_check_data(b, train, test, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = widen_net(b, builtin_largest_set(b, train, test), err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl__builtin_take_memory(b, train, test, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    fl_buf_done(&b->own_summary); /* It was computed from the previous data. */
    b->train = train;
    b->test = test;
    return FL_OK;
}
