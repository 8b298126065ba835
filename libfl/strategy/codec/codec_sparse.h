#ifndef FL_STRATEGY_CODEC_SPARSE_H
#define FL_STRATEGY_CODEC_SPARSE_H

/*
 * What codecs of few entries share (ternary, topk): the largest entries of a unit, and their
 * positions, in rising order, as Rice codes of the gaps between them:
 *
 *     gap g = position - previous position - 1 (previous: -1 at first), as g >> b one-bits, a
 *     zero-bit and the low b bits of g, highest first
 *
 * After each gap come bits of the codec's own. The first bit is in the highest bit of a byte;
 * zero-bits fill the last byte.
 */

#include "libfl/strategy/codec/codec_impl.h"

#define FL__RICE_MAX 36u /* largest b */

/* Which entries of x[n] are kept: the share of the largest; ties are all kept, zeros are not. */
struct fl__sparse_kept {
    uint32_t least; /* smallest magnitude kept, as the bits of a float; above 0 */
    uint64_t count;
    uint64_t end; /* behind the last one */
    float mu;     /* mean magnitude */
};
struct fl__sparse_kept fl__sparse_keep(const float *x, size_t n, double share);
bool fl__sparse_keeps(const struct fl__sparse_kept *kept, float x);

/*
 * The Rice parameter of the gaps, with `own` further bits after each: the better of b0 and b0 + 1,
 * the smaller when equal, b0 the largest b for which 2^b <= .69 mean gap, or 0. `kept` is not
 * empty. `*ret_bits` is the length of all codes.
 */
unsigned fl__sparse_rice(const struct fl__sparse_kept *kept, const float *x, size_t n, unsigned own,
                         uint64_t *ret_bits);

/* Coded bits, read through the decoder's reader from d->offset on. 0 at the start. */
struct fl__sparse_bits {
    uint64_t bits; /* bits read but not used, from the highest bit down; the rest is 0 */
    unsigned n_bits;
    uint32_t used, filled; /* of `bytes` */
    uint8_t bytes[256];
};
/* Read more coded bytes after the unused ones. `*ret_more` is false when there are none. */
FL_MUST_CHECK int fl__sparse_fetch(struct fl_codec_decoder *d, struct fl__sparse_bits *s,
                                   bool *ret_more);
/* The next n bits as a number, n at most 56; FL_EFORMAT past the end. */
FL_MUST_CHECK int fl__sparse_take(struct fl_codec_decoder *d, struct fl__sparse_bits *s, unsigned n,
                                  uint64_t *ret);
/*
 * The position of the next kept entry, at least `from` and below `entries`; FL_EFORMAT past the
 * end and for any other position.
 */
FL_MUST_CHECK int fl__sparse_position(struct fl_codec_decoder *d, struct fl__sparse_bits *s,
                                      unsigned rice, uint64_t from, uint64_t entries,
                                      uint64_t *ret);
/* After the last entry: only the padding of the last byte is left, and it is 0. */
bool fl__sparse_ended(const struct fl__sparse_bits *s);

#endif
