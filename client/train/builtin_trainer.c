/*
 * The built-in engine: mini-batch training over a data set in memory with the solver that the
 * server named. Runs on the training thread. The samples of each step are chosen in
 * libfl/strategy/solver/local_steps.c. Memory: the network with the activations of one batch, the
 * solver's state, the samples of one batch or one piece of an evaluation, and 4 bytes per sample
 * for the order.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/train/builtin_impl.h"
#include "libfl/num/vec.h"
#include "libfl/strategy/solver/local_steps.h"
#include "libfl/strategy/space/space_training.h"

/* The steps of one task. */
struct walk {
    struct fl__builtin *b;
    const struct fl_train_task *task;
    const struct fl_dataset *ds;
    const struct fl_solver_ops *solver; /* of the task: the server's, or that of a model beside */
    const struct fl_options *options;
    struct fl_local_steps steps;
    uint64_t before, after; /* steps of the task before and after these */
};

static struct fl__builtin *builtin_of(struct fl_trainer *trainer)
{
    return (struct fl__builtin *)(void *)trainer;
}

static void builtin_forget(struct fl__builtin *b)
{
    fl_net_free(b->net);
    fl_options_free(b->options);
    fl_options_free(b->beside);
    fl_options_free(b->personal_options);
    fl__builtin_forget_data(b);
    b->net = NULL;
    b->options = NULL;
    b->beside = NULL;
    b->personal_options = NULL;
}

static void builtin_free(struct fl_trainer *trainer)
{
    struct fl__builtin *b = builtin_of(trainer);

    builtin_forget(b);
    free(b);
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
                          "the server's training options give no training step: epochs %" PRIu32
                          ", steps %" PRIu32 ", batch size %" PRIu32,
                          model->epochs, model->steps, model->batch_size);
    }
    return FL_OK;
}

static void take_description(struct fl__builtin *b, const struct fl_train_model *model)
{
    const struct fl_personal_adapt_options *adapt;

    b->solver = model->solver;
    b->epochs = model->epochs;
    b->steps = model->steps;
    b->which_metrics = model->metrics;
    b->batch_size = model->batch_size;
    b->momentum = model->momentum;
    b->weight_decay = model->weight_decay;
    b->personal = model->personal;
    b->adapts = model->personal != NULL && model->personal->adapts;
    b->adapt_on_test = false;
    b->adapt_steps = 0;
    b->adapt_epochs = 0;
    if (b->adapts) {
        adapt = fl_options_values(model->personal_options);
        b->adapt_on_test = adapt->data == FL_ADAPT_TEST;
        b->adapt_steps = (uint32_t)adapt->steps;
        b->adapt_epochs = adapt->steps == 0 ? (uint32_t)adapt->epochs : 0;
    }
}

static int builtin_prepare(struct fl_trainer *trainer, const struct fl_train_model *model,
                           struct fl_err *err)
{
    struct fl__builtin *b = builtin_of(trainer);
    int rv = check_model(model, err);
    char diff[256];

    builtin_forget(b);
    if (rv != FL_OK) {
        return rv;
    }
    take_description(b, model);
    rv = fl__builtin_describe(b, &model->net);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "the server's network: out of memory");
        goto fail;
    }
    rv = fl__builtin_make_net(b, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (!fl_layout_equal(fl_net_layout(b->net), model->layout)) {
        fl_layout_diff(fl_net_layout(b->net), model->layout, diff, sizeof(diff));
        rv = fl_err_set(err, FL_ESHAPE,
                        "the server's layers do not make the units that it lists: %s", diff);
        goto fail;
    }
    rv = fl__builtin_check_data(b, b->train, b->test, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_options_copy(model->solver_options, &b->options);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "solver options: %s", fl_strerror(rv));
        goto fail;
    }
    rv = model->personal != NULL ? fl_options_copy(model->personal_options, &b->personal_options)
                                 : FL_OK;
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "personal options: %s", fl_strerror(rv));
        goto fail;
    }
    rv = fl_personal_beside_steps(model->personal, model->personal_options, &b->beside, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__builtin_take_memory(b, b->train, b->test, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    builtin_forget(b);
    return rv;
}

static int builtin_canceled(struct fl_err *err)
{
    return fl_err_set(err, FL_ECANCELED, "training was cancelled while the model was evaluated");
}

static void evaluate_logits(void *ctx, const float *logits, size_t ld, const int32_t *y, size_t n)
{
    fl_net_metrics_add(ctx, logits, ld, y, n);
}

/* Evaluates the parameters in the network. */
static int evaluate_net(struct fl__builtin *b, const atomic_bool *cancel, struct fl_evaluation *ret)
{
    size_t piece = fl_net_piece(b->net);
    uint64_t correct = 0;
    double loss_sum = 0;
    size_t at;
    size_t i;

    fl_net_set_targets(b->net, b->test->target);
    if (b->metrics != NULL) {
        fl_net_metrics_clear(b->metrics, b->test->target);
    }
    for (at = 0; at < b->test->n; at += piece) {
        size_t n = b->test->n - at < piece ? b->test->n - at : piece;
        struct fl_net_found found;

        if (cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed)) {
            return FL_ECANCELED;
        }
        for (i = 0; i < n; i++) {
            b->order_test[i] = (uint32_t)(at + i);
        }
        fl_dataset_gather(b->test, b->order_test, n, b->x, b->y);
        found = fl_net_evaluate_logits(b->net, b->x, b->y, n,
                                       b->metrics != NULL ? evaluate_logits : NULL, b->metrics);
        loss_sum += found.loss_sum;
        correct += found.correct;
    }
    *ret = (struct fl_evaluation){.samples = b->test->n, .correct = correct, .loss_sum = loss_sum};
    if (b->metrics != NULL) {
        fl_net_metrics_put(b->metrics, ret->metrics);
    }
    return FL_OK;
}

static int check_evaluation(const struct fl__builtin *b, struct fl_err *err)
{
    if (b->test == NULL || b->test->n == 0) {
        return fl_err_set(err, FL_ENOENT, "this client has no test data");
    }
    if (b->net == NULL) {
        return fl_err_set(err, FL_ESTATE, "evaluation before the server described its model");
    }
    return FL_OK;
}

static int builtin_evaluate(struct fl_trainer *trainer, const float *model, atomic_bool *cancel,
                            struct fl_evaluation *ret, struct fl_err *err)
{
    struct fl__builtin *b = builtin_of(trainer);
    int rv = check_evaluation(b, err);

    if (rv != FL_OK) {
        return rv;
    }
    fl_net_set(b->net, model);
    return evaluate_net(b, cancel, ret) == FL_OK ? FL_OK : builtin_canceled(err);
}

static void walk_gather(void *ctx, struct fl_rng *rng, const uint32_t *idx, size_t n, float *x,
                        int32_t *y)
{
    const struct walk *w = ctx;

    fl_dataset_gather_train(w->ds, rng, idx, n, x, y);
}

static bool walk_canceled(void *ctx)
{
    const struct walk *w = ctx;

    return fl__train_canceled(w->task);
}

static void walk_progress(void *ctx, uint64_t done, uint64_t of)
{
    const struct walk *w = ctx;

    w->task->progress(w->task->ctx, w->before + done, w->before + of + w->after);
}

/* The passes over `ds`, or the steps, that the server asked for. */
static void walk_passes(struct walk *w, struct fl__builtin *b, const struct fl_train_task *task,
                        const struct fl_dataset *ds)
{
    const struct fl_solver_ops *solver = task->beside ? &fl_solver_prox : b->solver;

    fl_net_set_targets(b->net, ds->target);
    *w = (struct walk){.b = b,
                       .task = task,
                       .ds = ds,
                       .solver = solver,
                       .options = task->beside ? b->beside : b->options,
                       .steps = {.net = b->net,
                                 .solver = solver,
                                 .samples = ds->n,
                                 .gather = walk_gather,
                                 .canceled = walk_canceled,
                                 .progress = task->progress != NULL ? walk_progress : NULL,
                                 .ctx = w,
                                 .task = &task->asked,
                                 .order = b->order,
                                 .x = b->x,
                                 .y = b->y}};
    fl_local_steps_plan(&w->steps, b->batch_size, b->epochs, b->steps);
}

static int make_solver(const struct walk *w, bool adapting, struct fl_solver **ret,
                       struct fl_err *err)
{
    const struct fl__builtin *b = w->b;
    const struct fl_train_task *task = w->task;
    struct fl_solver_setup setup = {
        .net = b->net,
        .learning_rate = task->asked.learning_rate,
        .momentum = b->momentum,
        .weight_decay = b->weight_decay,
        .n_steps = (size_t)w->steps.n_steps,
        .round = task->asked.key.round,
        .seed = task->asked.seed,
        .n_selected = task->asked.n_selected,
        .population = task->asked.population,
        .adapting = adapting,
        .anchor = task->anchor,
        .inputs = task->inputs,
        .kept = task->kept,
        .own_summary = task->own_summary.data != NULL
                           ? task->own_summary
                           : (struct fl_solver_bytes){b->own_summary.data, b->own_summary.len},
    };

    return w->solver->create(w->options, &setup, ret, err);
}

/* Loads the model of a task into the network and resets dropout's random stream. */
static int builtin_load(struct fl__builtin *b, const struct fl_train_task *task, struct fl_err *err)
{
    size_t count = fl_layout_count(fl_net_layout(b->net));
    struct fl_rng rng;

    FL_REQUIRE(task->asked.key.round > 0);
    if (!fl_vec_finite(task->model, count)) {
        return fl_err_set(err, FL_ENUMERIC, "the received model is not finite");
    }
    if (task->anchor != NULL && !fl_vec_finite(task->anchor, count)) {
        return fl_err_set(err, FL_ENUMERIC, "the anchor model of training is not finite");
    }
    fl_net_set(b->net, task->model);
    fl_rng_key(&rng, task->asked.seed, FL_RNG_DROPOUT, task->asked.key.round, 0);
    fl_net_seed(b->net, fl_rng_u64(&rng));
    return FL_OK;
}

static bool has_test(const struct fl__builtin *b)
{
    return b->test != NULL && b->test->n > 0;
}

/* --- the head, before the body --- */

/* The trainer's layout has no marks of local tensors; the policy knows its head. */
static bool walk_in_head(void *ctx, const struct fl_layout *layout, const struct fl_tensor *tensor)
{
    const struct fl__builtin *b = ctx;

    return !tensor->buffer && fl_personal_in_head(b->personal, b->personal_options, layout, tensor);
}

static bool walk_in_body(void *ctx, const struct fl_layout *layout, const struct fl_tensor *tensor)
{
    return !tensor->buffer && !walk_in_head(ctx, layout, tensor);
}

/*
 * The epochs that train the head alone, then `fixed` for the steps of `w`, which train the body
 * (FedRep: Collins et al. 2021, Algorithm 1). The corrections of a solver are those of the body,
 * the model that clients share, so the head's steps are its adapting ones.
 */
static int walk_head(struct walk *w, struct fl_fixed_entries *fixed, struct fl_err *err)
{
    struct fl__builtin *b = w->b;
    uint32_t epochs = fl_personal_head_epochs(b->personal, b->personal_options);
    struct fl_fixed_entries body = {.n_runs = 0};
    struct fl_local_sums sums;
    struct fl_solver *solver = NULL;
    struct walk head = *w;
    int rv;

    if (epochs == 0 || w->task->beside) {
        return FL_OK;
    }
    fl_local_steps_plan(&head.steps, b->batch_size, epochs, 0);
    head.steps.fixed = &body;
    head.steps.ctx = &head;
    head.after = w->steps.n_steps;
    rv = fl_fixed_entries_take(b->net, walk_in_body, b, &body, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = make_solver(&head, /* adapting= */ true, &solver, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_local_steps_run(&head.steps, solver, &sums, err);
    w->solver->destroy(solver);
    if (rv != FL_OK) {
        goto done;
    }
    w->before = head.steps.n_steps;
    w->steps.first = w->steps.cyclic > 0 ? 0 : head.steps.n_steps;
    rv = fl_fixed_entries_take(b->net, walk_in_head, b, fixed, err);
    if (rv != FL_OK) {
        goto done;
    }
    w->steps.fixed = fixed;
done:
    fl_fixed_entries_done(&body);
    return rv;
}

static int builtin_solve(const struct walk *w, struct fl_train_result *ret, struct fl_err *err)
{
    struct fl__builtin *b = w->b;
    struct fl_local_sums sums;
    struct fl_solver *solver = NULL;
    size_t count = fl_layout_count(fl_net_layout(b->net));
    int rv = fl__train_extras(fl_solver_keeps(w->solver->keeps), &ret->kept, &ret->n_kept, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__train_extras(fl_solver_names(fl_solver_sends(w->solver, w->options)), &ret->sent,
                          &ret->n_sent, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (w->task->own_summary.data == NULL && !w->task->beside) {
        rv = fl__summary_own(b, w->task->summary_seed, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = make_solver(w, /* adapting= */ false, &solver, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_local_steps_run(&w->steps, solver, &sums, err);
    if (rv != FL_OK) {
        goto done;
    }
    ret->steps = w->steps.n_steps;
    ret->samples = w->ds->n;
    ret->train_loss = sums.samples > 0 ? sums.loss / (double)sums.samples : 0;
    if (w->solver->finish != NULL) {
        rv = w->solver->finish(solver, ret->kept, ret->sent, err);
    }
    if (rv != FL_OK) {
        goto done;
    }
    if (w->task->release) {
        fl_net_release(b->net);
    }
    ret->delta = malloc(count * sizeof(*ret->delta));
    if (ret->delta == NULL) {
        rv = fl_err_set(err, FL_ENOMEM, "update of %zu parameters: out of memory", count);
        goto done;
    }
    fl_net_get(b->net, ret->delta);
    if (w->task->evaluate_trained && has_test(b)) {
        /* Evaluate the personal model, which may differ from the uploaded one. */
        if (w->solver->personal != NULL) {
            w->solver->personal(solver);
        }
        if (evaluate_net(b, w->task->cancel, &ret->trained) != FL_OK) {
            rv = builtin_canceled(err);
            goto done;
        }
        ret->has_trained = true;
    }
done:
    w->solver->destroy(solver);
    return rv;
}

static int builtin_run(struct fl_trainer *trainer, const struct fl_train_task *task,
                       struct fl_train_result *ret, struct fl_err *err)
{
    struct fl__builtin *b = builtin_of(trainer);
    struct fl_space_training space = {.steps = {.n = 0}};
    struct fl_fixed_entries head = {.n_runs = 0};
    struct walk w;
    int rv;

    if (b->net == NULL) {
        return fl_err_set(err, FL_ESTATE, "training before the server described its model");
    }
    FL_REQUIRE(!task->beside || b->beside != NULL);
    rv = builtin_load(b, task, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (has_test(b) && !task->beside) {
        if (evaluate_net(b, task->cancel, &ret->received) != FL_OK) {
            return builtin_canceled(err);
        }
        ret->has_received = true;
    }
    walk_passes(&w, b, task, b->train);
    if (task->space != NULL) {
        rv = fl_space_training_begin(b->net, task->space, task->asked.draw, &space);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "training in a hashed space: %s", fl_strerror(rv));
        }
        w.steps.space = &space.steps;
    }
    rv = walk_head(&w, &head, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = builtin_solve(&w, ret, err);
done:
    fl_fixed_entries_done(&head);
    fl_space_training_done(&space);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__train_finish(fl_net_layout(b->net), task, ret, err);
}

/* Makes the steps of personal.adapt, from the parameters in the network. */
static int builtin_fit(struct fl__builtin *b, const struct fl_train_task *task, struct fl_err *err)
{
    const struct fl_dataset *ds = b->adapt_on_test ? b->test : b->train;
    struct fl_local_sums sums;
    struct fl_solver *solver = NULL;
    struct walk w;
    int rv;

    walk_passes(&w, b, task, ds);
    if (b->adapt_epochs > 0) {
        fl_local_steps_plan(&w.steps, b->batch_size, b->adapt_epochs, 0);
    } else if (b->adapt_steps > 0) {
        /* Same order as in training: fresh passes, or the cycle. */
        w.steps.n_steps = b->adapt_steps;
        w.steps.cyclic = w.steps.cyclic > 0 ? b->adapt_steps : 0;
    }
    rv = make_solver(&w, /* adapting= */ true, &solver, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_local_steps_run(&w.steps, solver, &sums, err);
    w.solver->destroy(solver);
    return rv;
}

static int builtin_adapt(struct fl_trainer *trainer, const struct fl_train_task *task,
                         struct fl_evaluation *ret_received, struct fl_evaluation *ret_adapted,
                         struct fl_err *err)
{
    struct fl__builtin *b = builtin_of(trainer);
    int rv = check_evaluation(b, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = builtin_load(b, task, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (evaluate_net(b, task->cancel, ret_received) != FL_OK) {
        return builtin_canceled(err);
    }
    if (!b->adapts) {
        return FL_OK;
    }
    rv = builtin_fit(b, task, err);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "fine-tuning the model before its evaluation");
    }
    if (!fl_vec_finite(fl_net_params(b->net), fl_net_block(b->net))) {
        return fl_err_set(err, FL_ENUMERIC,
                          "the model fine-tuned before its evaluation is not finite: fine-tuning "
                          "diverged; a smaller learning rate than %g helps",
                          task->asked.learning_rate);
    }
    if (evaluate_net(b, task->cancel, ret_adapted) != FL_OK) {
        return builtin_canceled(err);
    }
    return FL_OK;
}

static int builtin_summary(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out,
                           struct fl_err *err)
{
    struct fl__builtin *b = builtin_of(trainer);

    if (b->net == NULL) {
        return fl_err_set(err, FL_ESTATE,
                          "data summary requested before the server described its model");
    }
    if (b->solver->summary == NULL) {
        return fl_err_set(err, FL_ESTATE, "the solver '%s' summaries nothing",
                          b->solver->policy.name);
    }
    return fl__summary_make(b, seed, out, err);
}

static uint64_t builtin_samples(const struct fl_trainer *trainer)
{
    return ((const struct fl__builtin *)(const void *)trainer)->train->n;
}

int fl_trainer_builtin(const struct fl_dataset *train, const struct fl_dataset *test,
                       const struct fl_kernels *kernels, struct fl_trainer **ret,
                       struct fl_err *err)
{
    static const struct fl__trainer_ops ops = {.free = builtin_free,
                                               .prepare = builtin_prepare,
                                               .run = builtin_run,
                                               .summary = builtin_summary,
                                               .samples = builtin_samples,
                                               .adapt = builtin_adapt,
                                               .evaluate = builtin_evaluate,
                                               .set_data = fl__builtin_set_data};
    struct fl__builtin *b;

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
    b->kernels = kernels;
    *ret = &b->base;
    return FL_OK;
}
