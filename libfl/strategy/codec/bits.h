#ifndef FL_STRATEGY_BITS_H
#define FL_STRATEGY_BITS_H

/* Bits and Rice codes in memory. The first bit is in the highest bit of a byte. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libfl/base/err.h"

/* Writes into memory that the caller has counted; the last bits with fl_bits_put_end(). */
struct fl_bit_writer {
    uint8_t *at;
    uint64_t bits; /* the low `used` ones are not written yet */
    unsigned used; /* below 64 */
};

/* The low n bits of `bits`, above which there are only 0, highest first; n is 1 to 63. */
static inline void fl_bits_put(struct fl_bit_writer *w, uint64_t bits, unsigned n)
{
    unsigned room = 64 - w->used;
    uint64_t word;

    if (n < room) {
        w->bits = w->bits << n | bits;
        w->used += n;
        return;
    }
    w->used = n - room;
    word = __builtin_bswap64(w->bits << room | bits >> w->used);
    (void)memcpy(w->at, &word, sizeof(word));
    w->at += sizeof(word);
    w->bits = bits;
}

/* value >> rice one-bits, a zero-bit, the low `rice` bits, highest first; rice at most 36. */
static inline void fl_bits_put_rice(struct fl_bit_writer *w, uint64_t value, unsigned rice)
{
    uint64_t q = value >> rice;

    for (; q > 16; q -= 16) {
        fl_bits_put(w, 0xffff, 16);
    }
    fl_bits_put(w, (((UINT64_C(1) << q) - 1) << (rice + 1)) | (value & ((UINT64_C(1) << rice) - 1)),
                (unsigned)q + 1 + rice);
}

/* Zero-bits fill the last byte. */
static inline void fl_bits_put_end(struct fl_bit_writer *w)
{
    for (; w->used >= 8; w->used -= 8) {
        *w->at++ = (uint8_t)(w->bits >> (w->used - 8));
    }
    if (w->used > 0) {
        *w->at++ = (uint8_t)(w->bits << (8 - w->used));
        w->used = 0;
    }
}

struct fl_bit_reader {
    const uint8_t *at, *end;
    uint64_t window; /* the next bits, from the highest one on: at least `filled` of them */
    unsigned filled; /* up to `at`; below 64 */
};

/* Makes `filled` at least 56 where so many bits are left. */
static inline void fl_bits_fill(struct fl_bit_reader *r)
{
    uint64_t next;

    if (r->end - r->at >= 8) {
        (void)memcpy(&next, r->at, sizeof(next));
        r->window |= __builtin_bswap64(next) >> r->filled;
        r->at += (63 - r->filled) / 8;
        r->filled |= 56;
        return;
    }
    while (r->filled < 56 && r->at < r->end) {
        r->window |= (uint64_t)*r->at++ << (56 - r->filled);
        r->filled += 8;
    }
}

/* Skip n bits of those that are filled. */
static inline void fl_bits_skip(struct fl_bit_reader *r, unsigned n)
{
    r->window <<= n;
    r->filled -= n;
}

/* The one-bits at the front, if a zero-bit follows within the window. */
static inline unsigned fl_bits_ones(const struct fl_bit_reader *r)
{
    return ~r->window == 0 ? 64 : (unsigned)__builtin_clzll(~r->window);
}

/* FL_EFORMAT: past the end. */
static inline int fl_bits_get(struct fl_bit_reader *r, unsigned *ret)
{
    if (r->filled == 0) {
        fl_bits_fill(r);
    }
    if (r->filled == 0) {
        return FL_EFORMAT;
    }
    *ret = (unsigned)(r->window >> 63);
    fl_bits_skip(r, 1);
    return FL_OK;
}

/* fl_bits_rice() of a code that is longer than the window, or is cut off. */
static __attribute__((noinline, unused)) int fl_bits_rice_slowly(struct fl_bit_reader *r,
                                                                 unsigned rice, uint64_t most,
                                                                 uint64_t *ret)
{
    uint64_t q = 0;
    unsigned bit = 1;

    while (bit != 0) {
        if (fl_bits_get(r, &bit) != FL_OK || q > most >> rice) {
            return FL_EFORMAT;
        }
        q += bit;
    }
    while (rice-- > 0) {
        if (fl_bits_get(r, &bit) != FL_OK) {
            return FL_EFORMAT;
        }
        q = q << 1 | bit;
    }
    *ret = q;
    return FL_OK;
}

/*
 * A number as fl_bits_put_rice() writes it, rice at most 30. FL_EFORMAT: past the end, or above
 * `most` by its quotient.
 */
static inline int fl_bits_rice(struct fl_bit_reader *r, unsigned rice, uint64_t most, uint64_t *ret)
{
    unsigned ones;

    fl_bits_fill(r);
    ones = fl_bits_ones(r);
    if (ones + 1 + rice > r->filled) {
        struct fl_bit_reader copy = *r; /* So that *r itself may be in registers. */
        int rv = fl_bits_rice_slowly(&copy, rice, most, ret);

        *r = copy;
        return rv;
    }
    if (ones > most >> rice) {
        return FL_EFORMAT;
    }
    /* Behind the one-bits there are the zero-bit and the low ones. */
    *ret = (uint64_t)ones << rice | r->window << ones >> (63 - rice);
    fl_bits_skip(r, ones + 1 + rice);
    return FL_OK;
}

/* Go to the next whole byte; false: a bit before it is not 0. */
static inline bool fl_bits_end(struct fl_bit_reader *r)
{
    uint64_t rest = r->filled % 8 > 0 ? r->window >> (64 - r->filled % 8) : 0;

    r->at -= r->filled / 8;
    r->window = 0;
    r->filled = 0;
    return rest == 0;
}

#endif
