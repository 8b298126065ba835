#ifndef FL_BASE_RNG_H
#define FL_BASE_RNG_H

/*
 * Seeded random streams. A stream is keyed by (master seed, purpose, round,
 * client), so that a result never depends on thread or arrival order
 * (docs/algorithms.md#random-streams). The generator is xoshiro256** seeded through splitmix64;
 * its output is the same on every machine. Not for secrets.
 *
 * Threading: a struct fl_rng belongs to one thread.
 */

#include <stddef.h>
#include <stdint.h>

enum fl_rng_purpose {
    FL_RNG_SELECT = 1, /* client selection */
    FL_RNG_PLAN,       /* random upload plans */
    FL_RNG_INIT,       /* initial model */
    FL_RNG_BATCH,      /* order of samples on a client */
    FL_RNG_DROPOUT,
    FL_RNG_PARTITION, /* splitting data */
    FL_RNG_JITTER,    /* back-off */
    FL_RNG_SOLVER,    /* draws of a client solver */
    FL_RNG_TEST,
    FL_RNG_AUGMENT, /* changes of training samples */
    FL_RNG_WORLD,   /* properties of simulated clients */
    FL_RNG_CODEC,   /* rounding of updates */
    FL_RNG_BUCKETS, /* permutation before a robust rule */
    FL_RNG_ATTACK,  /* simulated attackers */
    FL_RNG_ROOT,    /* root data set of a server, and its training */
    FL_RNG_PROGRAM  /* draws of a program that aggregates */
};

struct fl_rng {
    uint64_t s[4];
};

/* The output function of splitmix64 (Steele et al. 2014): every bit of x changes half of the bits.
 */
static inline uint64_t fl_rng_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

void fl_rng_seed(struct fl_rng *rng, uint64_t seed);
void fl_rng_key(struct fl_rng *rng, uint64_t master, enum fl_rng_purpose purpose, uint64_t round,
                uint64_t client);
uint64_t fl_rng_u64(struct fl_rng *rng);
/* Uniform in [0, n), without modulo bias; n > 0. */
uint64_t fl_rng_below(struct fl_rng *rng, uint64_t n);
/* Uniform in the open interval (0, 1). */
double fl_rng_unit(struct fl_rng *rng);
/* Standard normal (Marsaglia's polar method, second value discarded). */
double fl_rng_normal(struct fl_rng *rng);
/* Fisher-Yates over `n` items. */
void fl_rng_shuffle(struct fl_rng *rng, uint32_t *items, size_t n);

/* A 64-bit hash of bytes, the same everywhere: the client part of a key. */
uint64_t fl_hash64(const void *data, size_t len);

#endif
