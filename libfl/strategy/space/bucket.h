#ifndef FL_STRATEGY_BUCKET_H
#define FL_STRATEGY_BUCKET_H

/*
 * A signed hash of the trainable entries of a unit to fewer numbers
 * (docs/algorithms.md#hashed-spaces): entry i belongs to one of n numbers, its bucket, with a sign.
 * All clients and the server compute it from the seed of a draw, as do clients in other languages:
 *
 *     key    = mix(seed + 2^32 (unit + 1))
 *     x      = mix(key + (i + 1) 0x9e3779b97f4a7c15)        64 bits, modulo 2^64
 *     bucket = (x >> 32) n >> 32;  sign: -1 when the lowest bit of x is 1
 *
 * with mix() of splitmix64. A unit with as many numbers as entries is not hashed: bucket i, sign 1.
 *
 * Pure functions: no I/O, no globals.
 */

#include <stdbool.h>

#include "libfl/base/rng.h"

struct fl_buckets {
    uint64_t key;
    uint32_t n;
    bool hashed;
};

/* Of the unit with index `unit`, `entries` trainable entries and n of at most as many numbers. */
static inline struct fl_buckets fl_buckets_of(uint32_t seed, size_t unit, size_t entries,
                                              uint32_t n)
{
    return (struct fl_buckets){fl_rng_mix(seed + ((uint64_t)unit + 1) * (UINT64_C(1) << 32)), n,
                               n < entries};
}

/* The bucket of entry i; `*ret_negative`: its sign is -1. */
static inline uint32_t fl_bucket(const struct fl_buckets *b, size_t i, bool *ret_negative)
{
    uint64_t x;

    if (!b->hashed) {
        *ret_negative = false;
        return (uint32_t)i;
    }
    x = fl_rng_mix(b->key + ((uint64_t)i + 1) * UINT64_C(0x9e3779b97f4a7c15));
    *ret_negative = (x & 1) != 0;
    return (uint32_t)((x >> 32) * b->n >> 32);
}

#endif
