/*
 * fraction: stepped (AdaFL, section 2.3; docs/algorithms.md#fractions)
 *
 *     gamma_t = min(end, start + step * floor((t - 1) / every))
 *
 * The defaults are AdaFL's: 0.1 to 0.5 by 0.1, a step every 200 rounds. Its "Dyn.
 * FedAvg" rows have every = 300. Options: start, end, step, every. State: none.
 */
#include <math.h>

#include "libfl/strategy/selection/selection.h"

struct options {
    double start, end, step;
    int64_t every;
};

static double stepped_fraction_at(const struct fl_options *o, uint64_t round)
{
    const struct options *v = fl_options_values(o);
    uint64_t every = (uint64_t)v->every;
    uint64_t steps = round > 0 ? (round - 1) / every : 0;

    return fmin(v->end, v->start + v->step * (double)steps);
}

static int stepped_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    double start = v->start;
    double end = v->end;

    if (start > end) {
        return fl_err_set(err, FL_ECONF,
                          "start (%g) is above end (%g): the fraction only grows; for a fixed one "
                          "use the policy 'constant'",
                          start, end);
    }
    return FL_OK;
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, start), .def = "0.1", .min = 0, .max = 1,
     .help = "Share of the clients in the first round."},
    {FL_OPT(struct options, FLOAT, end), .def = "0.5", .min = 0, .max = 1,
     .help = "Largest share of the clients."},
    {FL_OPT(struct options, FLOAT, step), .def = "0.1", .min = 0, .max = 1,
     .help = "Increase of the share per step."},
    {FL_OPT(struct options, INT, every), .def = "200", .min = 1, .max = 1e9,
     .help = "Rounds between two steps."},
    FL_OPT_END_OF(struct options),
};

const struct fl_fraction_ops fl_fraction_stepped = {
    .policy =
        {
            .name = "stepped",
            .help = "a share of the clients that grows in steps",
            .source = "AdaFL",
            .options = options,
            .check = stepped_check,
        },
    .at = stepped_fraction_at,
};
