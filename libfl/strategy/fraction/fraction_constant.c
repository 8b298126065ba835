/*
 * fraction: constant
 *
 * gamma_t = gamma. Options: fraction. State: none. Cost: none.
 */
#include <math.h>

#include "libfl/strategy/selection/selection.h"

struct options {
    double fraction;
};

size_t fl_fraction_count(double gamma, size_t n_clients)
{
    /* Rounded, not truncated: 0.29 * 100 is slightly below 29 in binary. */
    long long k = llround(gamma * (double)n_clients);

    return k < 1 ? 1 : (size_t)k;
}

static double constant_fraction_at(const struct fl_options *o, uint64_t round)
{
    const struct options *v = fl_options_values(o);
    (void)round;
    return v->fraction;
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, fraction), .def = "1", .min = 0, .max = 1,
     .help = "Share of all clients that is selected each round; at least one client is."},
    FL_OPT_END_OF(struct options),
};

const struct fl_fraction_ops fl_fraction_constant = {
    .policy =
        {
            .name = "constant",
            .help = "the same share of the clients every round",
            .source = "FedAvg",
            .options = options,
        },
    .at = constant_fraction_at,
};
