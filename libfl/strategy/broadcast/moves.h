#ifndef FL_STRATEGY_MOVES_H
#define FL_STRATEGY_MOVES_H

/*
 * The moves of one unit as bytes: for each trainable entry a whole number of steps, most of them 0
 * (docs/algorithms.md#moves-as-bytes). Numbers are little-endian, positions are counted among the
 * unit's d_l trainable entries:
 *
 *     4 bytes   number c of entries that moved, at most d_l; 0 ends the unit
 *     1 byte    Rice parameter a of the gaps, 0 to 30
 *     1 byte    Rice parameter b of the magnitudes, 0 to 30, or 255: all magnitudes are 1
 *     bits      for each entry that moved, in rising position: the gap g = position - previous
 *               position - 1 (previous: -1 at first) as g >> a one-bits, a zero-bit and the low a
 *               bits of g, highest first; the sign, 1: negative; unless b is 255 the magnitude less
 * 1 in the same way with b. First bit in the highest bit of a byte; zero-bits fill the last byte.
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/base/buf.h"

/* Largest magnitude of a move: across the whole range of a lattice in steps of its grid. */
#define FL_MOVE_MAX (INT32_C(1) << 25)

/* Append the moves[n] of a unit, each at most FL_MOVE_MAX in magnitude. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_moves_encode(const int32_t *moves, size_t n, struct fl_buf *out);
/*
 * Decode the moves of a unit from the front of data[len], which a peer sent, and add them `scale`
 * times to sum[n]; `*ret_used` bytes were read. FL_EFORMAT for bytes that no encoder writes or sums
 * above FL_MOVE_MAX; `sum` is undefined then.
 */
FL_MUST_CHECK int fl_moves_decode(const uint8_t *data, size_t len, size_t n, int32_t scale,
                                  int32_t *sum, size_t *ret_used, struct fl_err *err);

#endif
