/*
 * fraction: stepped (AdaFL, section 2.3; docs/formulas.md#fractions)
 *
 *     gamma_t = min(end, start + step * floor((t - 1) / every))
 *
 * The defaults are AdaFL's: 0.1 to 0.5 by 0.1, a step every 200 rounds. Its "Dyn.
 * FedAvg" rows have every = 300. Options: start, end, step, every. State: none.
 */
#include <math.h>

#include "libfl/strategy/selection.h"

static double at(const struct fl_options *o, uint64_t round)
{
    uint64_t every = (uint64_t)fl_options_int(o, "every");
    uint64_t steps = round > 0 ? (round - 1) / every : 0;

    return fmin(fl_options_float(o, "end"),
                fl_options_float(o, "start") + fl_options_float(o, "step") * (double)steps);
}

static int check(const struct fl_options *o, struct fl_err *err)
{
    double start = fl_options_float(o, "start");
    double end = fl_options_float(o, "end");

    if (start > end) {
        return fl_err_set(err, FL_ECONF,
                          "start (%g) is above end (%g): the fraction only grows; for a fixed one "
                          "use the policy 'constant'",
                          start, end);
    }
    return FL_OK;
}

static const struct fl_opt_spec options[] = {
    {.name = "start",
     .type = FL_OPT_FLOAT,
     .def = "0.1",
     .min = 0,
     .max = 1,
     .help = "Share of the clients in the first round."},
    {.name = "end",
     .type = FL_OPT_FLOAT,
     .def = "0.5",
     .min = 0,
     .max = 1,
     .help = "Share that is never passed."},
    {.name = "step",
     .type = FL_OPT_FLOAT,
     .def = "0.1",
     .min = 0,
     .max = 1,
     .help = "What each step adds to the share."},
    {.name = "every",
     .type = FL_OPT_INT,
     .def = "200",
     .min = 1,
     .max = 1e9,
     .help = "Rounds between two steps."},
    FL_OPT_END,
};

const struct fl_fraction_ops fl_fraction_stepped = {
    .policy =
        {
            .name = "stepped",
            .help = "a share of the clients that grows in steps",
            .source = "AdaFL",
            .options = options,
            .check = check,
        },
    .at = at,
};
