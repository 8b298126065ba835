#ifndef FL_STRATEGY_MOVES_H
#define FL_STRATEGY_MOVES_H

/*
 * Moves of one unit as bytes: by how much each trainable entry changes, in multiples of 2^-20, most
 * of them 0 (docs/algorithms.md#moves-as-bytes). Numbers are little-endian, positions are counted
 * among the unit's d_l trainable entries:
 *
 *     4 bytes   the step, 1 to 2^25: all moves are multiples of it
 *     4 bytes   number c of entries that moved, 1 to d_l
 *     1 byte    Rice parameter a of the gaps, 0 to 30
 *     1 byte    Rice parameter b of the magnitudes, 0 to 30, or 255: all magnitudes are 1
 *     bits      for each entry that moved, in rising position: the gap g = position - previous
 *               position - 1 (previous: -1 at first) as g >> a one-bits, a zero-bit and the low a
 *               bits of g, highest first; the sign, 1: negative; unless b is 255 the magnitude in
 *               steps, less 1, in the same way with b. First bit in the highest bit of a byte;
 *               zero-bits fill the last byte.
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/base/buf.h"

/* Largest magnitude of a move and of a sum of moves: across the whole range of a lattice. */
#define FL_MOVE_MAX (INT32_C(1) << 25)

/* Sums of moves of the n entries of a unit, in multiples of 2^-20. */
struct fl_moves {
    size_t n;
    int32_t *sums;     /* [n] */
    uint64_t *touched; /* [n / 64 + 1]: entries without bit i % 64 of word i / 64 are 0 */
};

/*
 * Append the moves, or with `back` those back, and set all of them to 0; nothing is appended when
 * they are 0. FL_ENOMEM; FL_ELIMIT: one is above FL_MOVE_MAX. On error the moves are undefined.
 */
FL_MUST_CHECK int fl_moves_encode(struct fl_moves *moves, bool back, struct fl_buf *out);
/*
 * Decode moves from the front of data[len], which a peer sent, and add them; `*ret_used` bytes were
 * read. FL_EFORMAT for bytes that no encoder writes or sums above FL_MOVE_MAX; the moves are
 * undefined then.
 */
FL_MUST_CHECK int fl_moves_decode(const uint8_t *data, size_t len, struct fl_moves *moves,
                                  size_t *ret_used, struct fl_err *err);
/* The step at the front of coded moves; 0: bytes are missing. */
uint32_t fl_moves_step(const uint8_t *data, size_t len);
/* The greatest common divisor; of 0 and b: b. */
uint32_t fl_moves_divisor(uint32_t a, uint32_t b);

#endif
