/*
 * The built-in engine: mini-batch training over a data set in memory with the solver that
 * the server named (ALGORITHMS 2.2).
 *
 * Epochs: each visits the data once in a fresh order drawn from (task seed, epoch); the
 * last short batch is used. Steps (epochs 0): R batches that walk through one fixed order
 * cyclically across rounds; where a round begins follows from its number, so that nothing
 * has to survive a restart.
 *
 * Memory: the network, the solver's state, one batch and 4 bytes a sample for the order.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "client/train/trainer_impl.h"
#include "libfl/num/vec.h"

/* Samples evaluated at a time when batches are smaller: enough to keep the products busy. */
#define EVALUATE_BATCH 64

struct builtin {
    struct fl_trainer base;
    const struct fl_dataset *train;
    const struct fl_dataset *test;
    /* Of the last prepare(); net NULL: none. */
    struct fl_net *net;
    const struct fl_solver_ops *solver;
    struct fl_options *options;
    uint32_t epochs, steps;
    size_t batch, max_batch;
    double momentum, weight_decay;
    uint32_t *order;      /* [train->n] */
    uint32_t *order_test; /* [max_batch] */
    float *x;             /* [max_batch][dim] */
    int32_t *y;           /* [max_batch] */
};

/* One task on its way. */
struct walk {
    const struct builtin *b;
    const struct fl_train_task *task;
    uint64_t n_batches; /* in one pass through the data */
    uint64_t n_steps;
};

static struct builtin *builtin_of(struct fl_trainer *trainer)
{
    return (struct builtin *)trainer;
}

static void forget(struct builtin *b)
{
    fl_net_free(b->net);
    fl_options_free(b->options);
    free(b->order);
    free(b->order_test);
    free(b->x);
    free(b->y);
    b->net = NULL;
    b->options = NULL;
    b->order = NULL;
    b->order_test = NULL;
    b->x = NULL;
    b->y = NULL;
}

static void builtin_free(struct fl_trainer *trainer)
{
    struct builtin *b = builtin_of(trainer);

    forget(b);
    free(b);
}

static int check_data(const struct fl_net *net, const struct fl_dataset *ds, const char *part,
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
    if (fl_net_classes(net) < ds->classes) {
        return fl_err_set(err, FL_ESHAPE,
                          "the server's network has %zu classes, the %s data has %zu (%.200s)",
                          fl_net_classes(net), part, ds->classes, source);
    }
    return FL_OK;
}

static int check_model(const struct fl_train_model *model, struct fl_err *err)
{
    if (model->net.n_layers == 0) {
        return fl_err_set(err, FL_EUNIMPL,
                          "the server describes its model by units only: the built-in trainer "
                          "cannot make it, use 'trainer: command'");
    }
    if (model->batch_size == 0 || (model->epochs == 0 && model->steps == 0)) {
        return fl_err_set(err, FL_EPROTO,
                          "the server's training options make no step: epochs %" PRIu32
                          ", steps %" PRIu32 ", batch size %" PRIu32,
                          model->epochs, model->steps, model->batch_size);
    }
    return FL_OK;
}

static int make_net(struct builtin *b, const struct fl_train_model *model, struct fl_err *err)
{
    char diff[256];
    int rv;

    b->batch = model->batch_size < b->train->n ? model->batch_size : b->train->n;
    b->max_batch = b->batch;
    if (b->test != NULL && b->max_batch < EVALUATE_BATCH) {
        b->max_batch = EVALUATE_BATCH;
    }
    rv = fl_net_create(&model->net, b->max_batch, &b->net, err);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "the server's network");
    }
    if (!fl_layout_equal(fl_net_layout(b->net), model->layout)) {
        fl_layout_diff(fl_net_layout(b->net), model->layout, diff, sizeof(diff));
        return fl_err_set(err, FL_ESHAPE,
                          "the server's layers do not make the units that it lists: %s", diff);
    }
    rv = check_data(b->net, b->train, "training", err);
    if (rv == FL_OK && b->test != NULL) {
        rv = check_data(b->net, b->test, "test", err);
    }
    return rv;
}

static int prepare(struct fl_trainer *trainer, const struct fl_train_model *model,
                   struct fl_err *err)
{
    struct builtin *b = builtin_of(trainer);
    int rv = check_model(model, err);

    forget(b);
    if (rv == FL_OK) {
        rv = make_net(b, model, err);
    }
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_options_copy(model->solver_options, &b->options);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "solver options: %s", fl_strerror(rv));
        goto fail;
    }
    b->order = malloc(b->train->n * sizeof(*b->order));
    b->order_test = malloc(b->max_batch * sizeof(*b->order_test));
    b->x = malloc(b->max_batch * b->train->dim * sizeof(*b->x));
    b->y = malloc(b->max_batch * sizeof(*b->y));
    if (b->order == NULL || b->order_test == NULL || b->x == NULL || b->y == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "one batch of %zu samples: out of memory", b->max_batch);
        goto fail;
    }
    b->solver = model->solver;
    b->epochs = model->epochs;
    b->steps = model->steps;
    b->momentum = model->momentum;
    b->weight_decay = model->weight_decay;
    return FL_OK;
fail:
    forget(b);
    return rv;
}

/* Evaluates what is in the network. */
static int evaluate_net(struct builtin *b, const struct fl_train_task *task, uint64_t *ret_samples,
                        uint64_t *ret_correct, double *ret_loss_sum)
{
    uint64_t correct = 0;
    double loss_sum = 0;
    size_t at;
    size_t i;

    for (at = 0; at < b->test->n; at += b->max_batch) {
        size_t n = b->test->n - at < b->max_batch ? b->test->n - at : b->max_batch;
        size_t right = 0;
        double loss = 0;

        if (task != NULL && fl__train_canceled(task)) {
            return FL_ECANCELED;
        }
        for (i = 0; i < n; i++) {
            b->order_test[i] = (uint32_t)(at + i);
        }
        fl_dataset_gather(b->test, b->order_test, n, b->x, b->y);
        fl_net_evaluate(b->net, b->x, b->y, n, &loss, &right);
        loss_sum += loss;
        correct += right;
    }
    *ret_samples = b->test->n;
    *ret_correct = correct;
    *ret_loss_sum = loss_sum;
    return FL_OK;
}

static int evaluate(struct fl_trainer *trainer, const float *model, uint64_t *ret_samples,
                    uint64_t *ret_correct, double *ret_loss_sum, struct fl_err *err)
{
    struct builtin *b = builtin_of(trainer);

    if (b->test == NULL || b->test->n == 0) {
        return fl_err_set(err, FL_ENOENT, "this client has no test data");
    }
    if (b->net == NULL) {
        return fl_err_set(err, FL_ESTATE, "evaluation before the server described its model");
    }
    fl_net_set(b->net, model);
    return evaluate_net(b, NULL, ret_samples, ret_correct, ret_loss_sum);
}

/* The order of pass `pass` through the data. */
static void shuffle(const struct walk *w, uint64_t pass)
{
    uint32_t *order = w->b->order;
    struct fl_rng rng;
    size_t n = w->b->train->n;
    size_t i;

    for (i = 0; i < n; i++) {
        order[i] = (uint32_t)i;
    }
    if (w->b->epochs > 0) {
        fl_rng_key(&rng, w->task->seed, FL_RNG_BATCH, pass, 0);
    } else {
        /* The same in every round and pass: files are often sorted by label. */
        fl_rng_key(&rng, 0, FL_RNG_BATCH, 0, n);
    }
    fl_rng_shuffle(&rng, order, n);
}

static int one_step(const struct walk *w, struct fl_solver *solver, uint64_t step, double *loss_sum,
                    uint64_t *n_seen, struct fl_err *err)
{
    const struct builtin *b = w->b;
    uint64_t batch = step % w->n_batches;
    size_t at;
    size_t n;
    double loss;

    if (b->epochs == 0) {
        batch =
            ((w->task->round - 1) % w->n_batches * (b->steps % w->n_batches) + step) % w->n_batches;
    } else if (batch == 0) {
        shuffle(w, step / w->n_batches);
    }
    at = (size_t)batch * b->batch;
    n = b->train->n - at < b->batch ? b->train->n - at : b->batch;
    fl_dataset_gather(b->train, b->order + at, n, b->x, b->y);
    loss = b->solver->step(solver, b->x, b->y, n);
    if (!isfinite(loss)) {
        return fl_err_set(err, FL_ENUMERIC,
                          "training diverged: the loss of step %" PRIu64 " of %" PRIu64
                          " is not finite; a smaller learning rate than %g helps",
                          step + 1, w->n_steps, w->task->learning_rate);
    }
    *loss_sum += loss * (double)n;
    *n_seen += n;
    return FL_OK;
}

static int all_steps(const struct walk *w, struct fl_solver *solver, struct fl_train_result *ret,
                     struct fl_err *err)
{
    uint64_t n_seen = 0;
    double loss_sum = 0;
    uint64_t step;

    if (w->b->epochs == 0) {
        shuffle(w, 0);
    }
    for (step = 0; step < w->n_steps; step++) {
        int rv;

        if (fl__train_canceled(w->task)) {
            return fl_err_set(err, FL_ECANCELED,
                              "training was cancelled after %" PRIu64 " of %" PRIu64 " steps", step,
                              w->n_steps);
        }
        rv = one_step(w, solver, step, &loss_sum, &n_seen, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (w->task->progress != NULL) {
            w->task->progress(w->task->ctx, step + 1, w->n_steps);
        }
    }
    ret->steps = w->n_steps;
    ret->samples = w->b->train->n;
    ret->train_loss = n_seen > 0 ? loss_sum / (double)n_seen : 0;
    return FL_OK;
}

static int make_extras(size_t n, struct fl_buf **ret, size_t *ret_n, struct fl_err *err)
{
    size_t i;

    if (n == 0) {
        return FL_OK;
    }
    *ret = calloc(n, sizeof(**ret));
    if (*ret == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver state: out of memory");
    }
    for (i = 0; i < n; i++) {
        /* Our own solver fills it: nothing that a peer sends can make it grow. */
        fl_buf_init(&(*ret)[i], SIZE_MAX);
    }
    *ret_n = n;
    return FL_OK;
}

static int solve(const struct walk *w, struct fl_train_result *ret, struct fl_err *err)
{
    const struct builtin *b = w->b;
    struct fl_solver_setup setup = {
        .net = b->net,
        .learning_rate = w->task->learning_rate,
        .momentum = b->momentum,
        .weight_decay = b->weight_decay,
        .n_steps = (size_t)w->n_steps,
        .round = w->task->round,
        .seed = w->task->seed,
        .n_selected = w->task->n_selected,
        .inputs = w->task->inputs,
        .kept = w->task->kept,
    };
    struct fl_solver *solver = NULL;
    int rv = make_extras(fl_solver_keeps(b->solver->keeps), &ret->kept, &ret->n_kept, err);

    if (rv == FL_OK) {
        rv = make_extras(fl_solver_names(b->solver->sends), &ret->sent, &ret->n_sent, err);
    }
    if (rv == FL_OK) {
        rv = b->solver->create(b->options, &setup, &solver, err);
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = all_steps(w, solver, ret, err);
    if (rv == FL_OK && b->solver->finish != NULL) {
        rv = b->solver->finish(solver, ret->kept, ret->sent, err);
    }
    b->solver->destroy(solver);
    return rv;
}

static int run(struct fl_trainer *trainer, const struct fl_train_task *task,
               struct fl_train_result *ret, struct fl_err *err)
{
    struct builtin *b = builtin_of(trainer);
    struct walk w = {.b = b, .task = task};
    struct fl_rng rng;
    size_t count;
    int rv;

    FL_REQUIRE(task->round > 0);
    if (b->net == NULL) {
        return fl_err_set(err, FL_ESTATE, "training before the server described its model");
    }
    w.n_batches = (b->train->n + b->batch - 1) / b->batch;
    w.n_steps = b->epochs > 0 ? b->epochs * w.n_batches : b->steps;
    count = fl_layout_count(fl_net_layout(b->net));
    if (!fl_vec_finite(task->model, count)) {
        return fl_err_set(err, FL_ENUMERIC, "the received model is not finite");
    }
    fl_net_set(b->net, task->model);
    fl_rng_key(&rng, task->seed, FL_RNG_DROPOUT, task->round, 0);
    fl_net_seed(b->net, fl_rng_u64(&rng));
    if (b->test != NULL && b->test->n > 0) {
        rv = evaluate_net(b, task, &ret->eval_samples, &ret->eval_correct, &ret->eval_loss_sum);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "training was cancelled while the model was evaluated");
        }
        ret->has_received = true;
    }
    rv = solve(&w, ret, err);
    if (rv != FL_OK) {
        return rv;
    }
    ret->delta = malloc(count * sizeof(*ret->delta));
    if (ret->delta == NULL) {
        return fl_err_set(err, FL_ENOMEM, "update of %zu parameters: out of memory", count);
    }
    fl_net_get(b->net, ret->delta);
    return fl__train_finish(fl_net_layout(b->net), task->model, ret, err);
}

int fl_trainer_builtin(const struct fl_dataset *train, const struct fl_dataset *test,
                       struct fl_trainer **ret, struct fl_err *err)
{
    static const struct fl__trainer_ops ops = {
        .free = builtin_free, .prepare = prepare, .run = run, .evaluate = evaluate};
    struct builtin *b;

    if (train->n == 0) {
        return fl_err_set(err, FL_EINVAL, "the training data has no samples");
    }
    b = calloc(1, sizeof(*b));
    if (b == NULL) {
        return fl_err_set(err, FL_ENOMEM, "trainer: out of memory");
    }
    b->base.ops = &ops;
    b->train = train;
    b->test = test;
    *ret = &b->base;
    return FL_OK;
}
