/*
 * solver: fedmix, naivemix (FedMix: Yoon et al. 2021; docs/algorithms.md#mix-up-from-means)
 *
 * Mix-up with the data of other clients, of which only means are known. Once per client, before the
 * first round, groups of samples and their one-hot labels are averaged and sent as the client's
 * data summary; the union of the data summaries of all clients is sent back (payload "mixup";
 * format: solver_fedmix.h). V is the union without the client's own data summary. Each step draws
 * one pair (xbar, ybar) of V uniformly. fedmix trains on z_b = (1 - lambda) x_b and
 *
 *     L = 1/B sum_b [ (1 - lambda) CE(f(z_b), y_b) + lambda CE(f(z_b), ybar)
 *                     + lambda q <grad_z CE(f(z_b), y_b), xbar> ]
 *
 * The first two terms are one cross-entropy with a soft target; the third is lambda q times the
 * directional derivative (JVP) of the mean loss with labels y_b in the direction xbar, for every
 * sample. Its gradient is computed in the same pass (fl_net_pass_jvp(), exact: a difference
 * quotient crosses kinks of ReLU and is mostly error). The term is the mean over the samples;
 * public code averages it twice, which makes it B times too small. naivemix is the control without
 * that term: z_b = (1 - lambda) x_b + lambda xbar.
 *
 * Batch-norm: the statistics are functions of the batch, so their derivative is part of the third
 * term.
 *
 * lambda = 0 is sgd, bit for bit; so are an empty V and adapting a copy before an evaluation
 * (personal.adapt). With xbar = 0 the third term is 0 and skipped.
 *
 * Options: lambda, q (fedmix), group, mu (proximal term). State beside sgd's: one batch of inputs
 * and targets; fedmix a second of inputs, and another batch of activations. Cost: naivemix sgd's,
 * fedmix twice that. Bytes: 16 + floor(n_k / group) * 4 (dim + classes) uploaded once, V downloaded
 * once per client. Runs on the training thread; data summaries are made and checked in
 * solver_fedmix_summary.c.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/solver/solver_fedmix.h"
#include "libfl/strategy/solver/solver_impl.h"

struct fl_solver {
    struct fl__sgd sgd;
    struct fl__prox prox;
    struct fl__mix_union means; /* empty: plain steps */
    struct fl_rng rng;
    double lambda;
    double taylor;  /* lambda q; 0: no third term */
    bool naive;     /* inputs are mixed */
    float *mean;    /* [dim] */
    float *label;   /* [classes] */
    float *inputs;  /* [max_batch][dim] */
    float *targets; /* [max_batch][classes] */
    float *x_dot; /* [max_batch][dim], direction of the JVP: xbar per sample; NULL: no third term */
};

static void fedmix_update(void *ctx, size_t offset, size_t n, float *params, const float *grad)
{
    const struct fl_solver *solver = ctx;

    fl__prox_update(&solver->prox, &solver->sgd, offset, n, params, grad);
}

/* inputs = (1 - lambda) x + share * mean */
static void mix_inputs(struct fl_solver *solver, const float *x, size_t batch, double share)
{
    size_t dim = solver->means.dim;
    float keep = (float)(1.0 - solver->lambda);
    size_t b;

    for (b = 0; b < batch; b++) {
        float *z = solver->inputs + b * dim;

        fl_vec_scale(z, keep, x + b * dim, dim);
        if (share > 0) {
            fl_vec_axpy(z, (float)share, solver->mean, dim);
        }
    }
}

/* (1 - lambda) onehot(y) + lambda ybar */
static void mix_targets(struct fl_solver *solver, const int32_t *y, size_t batch)
{
    size_t classes = solver->means.classes;
    size_t b;

    for (b = 0; b < batch; b++) {
        float *t = solver->targets + b * classes;

        fl_vec_scale(t, (float)solver->lambda, solver->label, classes);
        t[(size_t)y[b]] += (float)(1.0 - solver->lambda);
    }
}

/* A step with the third term: the JVP in the direction xbar for every sample. */
static double step_jvp(struct fl_solver *solver, const struct fl_net_pass *pass)
{
    const struct fl_net_direction direction = {
        .x = solver->x_dot, .loss = 1, .slope = solver->taylor};
    size_t dim = solver->means.dim;
    double slope, loss;
    size_t b;

    for (b = 0; b < pass->batch; b++) {
        (void)memcpy(solver->x_dot + b * dim, solver->mean, dim * sizeof(float));
    }
    loss = fl_net_pass_jvp(solver->sgd.net, pass, &direction, fedmix_update, solver, &slope);
    return loss + solver->taylor * slope;
}

static double fedmix_step(struct fl_solver *solver, const float *x, const int32_t *y, size_t batch)
{
    struct fl_net_pass pass = {.x = solver->inputs, .y = y, .batch = batch, .track = true};

    if (solver->means.n_pairs == 0) {
        return fl_net_step(solver->sgd.net, x, y, batch, fedmix_update, solver);
    }
    fl__mix_union_pair(&solver->means, fl_rng_below(&solver->rng, solver->means.n_pairs),
                       solver->mean, solver->label);
    mix_inputs(solver, x, batch, solver->naive ? solver->lambda : 0);
    mix_targets(solver, y, batch);
    pass.target = solver->targets;
    if (solver->x_dot != NULL && fl_vec_norm2(solver->mean, solver->means.dim) > 0) {
        return step_jvp(solver, &pass);
    }
    return fl_net_pass(solver->sgd.net, &pass, fedmix_update, solver);
}

static void fedmix_destroy(struct fl_solver *solver)
{
    if (solver != NULL) {
        fl__sgd_done(&solver->sgd);
        fl__prox_done(&solver->prox);
        fl__mix_union_done(&solver->means);
        free(solver->mean);
        free(solver->label);
        free(solver->inputs);
        free(solver->targets);
        free(solver->x_dot);
        free(solver);
    }
}

static int create_mix(const struct fl_options *o, const struct fl_solver_setup *setup, bool naive,
                      struct fl_solver **ret, struct fl_err *err)
{
    const struct fl__mix_options *v = fl_options_values(o);
    struct fl_solver *solver = calloc(1, sizeof(*solver));
    int rv;

    if (solver == NULL) {
        return fl_err_set(err, FL_ENOMEM, "solver: out of memory");
    }
    solver->naive = naive;
    solver->lambda = v->lambda;
    rv = fl__prox_init(&solver->prox, v->mu, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__sgd_init(&solver->sgd, setup, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (solver->lambda > 0 && fl_net_values(setup->net) > 0) {
        rv = fl_err_set(err, FL_ECONF, "mix-up mixes classes, and the network predicts values");
        goto fail;
    }
    if (solver->lambda > 0 && fl_net_takes_indices(setup->net)) {
        rv = fl_err_set(err, FL_ECONF,
                        "mix-up mixes numbers, and the network begins with 'embedding', whose "
                        "inputs are indices of words: choose another solver or another network");
        goto fail;
    }
    if (!setup->adapting && solver->lambda > 0) {
        rv = fl__mix_union_open(setup->inputs, &setup->own_summary, fl_net_inputs(setup->net),
                                fl_net_classes(setup->net), &solver->means, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    if (solver->means.n_pairs > 0) {
        size_t dim = solver->means.dim;
        size_t classes = solver->means.classes;
        size_t batch = fl_net_max_batch(setup->net);
        bool third;

        if (!naive) {
            bool one = v->q == FL__MIX_ONE;

            solver->taylor = solver->lambda * (one ? 1.0 : 1.0 - solver->lambda);
        }
        fl_rng_key(&solver->rng, setup->seed, FL_RNG_SOLVER, setup->round, 0);
        third = solver->taylor > 0;
        solver->mean = malloc(dim * sizeof(float));
        solver->label = malloc(classes * sizeof(float));
        solver->inputs = malloc(batch * dim * sizeof(float));
        solver->targets = malloc(batch * classes * sizeof(float));
        solver->x_dot = third ? malloc(batch * dim * sizeof(float)) : NULL;
        if (solver->mean == NULL || solver->label == NULL || solver->inputs == NULL ||
            solver->targets == NULL || (third && solver->x_dot == NULL))
        {
            rv = fl_err_set(err, FL_ENOMEM, "mix-up of batches of %zu: out of memory", batch);
            goto fail;
        }
        rv = third ? fl_net_take_tangents(setup->net, err) : FL_OK;
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = solver;
    return FL_OK;
fail:
    fedmix_destroy(solver);
    return rv;
}

static int fedmix_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                         struct fl_solver **ret, struct fl_err *err)
{
    return create_mix(o, setup, /* naive= */ false, ret, err);
}

static int naivemix_create(const struct fl_options *o, const struct fl_solver_setup *setup,
                           struct fl_solver **ret, struct fl_err *err)
{
    return create_mix(o, setup, /* naive= */ true, ret, err);
}

static unsigned fedmix_external_parts(const struct fl_options *o, bool adapting)
{
    const struct fl__mix_options *v = fl_options_values(o);

    return (v->mu > 0 ? FL_CAPABILITY_PULL : 0u) |
           (v->lambda > 0 && !adapting ? (unsigned)FL_CAPABILITY_MIXUP : 0u);
}

static int fedmix_external_begin(const struct fl_options *o, const struct fl_external_task *task,
                                 struct fl_external *ret, struct fl_err *err)
{
    const struct fl__mix_options *v = fl_options_values(o);

    (void)err;
    ret->mu = v->mu;
    ret->mixup = task->adapting ? NULL : task->inputs;
    return FL_OK;
}

/* clang-format off */
#define LAMBDA(S) \
    {FL_OPT(S, FLOAT, lambda), .def = "0.05", .min = 0, .max = 1, \
     .help = "Weight of the other clients' means in a sample; 0 is sgd."}
#define GROUP(S) \
    {FL_OPT(S, INT, group), .def = "0", .min = 0, .max = 1e9, \
     .help = "Samples that are averaged into one pair, at least 2; the last pair of a client has the " \
             "rest too; 0: all of a client. A client allows no less than its own least_group, " \
             "by default 10."}
/* clang-format on */

static const char *const factors[] = {
    [FL__MIX_ONE] = "one", [FL__MIX_ONE_MINUS_LAMBDA] = "one_minus_lambda", NULL};
static const struct fl_opt_spec options[] = {
    LAMBDA(struct fl__mix_options),
    {FL_OPT(struct fl__mix_options, ENUM, q), .def = "one_minus_lambda", .choices = factors,
     .help =
         "Factor of the Taylor term in addition to lambda: 1, or 1 - lambda as in public code."},
    GROUP(struct fl__mix_options),
    FL__PROX_OPTION(struct fl__mix_options, "0"),
    FL_OPT_END_OF(struct fl__mix_options),
};
static const struct fl_opt_spec naive_options[] = {
    LAMBDA(struct fl__mix_options),
    GROUP(struct fl__mix_options),
    FL__PROX_OPTION(struct fl__mix_options, "0"),
    FL_OPT_END_OF(struct fl__mix_options),
};
static const char *const inputs[] = {"mixup", NULL};

const struct fl_solver_ops fl_solver_fedmix = {
    .policy =
        {
            .name = "fedmix",
            .help = "sgd on mix-up with means of other clients' data, with a first-order Taylor "
                    "term",
            .source = "FedMix",
            .options = options,
            .check = fl__mix_check_options,
        },
    .inputs = inputs,
    .collection = "mixup",
    .summary = fl__mix_summary,
    .summary_check = fl__mix_check,
    .summary_group = fl__mix_group,
    .summary_means = fl__mix_means,
    .summary_largest = fl__mix_largest,
    .create = fedmix_create,
    .destroy = fedmix_destroy,
    .step = fedmix_step,
    .external = {fedmix_external_parts, fedmix_external_begin, NULL},
};

const struct fl_solver_ops fl_solver_naivemix = {
    .policy =
        {
            .name = "naivemix",
            .help = "sgd on mix-up with means of other clients' data, used as samples",
            .source = "FedMix's control",
            .options = naive_options,
            .check = fl__mix_check_options,
        },
    .inputs = inputs,
    .collection = "mixup",
    .summary = fl__mix_summary,
    .summary_check = fl__mix_check,
    .summary_group = fl__mix_group,
    .summary_means = fl__mix_means,
    .summary_largest = fl__mix_largest,
    .create = naivemix_create,
    .destroy = fedmix_destroy,
    .step = fedmix_step,
    .external = {fedmix_external_parts, fedmix_external_begin, NULL},
};
