#ifndef FL_STRATEGY_DENSE_CODE_IMPL_H
#define FL_STRATEGY_DENSE_CODE_IMPL_H

/* The probabilities of dense coding, which the encoder and the decoder share (dense_encode.c). */

#include <stdbool.h>

#include "libfl/strategy/codec/dense_code.h"

/* Initial and largest weight: a new probability counts as 16 answers, an old one as 512. */
#define FL__DENSE_NEW 16
#define FL__DENSE_OLD 512

#define FL__DENSE_TOP    (UINT32_C(1) << 24) /* the range is never below it */
#define FL__DENSE_LENGTH 5                   /* bytes of LEB128 */

static inline uint32_t fl__dense_magnitude(int32_t value)
{
    return value < 0 ? 0 - (uint32_t)value : (uint32_t)value;
}

static inline void fl__dense_sums_add(struct fl_dense_sums *s, uint32_t size)
{
    s->n++;
    s->nonzero += size > 0;
    s->sizes += size <= FL_DENSE_UNARY ? size : FL_DENSE_UNARY + 1;
}

/*
 * Rounded Laplace numbers are not 0 with a probability p, and above k with p^2 where they are above
 * k - 1. The likelihood is p^a (1 - p)^(n - c) (1 - p^2)^c with a = 2 sizes - c, largest where
 * (a + n + c) p^2 + (n - c) p = a. The largest h / 256 up to that p.
 */
static inline uint8_t fl__dense_sums_choose(const struct fl_dense_sums *s)
{
    uint64_t a = 2 * s->sizes - s->nonzero;
    unsigned h = 0;
    unsigned bit;

    for (bit = 128; bit > 0; bit >>= 1) {
        uint64_t t = h + bit;

        if ((a + s->n + s->nonzero) * t * t + (s->n - s->nonzero) * 256 * t <= a * 65536) {
            h += bit;
        }
    }
    return h > 0 ? (uint8_t)h : 1;
}

static inline void fl__dense_contexts_init(struct fl_dense_contexts *c, uint32_t h)
{
    size_t i;

    for (i = 0; i < FL_DENSE_CONTEXTS; i++) {
        c->none[i] = i == 0                     ? (256 - h) << 24
                     : i <= FL_DENSE_SINGLE + 1 ? (65536 - h * h) << 16
                                                : UINT32_C(1) << 31;
        c->weight[i] = FL__DENSE_NEW;
    }
}

/* Adapt: 511 is the least change that a weight of 512 rounds to 0, so that none becomes 0 or 1. */
static inline void fl__dense_contexts_adapt(struct fl_dense_contexts *c, size_t i, bool yes)
{
    uint32_t none = c->none[i];
    uint32_t far = yes ? none : UINT32_MAX - none;
    uint32_t change = far / FL__DENSE_OLD;

    if (c->weight[i] < FL__DENSE_OLD) {
        change = far / c->weight[i]++;
    }
    c->none[i] = yes ? none - change : none + change;
}

/* The question whether a magnitude is above k, k at least 1. */
static inline size_t fl__dense_context_above(uint32_t k)
{
    return k <= FL_DENSE_SINGLE ? k : FL_DENSE_SINGLE + 1;
}

/* The question whether the rest has more bits than k + 1. */
static inline size_t fl__dense_context_length(uint32_t k)
{
    return FL_DENSE_SINGLE + 2 + k;
}

#endif
