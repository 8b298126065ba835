/*
 * Training on the root data set of the server (root_training.h). The loop over the samples is that
 * of clients, libfl/strategy/solver/local_steps.c. Runs on the work thread; it keeps nothing
 * between rounds but buffers.
 */
#include "server/work/root_training.h"

#include <stdlib.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/local_steps.h"
#include "libfl/strategy/space/space_training.h"

/* Draws with the purpose FL_RNG_ROOT, as the last part of their keys. */
enum { ROOT_SAMPLES, ROOT_ORDER, ROOT_ROUND };

struct fl_root {
    struct fl_root_conf conf;
    const struct fl_robust_root_options *options;
    struct fl_dataset *own;
    uint32_t *items; /* [data->n] of the root data set, then of the rest */
    struct fl_dataset *data, *rest;
    struct fl_net *net;
    size_t batch;
    uint32_t *order; /* [data->n] */
    float *x;
    float *entries; /* [entries of the model], with a space */
    int32_t *y;
};

static uint64_t root_draw(const struct fl_root *root, uint64_t round, uint64_t what)
{
    struct fl_rng rng;

    fl_rng_key(&rng, root->conf.seed, FL_RNG_ROOT, round, what);
    return fl_rng_u64(&rng);
}

static int items_compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Both parts keep the order of the file. */
static int root_split(struct fl_root *root, struct fl_err *err)
{
    const struct fl_dataset *all = root->conf.data;
    const struct fl_dataset *of = all->of != NULL ? all->of : all;
    size_t n = (size_t)root->options->samples;
    struct fl_rng rng;
    size_t i;
    int rv;

    if (n >= all->n) {
        return fl_err_set(err, FL_ECONF,
                          "robust '%s' trains on %zu samples of the server's data, which has %zu: "
                          "set samples of the rule to less, so that some are left to evaluate on",
                          root->conf.strategy->robust->policy.name, n, all->n);
    }
    root->items = malloc(all->n * sizeof(*root->items));
    if (root->items == NULL) {
        return fl_err_set(err, FL_ENOMEM, "root data set: out of memory");
    }
    for (i = 0; i < all->n; i++) {
        root->items[i] = (uint32_t)fl_dataset_place(all, i);
    }
    fl_rng_key(&rng, root->conf.seed, FL_RNG_ROOT, 0, ROOT_SAMPLES);
    fl_rng_shuffle(&rng, root->items, all->n);
    qsort(root->items, n, sizeof(*root->items), items_compare);
    qsort(root->items + n, all->n - n, sizeof(*root->items), items_compare);
    rv = fl_dataset_view(of, root->items, n, &root->data, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_dataset_view(of, root->items + n, all->n - n, &root->rest, err);
}

static int root_make_net(struct fl_root *root, struct fl_err *err)
{
    size_t want = root->conf.batch_size;
    int rv;

    root->batch = want < root->data->n ? want : root->data->n;
    rv = fl_net_create(root->conf.net, root->batch, &root->net, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (root->data->dim != fl_net_inputs(root->net) ||
        root->data->n_targets != fl_net_values(root->net) ||
        root->data->classes > fl_net_classes(root->net))
    {
        return fl_err_set(
            err, FL_ESHAPE,
            "the server's data has %zu values, %zu classes and %zu values to be "
            "predicted, the network takes %zu values, has %zu classes and predicts %zu "
            "values",
            root->data->dim, root->data->classes, root->data->n_targets, fl_net_inputs(root->net),
            fl_net_classes(root->net), fl_net_values(root->net));
    }
    root->order = malloc(root->data->n * sizeof(*root->order));
    root->x = malloc(root->batch * root->data->dim * sizeof(*root->x));
    root->y = malloc(root->batch * sizeof(*root->y));
    root->entries = root->conf.space != NULL
                        ? malloc(fl_layout_count(fl_net_layout(root->net)) * sizeof(float))
                        : NULL;
    return root->order != NULL && root->x != NULL && root->y != NULL &&
                   (root->entries != NULL) == (root->conf.space != NULL)
               ? FL_OK
               : fl_err_set(err, FL_ENOMEM, "training on the root data set: out of memory");
}

int fl_root_create(const struct fl_root_conf *conf, struct fl_root **ret, struct fl_err *err)
{
    struct fl_root *root = calloc(1, sizeof(*root));
    int rv;

    FL_REQUIRE(fl_robust_trusts(conf->strategy->robust));
    if (root == NULL) {
        return fl_err_set(err, FL_ENOMEM, "root data set: out of memory");
    }
    root->conf = *conf;
    root->options = fl_options_values(conf->strategy->options[FL_COMPONENT_ROBUST]);
    rv = root_split(root, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = root_make_net(root, err);
    if (rv != FL_OK) {
        goto fail;
    }
    root->conf.net = NULL; /* not needed any more */
    *ret = root;
    return FL_OK;
fail:
    fl_root_free(root);
    return rv;
}

void fl_root_free(struct fl_root *root)
{
    if (root == NULL) {
        return;
    }
    fl_net_free(root->net);
    fl_dataset_free(root->data);
    fl_dataset_free(root->rest);
    fl_dataset_free(root->own);
    free(root->items);
    free(root->order);
    free(root->x);
    free(root->y);
    free(root->entries);
    free(root);
}

void fl_root_own(struct fl_root *root, struct fl_dataset *data)
{
    FL_REQUIRE(root->conf.data == data);
    root->own = data;
}

const struct fl_dataset *fl_root_rest(const struct fl_root *root)
{
    return root->rest;
}

const struct fl_dataset *fl_root_data(const struct fl_root *root)
{
    return root->data;
}

/* --- a training --- */

struct training {
    struct fl_root *root;
    const struct fl_root_task *task;
    struct fl_task asked; /* as a client is asked */
    struct fl_local_steps steps;
    struct fl_space_training space;
};

static void training_gather(void *ctx, struct fl_rng *rng, const uint32_t *idx, size_t n, float *x,
                            int32_t *y)
{
    const struct training *t = ctx;

    fl_dataset_gather_train(t->root->data, rng, idx, n, x, y);
}

static bool training_canceled(void *ctx)
{
    const struct training *t = ctx;

    return t->task->cancel != NULL && atomic_load_explicit(t->task->cancel, memory_order_relaxed);
}

static void training_plan(struct training *t)
{
    const struct fl_root *root = t->root;
    uint32_t own = (uint32_t)root->options->steps;

    t->steps = (struct fl_local_steps){.net = root->net,
                                       .solver = root->conf.strategy->solver,
                                       .samples = root->data->n,
                                       .gather = training_gather,
                                       .canceled = training_canceled,
                                       .ctx = t,
                                       .task = &t->asked,
                                       .order = root->order,
                                       .x = root->x,
                                       .y = root->y};
    fl_local_steps_plan(&t->steps, root->batch, own > 0 ? 0 : root->conf.epochs,
                        own > 0 ? own : root->conf.steps);
}

/* Moves the parameters in the network. */
static int training_solve(const struct training *t, struct fl_err *err)
{
    const struct fl_root *root = t->root;
    const struct fl_strategy *s = root->conf.strategy;
    const struct fl_options *o = s->options[FL_COMPONENT_SOLVER];
    const struct fl_solver_setup setup = {.net = root->net,
                                          .learning_rate = t->task->learning_rate,
                                          .momentum = root->conf.momentum,
                                          .weight_decay = root->conf.weight_decay,
                                          .n_steps = (size_t)t->steps.n_steps,
                                          .round = t->task->round,
                                          .seed = t->asked.seed};
    struct fl_local_sums sums;
    struct fl_solver *solver = NULL;
    int rv = s->solver->create(o, &setup, &solver, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_local_steps_run(&t->steps, solver, &sums, err);
    if (rv != FL_OK) {
        goto done;
    }
    if (s->solver->finish != NULL) {
        rv =
            s->solver->finish(solver, NULL, NULL, err); /* Solvers that keep nothing, as checked. */
    }
done:
    s->solver->destroy(solver);
    return rv;
}

/* The displacement from the model, folded into the space of updates. */
static void training_take(const struct training *t, float *update)
{
    const struct fl_root *root = t->root;
    float *moved = root->conf.space != NULL ? root->entries : update;

    fl_net_get(root->net, moved);
    fl_vec_sub(moved, moved, t->task->model, fl_layout_count(fl_net_layout(root->net)));
    if (root->conf.space != NULL) {
        fl_space_fold(&t->space.map, moved, update);
    }
}

static int training_run(struct training *t, float *update, struct fl_err *err)
{
    const struct fl_root *root = t->root;
    const struct fl_space *space = root->conf.space;
    struct fl_rng rng;
    int rv;

    fl_net_set(root->net, t->task->model);
    fl_net_set_targets(root->net, root->data->target);
    fl_rng_key(&rng, t->asked.seed, FL_RNG_DROPOUT, t->task->round, 0);
    fl_net_seed(root->net, fl_rng_u64(&rng));
    if (space != NULL) {
        rv = fl_space_training_begin(root->net, space, t->task->draw, &t->space);
        if (rv != FL_OK) {
            return rv;
        }
        t->steps.space = &t->space.steps;
    }
    rv = training_solve(t, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_vec_finite(fl_net_params(root->net), fl_net_block(root->net))) {
        return fl_err_set(err, FL_ENUMERIC,
                          "the trained parameters are not finite; a smaller learning rate than %g "
                          "helps",
                          t->task->learning_rate);
    }
    training_take(t, update);
    return FL_OK;
}

int fl_root_train(struct fl_root *root, const struct fl_root_task *task, float *update,
                  struct fl_err *err)
{
    struct training t = {.root = root,
                         .task = task,
                         .asked = {.key = {.round = task->round},
                                   .learning_rate = task->learning_rate,
                                   .seed = root_draw(root, task->round, ROOT_ROUND),
                                   .order_seed = root_draw(root, 0, ROOT_ORDER)},
                         .space = {.steps = {.n = 0}}};
    int rv;

    training_plan(&t);
    rv = training_run(&t, update, err);
    fl_space_training_done(&t.space);
    fl_net_release(root->net);
    return rv == FL_OK ? FL_OK : fl_err_wrap(err, rv, "training on the server's root data set");
}
