/*
 * fraction: curve (docs/algorithms.md#fractions)
 *
 *     x = min(1, (t - 1) / (rounds - 1)),  s = x (linear) or (1 - cos(pi x)) / 2 (cosine)
 *     gamma_t = start + (end - start) s
 *
 * from `start` in the first round to `end` in round `rounds`, and from then on. It may grow or
 * shrink. Options: start, end, rounds, shape. State: none.
 */
#include <math.h>

#include "libfl/strategy/selection/selection.h"

enum curve_shape { CURVE_LINEAR, CURVE_COSINE };

struct options {
    double start, end;
    int64_t rounds;
    enum curve_shape shape;
};

static double curve_fraction_at(const struct fl_options *o, uint64_t round)
{
    const struct options *v = fl_options_values(o);
    double x;

    if (round >= (uint64_t)v->rounds) {
        return v->end;
    }
    x = round > 1 ? (double)(round - 1) / (double)(v->rounds - 1) : 0;
    if (v->shape == CURVE_COSINE) {
        x = (1 - cos(3.14159265358979324 * x)) / 2;
    }
    return v->start + (v->end - v->start) * x;
}

static const char *const curve_shapes[] = {
    [CURVE_LINEAR] = "linear", [CURVE_COSINE] = "cosine", NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, start), .def = "0.1", .min = 0, .max = 1,
     .help = "Share of the clients in the first round."},
    {FL_OPT(struct options, FLOAT, end), .def = "0.5", .min = 0, .max = 1,
     .help = "Share of the clients in the last of `rounds`, and from then on."},
    {FL_OPT(struct options, INT, rounds), .def = "100", .min = 1, .max = 1e9,
     .help = "Rounds from start to end."},
    {FL_OPT(struct options, ENUM, shape), .def = "linear", .choices = curve_shapes,
     .help = "By equal steps, or slowly at both ends."},
    FL_OPT_END_OF(struct options),
};

const struct fl_fraction_ops fl_fraction_curve = {
    .policy =
        {
            .name = "curve",
            .help = "a share of the clients that grows or shrinks to another one",
            .source = "ours",
            .options = options,
        },
    .at = curve_fraction_at,
};
