#ifndef FL_STRATEGY_GRID_H
#define FL_STRATEGY_GRID_H

/*
 * The grid of models, moves and coded steps: multiples of 2^-20, which float32 holds and adds
 * without rounding below 16 (docs/algorithms.md#lattice).
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/base/err.h"

#define FL_GRID 9.5367431640625e-7 /* 2^-20 */

/*
 * Is `step` a multiple of `multiple` times the grid, 1 or 2? FL_ECONF names the nearest one, and
 * one near it that is short to write; `why` follows the unit, "" when there is nothing to say.
 */
FL_MUST_CHECK int fl_grid_check(double step, int multiple, const char *why, struct fl_err *err);

#endif
