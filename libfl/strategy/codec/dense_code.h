#ifndef FL_STRATEGY_DENSE_CODE_H
#define FL_STRATEGY_DENSE_CODE_H

/*
 * Whole numbers as bytes without positions, close to their entropy where they are distributed like
 * rounded Laplace or normal numbers (docs/algorithms.md#whole-numbers-as-bytes): a binary
 * arithmetic coder whose probabilities adapt. A list has one coded form, which says where it ends.
 *
 *     1 byte    h: 0, the numbers follow as 4 bytes each, two's complement, little-endian; or 1 to
 *               255, the initial probabilities
 *     1 to 5    unless h is 0: number of bytes that follow, LEB128 without needless bytes
 *     the rest  unless h is 0: the arithmetic code, its last byte not 0
 *
 * Pure functions on integers: no I/O, no globals, the same bytes on every machine.
 */

#include "libfl/base/buf.h"

#define FL_DENSE_MAX (INT32_C(1) << 25) /* largest magnitude */

/* Longest coded form of n numbers, in bytes. */
static inline uint64_t fl_dense_max_size(uint64_t n)
{
    return 1 + 4 * n;
}

/*
 * Append the coded form of values[n]. FL_ELIMIT: a magnitude above FL_DENSE_MAX, more numbers than
 * UINT32_MAX, or longer than `out` may become; FL_ENOMEM. On error `out` is unchanged.
 */
FL_MUST_CHECK int fl_dense_encode(const int32_t *values, size_t n, struct fl_buf *out);
/*
 * Decode n numbers from the front of data[len], which a peer sent; `*ret_used` bytes were read.
 * FL_EFORMAT for bytes that no encoder writes; `ret_values` is undefined then. `err` may be NULL.
 */
FL_MUST_CHECK int fl_dense_decode(const uint8_t *data, size_t len, size_t n, int32_t *ret_values,
                                  size_t *ret_used, struct fl_err *err);

/* --- the same piece by piece --- */

/* Copies exactly the next `len` bytes; its errors are those of the functions below. */
struct fl_dense_source {
    int (*read)(void *ctx, uint8_t *out, size_t len);
    void *ctx;
};

/* Adaptive decisions: not 0; the magnitude is above 1, 2, … 20; bits of what exceeds 20. */
#define FL_DENSE_SINGLE   12 /* magnitudes with a probability of their own */
#define FL_DENSE_UNARY    20
#define FL_DENSE_LENGTHS  24
#define FL_DENSE_CONTEXTS (1 + FL_DENSE_SINGLE + 1 + FL_DENSE_LENGTHS)

struct fl_dense_contexts {
    uint32_t none[FL_DENSE_CONTEXTS];   /* probability of the answer no, in 2^-32 */
    uint16_t weight[FL_DENSE_CONTEXTS]; /* divisor of the next change of it */
};

/* What the initial probabilities follow from. */
struct fl_dense_sums {
    uint64_t n, nonzero;
    uint64_t sizes; /* sum of all magnitudes, each counted as at most FL_DENSE_UNARY + 1 */
};

/* Holds no resources: may be copied, and dropped at any time. At most 400 bytes. */
struct fl_dense_decoder {
    uint64_t size;   /* bytes of the whole coded form, valid after fl_dense_start() */
    uint64_t unread; /* bytes of it that were not read from the source yet */
    struct fl_dense_sums sums;
    uint32_t range, code;
    int rv; /* first error of the source */
    uint8_t h;
    uint8_t past; /* bytes used after the last one, all 0; stops at 3 */
    uint8_t at, filled;
    uint8_t window[80];
    struct fl_dense_contexts contexts;
};

/* Read the head; the coded form is at most `most` bytes and `n` numbers long. */
FL_MUST_CHECK int fl_dense_start(struct fl_dense_decoder *d, const struct fl_dense_source *source,
                                 uint64_t most, uint64_t n, struct fl_err *err);
/* Decode the next `n` numbers; all calls together must read no more than there are. */
FL_MUST_CHECK int fl_dense_next(struct fl_dense_decoder *d, const struct fl_dense_source *source,
                                int32_t *out, size_t n, struct fl_err *err);
/* After the last number: FL_EFORMAT for an end that no encoder writes. */
FL_MUST_CHECK int fl_dense_end(const struct fl_dense_decoder *d, struct fl_err *err);

#endif
