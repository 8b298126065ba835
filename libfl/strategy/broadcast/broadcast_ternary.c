/*
 * broadcast: ternary (docs/algorithms.md#ternary-downloads)
 *
 *     r = rest + step, the largest of each unit are kept as in codec ternary: c of d_l entries with
 *     their signs and one magnitude mu, rounded to a multiple of 2^-20
 *     B' = B +- mu where kept, rest' = r -+ mu; else B' = B, rest' = r
 *
 * Sattler et al., "Robust and communication-efficient federated learning from non-IID data" (2019),
 * algorithm 2, with their download: the server keeps its own residual. A client that missed rounds
 * receives the moves of each of them, as their magnitudes differ. For comparison with a lattice,
 * whose moves are added up.
 *
 * Options: share, history. State: `rest`, one model-sized vector.
 */
#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/broadcast/lattice.h"
#include "libfl/strategy/codec/codec_sparse.h"

struct options {
    struct fl_broadcast_versions versions;
    double share;
};

/* Everything is added to the rest; ternary_move_unit() moves the largest entries. */
static void ternary_rest(const struct fl_options *o, const struct fl_broadcast_block *block)
{
    size_t i;

    (void)o;
    for (i = 0; i < block->n; i++) {
        block->model_new[i] = block->model[i];
        block->rest_new[i] = (float)((double)block->rest[i] + block->step[i]);
    }
}

/* Copy the trainable entries of a unit one after the other. */
static void ternary_pack(const struct fl_layout *layout, size_t l, const float *unit, float *packed)
{
    size_t tensor = 0;
    size_t count;
    bool buffer;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t i;

        for (i = 0; !buffer && i < count; i++) {
            *packed++ = unit[i];
        }
        unit += count;
    }
}

static void ternary_move_kept(const struct fl_layout *layout, size_t l,
                              const struct fl__sparse_kept *kept, double mu, float *model,
                              float *rest)
{
    size_t tensor = 0;
    size_t count;
    bool buffer;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t i;

        for (i = 0; !buffer && i < count; i++) {
            double moved = copysign(mu, (double)rest[i]);

            if (fl__sparse_keeps(kept, rest[i])) {
                model[i] = (float)((double)model[i] + moved);
                rest[i] = (float)((double)rest[i] - moved);
            }
        }
        model += count;
        rest += count;
    }
}

static int ternary_move_unit(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                             float *model, float *rest)
{
    const struct options *v = fl_options_values(o);
    size_t n = fl_layout_unit(layout, l)->n_trainable;
    float *packed = malloc(n * sizeof(*packed) + 1);
    struct fl__sparse_kept kept;
    double mu;

    if (packed == NULL) {
        return FL_ENOMEM;
    }
    ternary_pack(layout, l, rest, packed);
    kept = fl__sparse_keep(packed, n, v->share);
    free(packed);
    /* A magnitude below half of the grid stays in the rest. */
    mu = rint((double)kept.mu / FL_GRID) * FL_GRID;
    if (mu > 0) {
        ternary_move_kept(layout, l, &kept, mu, model, rest);
    }
    return FL_OK;
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, share), .def = "0.01", .min = 0, .max = 1,
     .help = "Share of each unit's entries that move in a round, at least one entry."},
    FL__BROADCAST_HISTORY(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_broadcast_ops fl_broadcast_ternary = {
    .policy =
        {
            .name = "ternary",
            .help = "signs of the entries that moved most, with one magnitude per unit and round",
            .source = "sparse ternary compression (STC), algorithm 2",
            .options = options,
        },
    .codec = &fl_codec_float32,
    .move = ternary_rest,
    .place = fl__lattice_place,
    .sends_moves = true,
    .move_unit = ternary_move_unit,
};
