#ifndef FL_STRATEGY_HASHED_MOVES_H
#define FL_STRATEGY_HASHED_MOVES_H

/*
 * Moves of the numbers of a hashed space (space.h) as bytes, in the place of a list of moves
 * (moves.h): entry i of the unit, counted among its d_l trainable ones, moves by
 * sign(i) step n[bucket(i)] multiples of 2^-20 (bucket.h). Numbers are little-endian:
 *
 *     4 bytes   the step, 1 to 2^25, plus 2^31: the mark of this form
 *     4 bytes   seed of the draw
 *     4 bytes   how many numbers, 1 to d_l
 *     bytes     the numbers n (dense.h)
 *
 * The moves of several rounds with one step and one draw are added up as numbers.
 *
 * Pure functions: no I/O, no globals.
 */

#include "libfl/strategy/broadcast/moves.h"

/* Head of such a list. n 0: a plain list. */
struct fl_hashed_head {
    uint32_t step, seed, n;
};

/* The head at the front of coded moves of d_l entries. FL_EFORMAT. */
FL_MUST_CHECK int fl_hashed_peek(const uint8_t *data, size_t len, size_t entries,
                                 struct fl_hashed_head *ret, struct fl_err *err);
/* Append a list. FL_ENOMEM; FL_ELIMIT: a number is above FL_MOVE_MAX. */
FL_MUST_CHECK int fl_hashed_encode(const struct fl_hashed_head *head, const int32_t *numbers,
                                   struct fl_buf *out);
/*
 * Decode a list with this head, which a peer sent, and add it to sum[head->n]; `scratch` has as
 * many entries. FL_EFORMAT for bytes that no encoder writes or sums above FL_MOVE_MAX.
 */
FL_MUST_CHECK int fl_hashed_decode(const uint8_t *data, size_t len,
                                   const struct fl_hashed_head *head, int32_t *scratch,
                                   int32_t *sum, size_t *ret_used, struct fl_err *err);
/*
 * Add the moves of the `entries` entries of the unit with index `unit` to sum[entries], in
 * multiples of 2^-20. FL_EFORMAT: a sum is above FL_MOVE_MAX.
 */
FL_MUST_CHECK int fl_hashed_expand(const struct fl_hashed_head *head, size_t unit, size_t entries,
                                   const int32_t *numbers, int32_t *sum, struct fl_err *err);

#endif
