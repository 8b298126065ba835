/*
 * solver: optimizer (docs/algorithms.md#optimizers-of-clients)
 *
 * The optimizers of deep learning for the local steps, with PyTorch's formulas. g: the gradient,
 * after clipping, plus weight_decay x (adamw: x is multiplied by 1 - eta weight_decay instead);
 * eta: the learning rate of the step.
 *
 *     sgd        v <- m v + g,  x <- x - eta v                 m: training.momentum
 *     nesterov   v <- m v + g,  x <- x - eta (g + m v)
 *     adam, adamw (Kingma and Ba 2015; Loshchilov and Hutter 2019)
 *
 * clip: when the norm of the gradient of all parameters is above it, the gradient is multiplied by
 * clip / norm. warmup: the learning rate rises over so many steps of each round, from 1 / warmup to
 * all of it. schedule: its course over the steps of a round. label_smoothing e: the targets of a
 * sample are (1 - e) of its label and e / classes of each class (Szegedy et al. 2016, section 7).
 * class_weights: the loss is the mean over the batch with the weight of each sample's class (with
 * smoothing each class of the target has its own, as in PyTorch). All states start at zero in every
 * round. State: v, with adam also m, with clip the gradient, one model each; cost: a pass over the
 * model per state and step. With rule sgd and nothing else it is the solver sgd bit for bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/optim.h"
#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_impl.h"

enum rule { RULE_SGD, RULE_NESTEROV, RULE_ADAM, RULE_ADAMW };
enum course { COURSE_CONSTANT, COURSE_COSINE, COURSE_LINEAR, COURSE_STEP };

struct options {
    enum rule rule;
    double beta1, beta2, epsilon, clip;
    int64_t warmup;
    enum course schedule;
    int64_t step_every;
    double step_factor;
    double label_smoothing;
    struct fl_opt_texts class_weights;
};

struct fl_solver {
    struct fl__sgd sgd; /* velocity: of adam the second moments */
    struct options o;
    double learning_rate; /* of the task */
    uint64_t step, n_steps;
    struct fl_adam adam;
    float *first; /* moments of adam */
    float *grad;  /* with clip */
    struct fl__runs buffers;
    float *kept; /* with clip: a copy of the model, for its buffers */
    /* With label_smoothing or class_weights: [max_batch][classes], and [classes] weights. */
    float *target;
    double *weight;
};

static bool optimizer_is_adam(const struct fl_solver *solver)
{
    return solver->o.rule == RULE_ADAM || solver->o.rule == RULE_ADAMW;
}

/* Share of the learning rate at step s, from 0, of n. */
static double optimizer_course(const struct options *o, uint64_t s, uint64_t n)
{
    double share = 1.0;
    double part = n > 0 ? (double)s / (double)n : 0.0;

    if (o->schedule == COURSE_COSINE) {
        share = 0.5 * (1.0 + cos(3.14159265358979324 * part));
    } else if (o->schedule == COURSE_LINEAR) {
        share = 1.0 - part;
    } else if (o->schedule == COURSE_STEP) {
        share = pow(o->step_factor, (double)(s / (uint64_t)o->step_every));
    }
    return s < (uint64_t)o->warmup ? share * (double)(s + 1) / (double)o->warmup : share;
}

/* One range of the model, with the gradient after clipping. */
static void optimizer_apply(const struct fl_solver *solver, size_t offset, size_t n, float *params,
                            const float *grad)
{
    const struct fl__sgd *sgd = &solver->sgd;
    float decayed[FL__SOLVER_CHUNK];
    size_t at;

    if (solver->o.rule == RULE_SGD) {
        fl__sgd_update(sgd, offset, n, params, grad);
        return;
    }
    for (at = 0; at < n; at += FL__SOLVER_CHUNK) {
        size_t m = n - at < FL__SOLVER_CHUNK ? n - at : FL__SOLVER_CHUNK;
        float *v = sgd->velocity + offset + at;
        float *x = params + at;
        const float *g = grad + at;

        if (solver->o.rule == RULE_ADAMW) {
            fl_vec_scale(x, 1.0f - sgd->learning_rate * sgd->weight_decay, x, m);
        } else if (sgd->weight_decay > 0) {
            (void)memcpy(decayed, g, m * sizeof(float));
            fl_vec_axpy(decayed, sgd->weight_decay, x, m);
            g = decayed;
        }
        if (solver->o.rule == RULE_NESTEROV) {
            fl_nesterov_step(x, v, g, sgd->momentum, sgd->learning_rate, m);
        } else {
            fl_adam_step(x, solver->first + offset + at, v, g, &solver->adam, m);
        }
    }
}

static void optimizer_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    optimizer_apply(ctx, offset, n, params, grad);
}

static void optimizer_record(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    struct fl_solver *solver = ctx;

    (void)params;
    (void)memcpy(solver->grad + offset, grad, n * sizeof(*grad));
}

/* The step with a clipped gradient: buffers, which have none, are not decayed. */
static void optimizer_clip(struct fl_solver *solver)
{
    size_t n = fl_net_block(solver->sgd.net);
    float *params = fl_net_params(solver->sgd.net);
    double norm = fl_vec_norm2(solver->grad, n);

    if (norm > solver->o.clip) {
        fl_vec_scale(solver->grad, (float)(solver->o.clip / norm), solver->grad, n);
    }
    fl__runs_copy(&solver->buffers, solver->kept, params);
    optimizer_apply(solver, 0, n, params, solver->grad);
    fl__runs_copy(&solver->buffers, params, solver->kept);
}

/* The targets of a batch, whose mean loss is the weighted mean. */
static void optimizer_targets(struct fl_solver *solver, const int32_t *y, size_t batch)
{
    size_t classes = fl_net_classes(solver->sgd.net);
    double e = solver->o.label_smoothing;
    double sum = 0.0;
    size_t b, j;

    for (b = 0; b < batch; b++) {
        sum += solver->weight[y[b]];
    }
    for (b = 0; b < batch; b++) {
        for (j = 0; j < classes; j++) {
            double share = e / (double)classes + ((size_t)y[b] == j ? 1.0 - e : 0.0);

            solver->target[b * classes + j] =
                sum > 0 ? (float)(share * solver->weight[j] * (double)batch / sum) : 0.0f;
        }
    }
}

static double optimizer_step(struct fl_solver *solver, const float *x, const int32_t *y,
                             size_t batch)
{
    const struct options *o = &solver->o;
    double rate = solver->learning_rate * optimizer_course(o, solver->step, solver->n_steps);
    double t = (double)++solver->step;
    const struct fl_net_pass how = {
        .x = x, .y = y, .target = solver->target, .batch = batch, .track = true};
    double loss;

    solver->sgd.learning_rate = (float)rate;
    if (optimizer_is_adam(solver)) {
        solver->adam = (struct fl_adam){
            .rate = (float)rate,
            .beta1 = (float)o->beta1,
            .beta2 = (float)o->beta2,
            .epsilon = (float)o->epsilon,
            .first_scale = (float)(1.0 / (1.0 - pow(o->beta1, t))),
            .second_scale = (float)(1.0 / sqrt(1.0 - pow(o->beta2, t))),
        };
    }
    if (solver->target != NULL) {
        optimizer_targets(solver, y, batch);
    }
    if (solver->grad == NULL) {
        return fl_net_pass(solver->sgd.net, &how, optimizer_update, solver);
    }
    loss = fl_net_pass(solver->sgd.net, &how, optimizer_record, solver);
    optimizer_clip(solver);
    return loss;
}

static void optimizer_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        fl__runs_done(&solver->buffers);
        free(solver->first);
        free(solver->grad);
        free(solver->kept);
        free(solver->target);
        free(solver->weight);
        free(solver);
    }
}

/* Blocks of the model's size beside those of sgd. */
static int optimizer_blocks(struct fl_solver *solver, struct fl_err *err)
{
    size_t n = fl_net_block(solver->sgd.net);
    bool adam = optimizer_is_adam(solver);
    bool clip = solver->o.clip > 0;

    if (solver->o.rule != RULE_SGD && solver->sgd.velocity == NULL) {
        solver->sgd.velocity = calloc(n, sizeof(float));
    }
    solver->first = adam ? calloc(n, sizeof(float)) : NULL;
    solver->grad = clip ? calloc(n, sizeof(float)) : NULL;
    solver->kept = clip ? calloc(n, sizeof(float)) : NULL;
    if ((solver->o.rule != RULE_SGD && solver->sgd.velocity == NULL) ||
        (adam && solver->first == NULL) || (clip && (solver->grad == NULL || solver->kept == NULL)))
    {
        return fl_err_set(err, FL_ENOMEM, "optimizer of %zu parameters: out of memory", n);
    }
    return clip ? fl__runs_of_buffers(solver->sgd.net, &solver->buffers, err) : FL_OK;
}

/* Weight i of the list. */
static int optimizer_weight(const struct options *o, size_t i, double *ret, struct fl_err *err)
{
    const char *text = o->class_weights.list[i];

    if (fl_str_to_double(text, ret) != FL_OK || !(*ret >= 0.0 && *ret <= 1e6)) {
        return fl_err_set(err, FL_ECONF,
                          "class_weights: entry %zu is '%.32s', expected a number from 0 to 1e6",
                          i + 1, text);
    }
    return FL_OK;
}

static int optimizer_check(const struct fl_options *options, struct fl_err *err)
{
    const struct options *o = fl_options_values(options);
    double weight;
    size_t i;

    for (i = 0; i < o->class_weights.n; i++) {
        int rv = optimizer_weight(o, i, &weight, err);

        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int optimizer_loss(struct fl_solver *solver, struct fl_err *err)
{
    const struct options *o = &solver->o;
    size_t classes = fl_net_classes(solver->sgd.net);
    size_t i;

    if (!(o->label_smoothing > 0) && o->class_weights.n == 0) {
        return FL_OK;
    }
    if (o->class_weights.n > 0 && o->class_weights.n != classes) {
        return fl_err_set(err, FL_ECONF,
                          "class_weights has %zu entries, expected one for each of "
                          "the model's %zu classes",
                          o->class_weights.n, classes);
    }
    solver->target = calloc(fl_net_max_batch(solver->sgd.net) * classes, sizeof(float));
    solver->weight = calloc(classes, sizeof(double));
    if (solver->target == NULL || solver->weight == NULL) {
        return fl_err_set(err, FL_ENOMEM, "targets of %zu classes: out of memory", classes);
    }
    for (i = 0; i < classes; i++) {
        int rv;

        solver->weight[i] = 1.0;
        rv = o->class_weights.n > 0 ? optimizer_weight(o, i, &solver->weight[i], err) : FL_OK;
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static int optimizer_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                            struct fl_solver **ret, struct fl_err *err)
{
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    solver->o = *(const struct options *)fl_options_values(o);
    solver->learning_rate = setup->learning_rate;
    solver->n_steps = setup->n_steps;
    rv = fl__sgd_init(&solver->sgd, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = optimizer_blocks(solver, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = optimizer_loss(solver, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = solver;
    return FL_OK;
fail:
    optimizer_destroy(solver);
    return rv;
}

static int optimizer_external(const struct fl_options *o, const struct fl_external_task *task,
                              struct fl_external *ret, struct fl_err *err)
{
    (void)o;
    (void)task;
    (void)ret;
    return fl_err_set(err, FL_ECONF,
                      "solver 'optimizer' trains with the built-in engine alone: a program has an "
                      "optimizer of its own; set strategy.solver to sgd");
}

static const char *const rules[] = {[RULE_SGD] = "sgd",
                                    [RULE_NESTEROV] = "nesterov",
                                    [RULE_ADAM] = "adam",
                                    [RULE_ADAMW] = "adamw",
                                    NULL};
static const char *const courses[] = {[COURSE_CONSTANT] = "constant",
                                      [COURSE_COSINE] = "cosine",
                                      [COURSE_LINEAR] = "linear",
                                      [COURSE_STEP] = "step",
                                      NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, ENUM, rule), .def = "adam", .choices = rules,
     .help = "sgd and nesterov use training.momentum; adam adds training.weight_decay to the "
             "gradient, adamw decays the parameters."},
    {FL_OPT(struct options, FLOAT, beta1), .def = "0.9", .min = 0, .max = 0.999999,
     .help = "Decay of adam's mean of the gradient."},
    {FL_OPT(struct options, FLOAT, beta2), .def = "0.999", .min = 0, .max = 0.999999,
     .help = "Decay of adam's mean of the squared gradient."},
    {FL_OPT(struct options, FLOAT, epsilon), .def = "1e-8", .min = 1e-20, .max = 1,
     .help = "Added to the root of adam's mean of the squared gradient."},
    {FL_OPT(struct options, FLOAT, clip), .def = "0", .min = 0, .max = 1e9,
     .help = "Largest norm of the gradient of all parameters in a step; 0: no limit."},
    {FL_OPT(struct options, INT, warmup), .def = "0", .min = 0, .max = 1e9,
     .help = "Steps of each round over which the learning rate rises to its value."},
    {FL_OPT(struct options, ENUM, schedule), .def = "constant", .choices = courses,
     .help = "Learning rate over the steps of a round: constant, down to 0 (cosine, linear), or "
             "times step_factor after every step_every steps."},
    {FL_OPT(struct options, INT, step_every), .def = "100", .min = 1, .max = 1e9,
     .help = "Steps between the changes of schedule step."},
    {FL_OPT(struct options, FLOAT, step_factor), .def = "0.1", .min = 0, .max = 1,
     .help = "Factor of schedule step."},
    {FL_OPT(struct options, FLOAT, label_smoothing), .def = "0", .min = 0, .max = 0.999,
     .help = "Share of a sample's target that is spread over all classes."},
    {FL_OPT(struct options, STRING_LIST, class_weights), .def = "",
     .help = "Weight of each class in the loss, in their order; default: all the same."},
    FL_OPT_END_OF(struct options),
};

const struct fl_solver_ops fl_solver_optimizer = {
    .policy =
        {
            .name = "optimizer",
            .help = "Nesterov's momentum, Adam or AdamW, with clipping, a schedule, label "
                    "smoothing and "
                    "class weights",
            .source = "FedOpt's baselines",
            .options = options,
            .check = optimizer_check,
        },
    .create = optimizer_create,
    .destroy = optimizer_destroy,
    .step = optimizer_step,
    .external = {NULL, optimizer_external, NULL},
};
