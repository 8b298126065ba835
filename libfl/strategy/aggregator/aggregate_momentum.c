/*
 * aggregate: momentum (FedAvgM: Hsu et al. 2019)
 *
 *     v <- beta v + Dbar,  theta += server_lr * v        (no factor 1 - beta)
 *
 * per unit: a unit that no client sent keeps its v. Buffers take the plain mean. The step uses v
 * before it is rounded to the float that is stored, so beta = 0 is the mean bit for bit. Options:
 * beta, server_lr, weights. State: v, one model-sized vector.
 */
#include "libfl/strategy/aggregator/aggregate_impl.h"

struct options {
    struct fl__agg_common common;
    double beta;
};

static void momentum_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    const struct options *opt = fl_options_values(o);
    double beta = opt->beta;
    double lr = opt->common.server_lr;
    size_t i;

    for (i = 0; i < block->n; i++) {
        double v = beta * (double)block->state[0][i] + block->dbar[i];

        block->state_new[0][i] = (float)v;
        block->step[i] = lr * v;
    }
}

static int momentum_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);

    if (v->beta >= 1) {
        return fl_err_set(err, FL_ECONF,
                          "beta must be below 1: a velocity that never decays grows without limit");
    }
    return FL_OK;
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, beta), .def = "0.9", .min = 0, .max = 1,
     .help = "Share of the velocity that is kept each round; below 1. 0 is the mean."},
    {FL_OPT_IN(struct options, FLOAT, common, server_lr), .def = "1", .min = 0, .max = 1000,
     .help = "Factor of the velocity in the step."},
    FL__AGG_WEIGHTS_OPTION(struct options),
    FL_OPT_END_OF(struct options),
};

static const char *const names[] = {"velocity", NULL};

const struct fl_aggregate_ops fl_aggregate_momentum = {
    .policy =
        {
            .name = "momentum",
            .help = "mean of the updates with momentum on the server",
            .source = "FedAvgM",
            .options = options,
            .check = momentum_check,
        },
    .n_state = 1,
    .state_names = names,
    .weights = fl__agg_weights_of,
    .step = momentum_step,
};
