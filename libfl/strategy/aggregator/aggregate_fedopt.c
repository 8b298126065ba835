/*
 * aggregate: fedadam, fedyogi, fedadagrad (FedOpt: Reddi et al. 2021, Algorithm 2)
 *
 *     m <- beta1 m + (1 - beta1) Dbar
 *     fedadam:    u <- beta2 u + (1 - beta2) Dbar^2                    (per entry)
 *     fedyogi:    u <- u - (1 - beta2) Dbar^2 sign(u - Dbar^2)
 *     fedadagrad: u <- u + Dbar^2
 *     theta += server_lr m / (sqrt(u) + tau)
 *
 * with m = 0 and u = tau^2 at the start. Server states start at zero, so the state stored is u -
 * tau^2. With bias_correction of fedadam (Adam's, which the paper leaves out) u starts at 0 and
 * both are divided by 1 - beta^t, t the round: a unit that was frozen in some rounds is then
 * corrected too little.
 *
 * Per unit: a unit that no client sent keeps its m and u. Buffers take the plain mean. The step
 * uses m and u before they are rounded to the floats that are stored.
 *
 * State: two model-sized vectors. With beta1 = 0, beta2 = 1, server_lr = 2 tau fedadam and fedyogi
 * are the mean; fedyogi with beta2 = 0 is fedadagrad where Dbar^2 is above u.
 */
#include <math.h>

#include "libfl/strategy/aggregator/aggregate_impl.h"

struct options {
    struct fl__agg_common common;
    double beta1, beta2, tau;
    bool bias_correction;
};

enum { FIRST, SECOND, STATES };

/* The new second moment, less its start, from the old one and the mean update. */
typedef double (*fedopt_second_fn)(double beta2, double old, double dbar, double start);

static inline double fedopt_adam(double beta2, double old, double dbar, double start)
{
    return beta2 * old + (1 - beta2) * (dbar * dbar - start);
}

static inline double fedopt_yogi(double beta2, double old, double dbar, double start)
{
    double square = dbar * dbar;
    double above = old + start - square;
    double move = (1 - beta2) * square;

    return above > 0 ? old - move : above < 0 ? old + move : old;
}

static inline double fedopt_adagrad(double beta2, double old, double dbar, double start)
{
    (void)beta2;
    (void)start;
    return old + dbar * dbar;
}

static inline void fedopt_step(const struct options *v, const struct fl_agg_block *block,
                               fedopt_second_fn moment)
{
    double beta1 = v->beta1;
    double beta2 = v->beta2;
    double tau = v->tau;
    double lr = v->common.server_lr;
    bool correct = v->bias_correction;
    double start = correct ? 0 : tau * tau;
    double scale1 = correct ? 1 / (1 - pow(beta1, (double)block->round)) : 1;
    double scale2 = correct ? 1 / (1 - pow(beta2, (double)block->round)) : 1;
    size_t i;

    for (i = 0; i < block->n; i++) {
        double dbar = block->dbar[i];
        double m = beta1 * (double)block->state[FIRST][i] + (1 - beta1) * dbar;
        double u = moment(beta2, (double)block->state[SECOND][i], dbar, start);
        double second = u + start;

        block->state_new[FIRST][i] = (float)m;
        block->state_new[SECOND][i] = (float)u;
        /* The stored state was rounded, so a sum near 0 can be slightly negative. */
        second = second > 0 ? second : 0;
        block->step[i] = lr * scale1 * m / (sqrt(scale2 * second) + tau);
    }
}

static void adam_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    fedopt_step(fl_options_values(o), block, fedopt_adam);
}

static void yogi_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    fedopt_step(fl_options_values(o), block, fedopt_yogi);
}

static void adagrad_step(const struct fl_options *o, const struct fl_agg_block *block)
{
    fedopt_step(fl_options_values(o), block, fedopt_adagrad);
}

static int fedopt_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);

    if (v->beta1 >= 1) {
        return fl_err_set(err, FL_ECONF, "beta1 must be below 1: with 1 the model never moves");
    }
    if (v->bias_correction && v->beta2 >= 1) {
        return fl_err_set(err, FL_ECONF,
                          "bias_correction needs beta2 below 1: it divides by 1 - beta2^t");
    }
    return FL_OK;
}

/* clang-format off */
#define FEDOPT_BETA1(text)                                                                 \
    {FL_OPT(struct options, FLOAT, beta1), .def = (text), .min = 0, .max = 1,              \
     .help = "Share of the mean update's running mean that is kept each round; below 1."}
#define FEDOPT_TAU                                                                         \
    {FL_OPT(struct options, FLOAT, tau), .def = "0.01", .min = 1e-9, .max = 1000,          \
     .help = "Adaptivity: the smaller, the more alike are the steps of all entries."}
#define FEDOPT_SERVER_LR                                                                   \
    {FL_OPT_IN(struct options, FLOAT, common, server_lr), .def = "0.1", .min = 0,          \
     .max = 1000,                                                                          \
     .help = "Factor of the step; no value holds for every task, try 0.01 to 1."}
/* clang-format on */

static const struct fl_opt_spec adam_options[] = {
    FEDOPT_BETA1("0.9"),
    {FL_OPT(struct options, FLOAT, beta2), .def = "0.99", .min = 0, .max = 1,
     .help = "Share of the running mean of its squares that is kept each round."},
    FEDOPT_TAU,
    FEDOPT_SERVER_LR,
    {FL_OPT(struct options, BOOL, bias_correction), .def = "no",
     .help = "Divide both running means by 1 - beta^t, as Adam does on one machine."},
    FL__AGG_WEIGHTS_OPTION(struct options),
    FL_OPT_END_OF(struct options),
};

static const struct fl_opt_spec yogi_options[] = {
    FEDOPT_BETA1("0.9"),
    {FL_OPT(struct options, FLOAT, beta2), .def = "0.99", .min = 0, .max = 1,
     .help = "The second moment moves by 1 - beta2 of the squared mean update each round."},
    FEDOPT_TAU,
    FEDOPT_SERVER_LR,
    FL__AGG_WEIGHTS_OPTION(struct options),
    FL_OPT_END_OF(struct options),
};

static const struct fl_opt_spec adagrad_options[] = {
    FEDOPT_BETA1("0"),
    FEDOPT_TAU,
    FEDOPT_SERVER_LR,
    FL__AGG_WEIGHTS_OPTION(struct options),
    FL_OPT_END_OF(struct options),
};

/* Of each its own, as none goes on with the moments of another. */
static const char *const adam_names[STATES + 1] = {"first_moment", "second_moment", NULL};
static const char *const yogi_names[STATES + 1] = {"yogi_first_moment", "yogi_second_moment", NULL};
static const char *const adagrad_names[STATES + 1] = {"adagrad_first_moment",
                                                      "adagrad_second_moment", NULL};

const struct fl_aggregate_ops fl_aggregate_adam = {
    .policy =
        {
            .name = "fedadam",
            .help = "Adam on the server, fed with the mean of the updates",
            .source = "FedAdam",
            .options = adam_options,
            .check = fedopt_check,
        },
    .n_state = STATES,
    .state_names = adam_names,
    .weights = fl__agg_weights_of,
    .step = adam_step,
};

const struct fl_aggregate_ops fl_aggregate_yogi = {
    .policy =
        {
            .name = "fedyogi",
            .help = "Yogi on the server, fed with the mean of the updates",
            .source = "FedYogi",
            .options = yogi_options,
            .check = fedopt_check,
        },
    .n_state = STATES,
    .state_names = yogi_names,
    .weights = fl__agg_weights_of,
    .step = yogi_step,
};

const struct fl_aggregate_ops fl_aggregate_adagrad = {
    .policy =
        {
            .name = "fedadagrad",
            .help = "Adagrad on the server, fed with the mean of the updates",
            .source = "FedAdagrad",
            .options = adagrad_options,
            .check = fedopt_check,
        },
    .n_state = STATES,
    .state_names = adagrad_names,
    .weights = fl__agg_weights_of,
    .step = adagrad_step,
};
