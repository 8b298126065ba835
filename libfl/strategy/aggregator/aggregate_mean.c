/*
 * aggregate: mean (FedAvg: McMahan et al. 2017, Algorithm 1)
 *
 *     theta_l += server_lr * sum_{k in U_l} n_k Delta_{k,l} / sum_{k in U_l} n_k
 *
 * or, with equal weights, n_k = 1 (IGFL). Options: server_lr (1: plain averaging), weights.
 * State: none. Cost: one pass over the updates.
 */
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/aggregator/aggregate_impl.h"

struct options {
    struct fl__agg_common common;
};

void fl__agg_mean_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    const struct fl__agg_common *common = fl_options_values(o);

    (void)memcpy(block->step, block->dbar, block->n * sizeof(*block->step));
    fl_acc_scale(block->step, common->server_lr, block->n);
}

static const struct fl_opt_spec options[] = {
    {FL_OPT_IN(struct options, FLOAT, common, server_lr), .def = "1", .min = 0, .max = 1000,
     .help = "Factor of the mean update; 1 is plain averaging."},
    FL__AGG_WEIGHTS_OPTION(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_aggregate_ops fl_aggregate_mean = {
    .policy =
        {
            .name = "mean",
            .help = "mean of the updates, weighted by samples or equally",
            .source = "FedAvg",
            .options = options,
        },
    .weights = fl__agg_weights_of,
    .step = fl__agg_mean_step,
};
