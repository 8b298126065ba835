#ifndef FL_STRATEGY_BITS_H
#define FL_STRATEGY_BITS_H

/* Bits and Rice codes in memory. The first bit is in the highest bit of a byte. */

#include <stdbool.h>
#include <stdint.h>

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

/* value >> rice one-bits, a zero-bit, the low `rice` bits, highest first. */
static inline void fl_bits_put_rice(struct fl_bit_writer *w, uint64_t value, unsigned rice)
{
    uint64_t q;

    for (q = value >> rice; q > 0; q--) {
        fl_bits_put(w, 1);
    }
    fl_bits_put(w, 0);
    while (rice-- > 0) {
        fl_bits_put(w, value >> rice & 1);
    }
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

/* FL_EFORMAT: past the end, or the value is above `most` by its quotient. */
static inline int fl_bits_rice(struct fl_bit_reader *r, unsigned rice, uint64_t most, uint64_t *ret)
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

/* Go to the next whole byte; false: a bit before it is not 0. */
static inline bool fl_bits_end(struct fl_bit_reader *r)
{
    unsigned rest = r->used > 0 ? *r->at & (0xffu >> r->used) : 0;

    r->at += r->used > 0;
    r->used = 0;
    return rest == 0;
}

#endif
