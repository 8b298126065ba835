#ifndef FL_STRATEGY_LATTICE_H
#define FL_STRATEGY_LATTICE_H

/*
 * The numbers of a model that clients hold on a lattice (docs/algorithms.md#lattice): multiples of
 * 2^-20 below 16 in magnitude. float32 holds and adds them without rounding, so that a model is the
 * same bit for bit however the moves to it are added up.
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/strategy/broadcast/broadcast.h"
#include "libfl/strategy/grid.h"

#define FL_LATTICE_RANGE 16.0

/* fl_broadcast_ops.place() of the broadcasts that send moves. */
void fl__lattice_place(const struct fl_options *o, float *model, size_t n);
/* Their option row `history`. */
/* clang-format off */
#define FL__BROADCAST_HISTORY(S)                                                                   \
    {FL_OPT_IN(S, INT, versions, history), .def = "1000", .min = 1, .max = 100000,                  \
     .help = "For how many rounds back the server keeps what changed. A client that holds an older " \
             "model downloads a whole one, unless it is the first model."}
/* clang-format on */

#endif
