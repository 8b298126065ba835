/*
 * aggregate: fednova (FedNova: Wang et al. 2020, eq. 9 and 10)
 *
 *     theta_l += server_lr * (sum_k p_k a_k) * sum_k p_k Delta_{k,l} / a_k,  k in U_l
 *
 * with p_k = n_k / sum of n_j over U_l (or equal weights) and a_k the local steps of client k; with
 * a momentum of the clients what a constant gradient moves them in these steps
 * (fl_solver_momentum_steps()), which is the paper's ||a_k||_1. The proximal term and other local
 * optimizers are not in a_k. The pass divides and multiplies (fl_aggregate_ops.steps_cap);
 * buffers take the plain mean. With equal steps it is the mean, bit for bit.
 *
 * a_k is a claim of the client, like n_k: steps_cap bounds what a false one can do.
 *
 * Options: server_lr, steps_cap, weights. State: none. Cost: one pass over the updates.
 */
#include "libfl/strategy/aggregator/aggregate_impl.h"

struct options {
    struct fl__agg_common common;
    double steps_cap;
};

static double nova_steps_cap(const struct fl_options *o)
{
    const struct options *v = fl_options_values(o);

    return v->steps_cap;
}

static const struct fl_opt_spec options[] = {
    {FL_OPT_IN(struct options, FLOAT, common, server_lr), .def = "1", .min = 0, .max = 1000,
     .help = "Factor of the mean update; 1 is plain averaging."},
    {FL_OPT(struct options, FLOAT, steps_cap), .def = "10", .min = 1, .max = 1e6,
     .help = "The steps that a client reports count as at most so many times the median of a "
             "round, and at least as the median divided by it."},
    FL__AGG_WEIGHTS_OPTION(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_aggregate_ops fl_aggregate_nova = {
    .policy =
        {
            .name = "fednova",
            .help = "mean of the updates, each divided by its local steps",
            .source = "FedNova",
            .options = options,
        },
    .weights = fl__agg_weights_of,
    .step = fl__agg_mean_step,
    .steps_cap = nova_steps_cap,
};
