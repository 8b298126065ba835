/*
 * broadcast: lattice (docs/algorithms.md#lattice)
 *
 *     q  = (rest + step) / s,  n = sign(q) floor(|q| + 1 - h) where |q| >= h, else 0
 *     B' = B + s n,            rest' = rest + step - s n
 *
 * An entry moves by whole steps s, when it is h of them away; h above 1/2 keeps it from moving back
 * and forth. s is a multiple of 2^-20, and so is every entry of B (lattice.h). The n of a round are
 * few, small and exact: clients receive their sums (moves.h, versions.h).
 *
 * step auto: s = 4 sigma, sigma = 1 / sqrt(3 fan_in) being the deviation of the first weights of
 * the built-in networks (libfl/nn/net.h) in the largest tensor, rounded to 4 significant bits.
 *
 * Options: step, threshold, halve_at, history. State: `rest`, one model-sized vector. Cost: 0.01 to
 * 0.1 bytes per entry of a download.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/strategy/broadcast/lattice.h"

struct options {
    struct fl_broadcast_versions versions;
    const char *step;
    double threshold;
    const char *halve_at;
};

#define LATTICE_HASHED      0.375
#define LATTICE_MOST_ROUNDS INT64_C(1000000000)

static bool lattice_waits_for_plateau(const struct options *v)
{
    return strcmp(v->halve_at, "plateau") == 0;
}

/* The round of `halve_at`; 0: none is named. */
static uint64_t lattice_halve_at(const struct options *v)
{
    int64_t round = 0;

    return fl_str_to_i64(v->halve_at, &round) == FL_OK ? (uint64_t)round : 0;
}

static bool lattice_halves(const struct options *v)
{
    return lattice_waits_for_plateau(v) || lattice_halve_at(v) > 0;
}

void fl__lattice_place(const struct fl_options *o, float *model, size_t n)
{
    size_t i;

    (void)o;
    for (i = 0; i < n; i++) {
        /* + 0.0 makes +0 of -0: clients add 0 to entries that do not move, which does the same. */
        model[i] = (float)(rint((double)model[i] / FL_GRID) * FL_GRID + 0.0);
    }
}

static void lattice_move(const struct fl_options *o, const struct fl_broadcast_block *block)
{
    const struct options *v = fl_options_values(o);
    const double s = block->grid * FL_GRID;
    const double h = v->threshold;
    size_t i;

    for (i = 0; i < block->n; i++) {
        double away = (double)block->rest[i] + block->step[i];
        double q = fabs(away) / s;
        double moved = q < h ? 0 : copysign(floor(q + 1 - h) * s, away);

        block->model_new[i] = (float)((double)block->model[i] + moved);
        block->rest_new[i] = (float)(away - moved);
    }
}

static const struct fl_tensor *lattice_largest(const struct fl_layout *layout)
{
    const struct fl_tensor *largest = NULL;
    size_t i;

    for (i = 0; i < fl_layout_tensors(layout); i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, i);

        if (fl_tensor_counts(t) && (largest == NULL || t->count > largest->count)) {
            largest = t;
        }
    }
    return largest;
}

/*
 * 4 / sqrt(3 f), f: entries that an output of the largest tensor is computed from. In a hashed
 * space entries of that tensor move by LATTICE_HASHED of it. Rounded to 4 significant bits: whole
 * steps of 2^-20, at least 16 of them so that they can be halved.
 */
static uint32_t lattice_auto(const struct fl_broadcast_round *round)
{
    const struct fl_tensor *t = lattice_largest(round->layout);
    size_t fan_in = t == NULL || t->n_dims < 2 ? 1 : t->count / t->dims[0];
    double m = 4 / sqrt(3 * (double)fan_in) / FL_GRID;
    double mantissa;
    int exponent;

    if (round->space != NULL && t != NULL) {
        m *= LATTICE_HASHED / fl_space_scale(round->space, t->unit);
    }
    mantissa = frexp(m, &exponent);
    m = ldexp(rint(mantissa * 16), exponent - 4);
    return m < 16 ? 16 : m * FL_GRID < 1 ? (uint32_t)m : (uint32_t)(1 / FL_GRID);
}

static uint32_t lattice_grid(const struct fl_options *o, const struct fl_broadcast_round *round)
{
    const struct options *v = fl_options_values(o);
    bool waits = lattice_waits_for_plateau(v);
    uint64_t first = waits ? round->plateau + 1 : lattice_halve_at(v);
    bool half = waits ? round->plateau > 0 : first > 0;
    double step = 0;
    uint32_t m;

    if (strcmp(v->step, "auto") == 0) {
        m = lattice_auto(round);
    } else {
        FL_REQUIRE(fl_str_to_double(v->step, &step) == FL_OK); /* lattice_check() */
        m = (uint32_t)(step / FL_GRID);
    }
    return half && round->round >= first ? m / 2 : m;
}

static int lattice_check(const struct fl_options *o, struct fl_err *err)
{
    const struct options *v = fl_options_values(o);
    const int multiple = lattice_halves(v) ? 2 : 1;
    double step = 0;
    int64_t round;

    if (!lattice_waits_for_plateau(v) &&
        (fl_str_to_i64(v->halve_at, &round) != FL_OK || round < 0 || round > LATTICE_MOST_ROUNDS))
    {
        return fl_err_set(err, FL_ECONF,
                          "'halve_at': expected 'plateau' or a round from 0 to 1000000000, found "
                          "'%s'",
                          v->halve_at);
    }
    if (strcmp(v->step, "auto") == 0) {
        return FL_OK;
    }
    if (fl_str_to_double(v->step, &step) != FL_OK || !(step >= multiple * FL_GRID && step <= 1)) {
        return fl_err_set(err, FL_ECONF,
                          "'step': expected 'auto' or a number from 2^-%d to 1, found '%s'",
                          multiple == 2 ? 19 : 20, v->step);
    }
    return fl_grid_check(step, multiple, multiple == 2 ? ", which 'halve_at' needs" : "", err);
}

/* The step of a round that has ended cannot change any more. */
static int lattice_check_change(const struct fl_options *o, const char *before, uint64_t committed,
                                struct fl_err *err)
{
    uint64_t round = lattice_halve_at(fl_options_values(o));
    char same[64];

    (void)snprintf(same, sizeof(same), " halve_at=%" PRIu64 " ", round);
    if (round == 0 || round > committed || strstr(before, same) != NULL) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ECONF,
                      "round %" PRIu64 " has ended, round %" PRIu64
                      " is committed; choose a later round, or half the step",
                      round, committed);
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, STRING, step), .def = "auto",
     .help = "By how much an entry of the model moves: a multiple of 2^-20, such as 0.078125, or "
             "'auto': four standard deviations of the first weights in the largest tensor, or in a "
             "hashed space what moves its entries by three eighths of that."},
    {FL_OPT(struct options, FLOAT, threshold), .def = "0.6", .min = 0.5, .max = 2,
     .help = "An entry moves when it is this many steps away."},
    {FL_OPT(struct options, STRING, halve_at), .def = "0",
     .help = "The round from which on the step is half as long, or 'plateau': once the training "
             "loss has not fallen for 20 rounds; 0: never."},
    FL__BROADCAST_HISTORY(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_broadcast_ops fl_broadcast_lattice = {
    .policy =
        {
            .name = "lattice",
            .help = "whole steps of the entries that moved since the model that a client holds",
            .source = "ours",
            .options = options,
            .check = lattice_check,
        },
    .codec = &fl_codec_float32,
    .move = lattice_move,
    .place = fl__lattice_place,
    .sends_moves = true,
    .grid = lattice_grid,
    .check_change = lattice_check_change,
};
