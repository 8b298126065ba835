/*
 * The largest entries of a unit and their positions in Rice code (codec_sparse.h): choosing and
 * reading. Pure functions on the caller's thread; a reader trusts no input, never reads past the
 * coded unit and allocates nothing.
 */
#include "libfl/strategy/codec/codec_sparse.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* The magnitude as an integer: finite floats are ordered as their bits. */
static uint32_t sparse_magnitude(float x)
{
    return fl__float_bits(x) & 0x7fffffffu;
}

/* The c-th largest magnitude, 1 <= c <= n: a radix search, one byte per pass from the highest. */
static uint32_t sparse_nth_largest(const float *x, size_t n, size_t c)
{
    uint32_t prefix = 0;
    uint32_t mask = 0;
    unsigned shift = 32;

    while (shift > 0) {
        size_t histogram[256] = {0};
        uint32_t bin = 255;
        size_t i;

        shift -= 8;
        for (i = 0; i < n; i++) {
            uint32_t bits = sparse_magnitude(x[i]);

            if ((bits & mask) == prefix) {
                histogram[bits >> shift & 0xff]++;
            }
        }
        while (histogram[bin] < c) {
            c -= histogram[bin];
            bin--;
        }
        prefix |= bin << shift;
        mask |= UINT32_C(0xff) << shift;
    }
    return prefix;
}

bool fl__sparse_keeps(const struct fl__sparse_kept *kept, float x)
{
    return sparse_magnitude(x) >= kept->least;
}

struct fl__sparse_kept fl__sparse_keep(const float *x, size_t n, double share)
{
    /* A decimal share is inexact in binary: 0.07 of 100 is 7 entries, not 8. */
    double wanted = ceil(share * (double)n * (1 - 1e-12));
    size_t c = wanted < 1 ? 1 : wanted < (double)n ? (size_t)wanted : n;
    struct fl__sparse_kept kept = {.least = 1};
    double sum = 0;
    double mean;
    size_t i;

    if (n > 0) {
        uint32_t tau = sparse_nth_largest(x, n, c);

        kept.least = tau > 0 ? tau : 1;
    }
    for (i = 0; i < n; i++) {
        if (fl__sparse_keeps(&kept, x[i])) {
            sum += (double)fabsf(x[i]);
            kept.count++;
            kept.end = i + 1;
        }
    }
    if (kept.count > 0) {
        mean = sum / (double)kept.count;
        kept.mu = mean < (double)FLT_MAX ? (float)mean : FLT_MAX;
    }
    return kept;
}

/* Bits of all gaps and what follows them with the parameters b and b + 1. */
static void sparse_count_bits(const struct fl__sparse_kept *kept, const float *x, size_t n,
                              unsigned b, unsigned own, uint64_t ret[2])
{
    uint64_t gap = 0;
    size_t i;

    ret[0] = kept->count * (b + 1 + own);
    ret[1] = kept->count * (b + 2 + own);
    for (i = 0; i < n; i++) {
        if (!fl__sparse_keeps(kept, x[i])) {
            gap++;
            continue;
        }
        ret[0] += gap >> b;
        ret[1] += gap >> (b + 1);
        gap = 0;
    }
}

unsigned fl__sparse_rice(const struct fl__sparse_kept *kept, const float *x, size_t n, unsigned own,
                         uint64_t *ret_bits)
{
    uint64_t gaps = kept->end - kept->count; /* sum of all */
    uint64_t bits[2];
    unsigned b = 0;

    while (b + 1 < FL__RICE_MAX && (100 * kept->count) << (b + 1) <= 69 * gaps) {
        b++;
    }
    sparse_count_bits(kept, x, n, b, own, bits);
    *ret_bits = bits[1] < bits[0] ? bits[1] : bits[0];
    return bits[1] < bits[0] ? b + 1 : b;
}

/* --- reading --- */

int fl__sparse_fetch(struct fl_codec_decoder *d, struct fl__sparse_bits *s, bool *ret_more)
{
    uint64_t left = fl__codec_body_end(d) - d->offset;
    uint32_t kept = s->filled - s->used;
    size_t room = sizeof(s->bytes) - kept;
    size_t n = left < room ? (size_t)left : room;
    int rv;

    (void)memmove(s->bytes, s->bytes + s->used, kept);
    rv = n > 0 ? fl__codec_bytes(d, d->offset, s->bytes + kept, n) : FL_OK;
    if (rv != FL_OK) {
        return rv;
    }
    d->offset += n;
    s->used = 0;
    s->filled = kept + (uint32_t)n;
    *ret_more = n > 0;
    return FL_OK;
}

/* Fill the bit buffer: at least 57 bits, or all that are left. */
static int sparse_refill_bits(struct fl_codec_decoder *d, struct fl__sparse_bits *s)
{
    bool more = true;

    while (more && s->n_bits <= 56) {
        int rv;

        if (s->used < s->filled) {
            s->bits |= (uint64_t)s->bytes[s->used++] << (56 - s->n_bits);
            s->n_bits += 8;
            continue;
        }
        rv = fl__sparse_fetch(d, s, &more);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}

static void sparse_drop_bits(struct fl__sparse_bits *s, unsigned n)
{
    s->bits = n < 64 ? s->bits << n : 0;
    s->n_bits -= n;
}

/* Read one-bits up to a zero-bit; FL_EFORMAT above `limit`, so that nothing overflows. */
static int sparse_take_unary(struct fl_codec_decoder *d, struct fl__sparse_bits *s, uint64_t limit,
                             uint64_t *ret)
{
    uint64_t q = 0;

    for (;;) {
        unsigned ones;
        int rv = sparse_refill_bits(d, s);

        if (rv != FL_OK) {
            return rv;
        }
        ones = s->bits == UINT64_MAX ? 64 : (unsigned)__builtin_clzll(~s->bits);
        q += ones;
        if (s->n_bits == 0 || q > limit) {
            return FL_EFORMAT;
        }
        sparse_drop_bits(s, ones);
        if (s->n_bits > 0) {
            sparse_drop_bits(s, 1);
            *ret = q;
            return FL_OK;
        }
    }
}

int fl__sparse_take(struct fl_codec_decoder *d, struct fl__sparse_bits *s, unsigned n,
                    uint64_t *ret)
{
    int rv = sparse_refill_bits(d, s);

    if (rv != FL_OK) {
        return rv;
    }
    if (s->n_bits < n) {
        return FL_EFORMAT;
    }
    *ret = n > 0 ? s->bits >> (64 - n) : 0;
    sparse_drop_bits(s, n);
    return FL_OK;
}

int fl__sparse_position(struct fl_codec_decoder *d, struct fl__sparse_bits *s, unsigned rice,
                        uint64_t from, uint64_t entries, uint64_t *ret)
{
    uint64_t q;
    uint64_t low;
    int rv = sparse_take_unary(d, s, (entries - from) >> rice, &q);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__sparse_take(d, s, rice, &low);
    if (rv != FL_OK) {
        return rv;
    }
    *ret = from + (q << rice | low);
    return *ret < entries ? FL_OK : FL_EFORMAT;
}

bool fl__sparse_ended(const struct fl__sparse_bits *s)
{
    return s->used == s->filled && s->n_bits <= 7 && s->bits == 0;
}
