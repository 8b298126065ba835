#ifndef FL_STRATEGY_BITS_H
#define FL_STRATEGY_BITS_H

/* Bits and Rice codes in memory. The first bit is in the highest bit of a byte. */

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libfl/base/err.h"

/* Writes into zeroed memory that the caller has counted. */
struct fl_bit_writer {
    uint8_t *at;
    unsigned used; /* bits of *at */
};

static inline void fl_bits_put(struct fl_bit_writer *w, unsigned bit)
{
    *w->at = (uint8_t)(*w->at | bit << (7 - w->used));
    if (++w->used == 8) {
        w->used = 0;
        w->at++;
    }
}

/* The low n bits of `bits`, highest first; at most 56. */
static inline void fl_bits_put_many(struct fl_bit_writer *w, uint64_t bits, unsigned n)
{
    while (n > 0) {
        unsigned room = 8 - w->used;
        unsigned part = n < room ? n : room;

        *w->at = (uint8_t)(*w->at | (bits >> (n - part) & ((1u << part) - 1)) << (room - part));
        w->used += part;
        n -= part;
        if (w->used == 8) {
            w->used = 0;
            w->at++;
        }
    }
}

/* value >> rice one-bits, a zero-bit, the low `rice` bits, highest first; rice at most 36. */
static inline void fl_bits_put_rice(struct fl_bit_writer *w, uint64_t value, unsigned rice)
{
    uint64_t q = value >> rice;

    for (; q > 16; q -= 16) {
        fl_bits_put_many(w, 0xffff, 16);
    }
    fl_bits_put_many(
        w, (((UINT64_C(1) << q) - 1) << (rice + 1)) | (value & ((UINT64_C(1) << rice) - 1)),
        (unsigned)q + 1 + rice);
}

struct fl_bit_reader {
    const uint8_t *at, *end;
    unsigned used; /* bits of *at */
};

/* FL_EFORMAT: past the end. */
static inline int fl_bits_get(struct fl_bit_reader *r, unsigned *ret)
{
    if (r->at == r->end) {
        return FL_EFORMAT;
    }
    *ret = *r->at >> (7 - r->used) & 1u;
    if (++r->used == 8) {
        r->used = 0;
        r->at++;
    }
    return FL_OK;
}

/* Skip bits that are there. */
static inline void fl_bits_skip(struct fl_bit_reader *r, unsigned n)
{
    r->at += (r->used + n) / 8;
    r->used = (r->used + n) % 8;
}

/* fl_bits_rice() bit by bit. */
static inline int fl_bits_rice_slowly(struct fl_bit_reader *r, unsigned rice, uint64_t most,
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
    uint64_t window;
    unsigned ones;

    if (r->end - r->at < 8) {
        return fl_bits_rice_slowly(r, rice, most, ret);
    }
    (void)memcpy(&window, r->at, sizeof(window));
    window = __builtin_bswap64(window) << r->used;
    /* The bits that were shifted in are 0, so that there is a zero-bit. */
    ones = window == UINT64_MAX ? 64 : (unsigned)__builtin_clzll(~window);
    if (r->used + ones + 1 + rice > 64) {
        return fl_bits_rice_slowly(r, rice, most, ret);
    }
    if (ones > most >> rice) {
        return FL_EFORMAT;
    }
    /* With rice above 0 there are fewer than 64 bits before its own. */
    *ret = (uint64_t)ones << rice | (rice > 0 ? window << (ones + 1) >> (64 - rice) : 0);
    fl_bits_skip(r, ones + 1 + rice);
    return FL_OK;
}

/* Go to the next whole byte; false: a bit before it is not 0. */
static inline bool fl_bits_end(struct fl_bit_reader *r)
{
    unsigned rest = r->used > 0 ? *r->at & (0xffu >> r->used) : 0;

    r->at += r->used > 0;
    r->used = 0;
    return rest == 0;
}

#endif
