#ifndef FL_STRATEGY_LATTICE_H
#define FL_STRATEGY_LATTICE_H

/*
 * The numbers of a model that clients hold on a lattice (docs/algorithms.md#lattice): multiples of
 * 2^-20 below 16 in magnitude. float32 holds and adds them without rounding, so that a model is the
 * same bit for bit however the moves to it are added up.
 *
 * Pure functions: no I/O, no globals.
 */

#include <stdint.h>

#define FL_LATTICE_GRID  9.5367431640625e-7 /* 2^-20 */
#define FL_LATTICE_RANGE 16.0

#endif
