#include "libfl/data/numpy_rng.h"

#include <math.h>

#include "libfl/base/err.h"

#define WORDS FL_NUMPY_RNG_WORDS
#define SHIFT 397

void fl_numpy_rng_seed(struct fl_numpy_rng *rng, uint32_t seed)
{
    unsigned i;

    rng->state[0] = seed;
    for (i = 1; i < WORDS; i++) {
        uint32_t before = rng->state[i - 1];

        rng->state[i] = 1812433253u * (before ^ before >> 30) + i;
    }
    rng->next = WORDS;
    rng->has_spare = false;
    rng->spare = 0.0;
}

/* The recurrence of MT19937, for all words. */
static void mt19937_twist(uint32_t *s)
{
    unsigned i;

    for (i = 0; i < WORDS; i++) {
        uint32_t joined = (s[i] & 0x80000000u) | (s[(i + 1) % WORDS] & 0x7fffffffu);

        s[i] = s[(i + SHIFT) % WORDS] ^ joined >> 1 ^ ((joined & 1) != 0 ? 0x9908b0dfu : 0);
    }
}

uint32_t fl_numpy_rng_u32(struct fl_numpy_rng *rng)
{
    uint32_t x;

    if (rng->next == WORDS) {
        mt19937_twist(rng->state);
        rng->next = 0;
    }
    x = rng->state[rng->next++];
    x ^= x >> 11;
    x ^= x << 7 & 0x9d2c5680u;
    x ^= x << 15 & 0xefc60000u;
    return x ^ x >> 18;
}

double fl_numpy_rng_unit(struct fl_numpy_rng *rng)
{
    uint32_t high = fl_numpy_rng_u32(rng) >> 5; /* 27 bits */
    uint32_t low = fl_numpy_rng_u32(rng) >> 6;  /* 26 bits */

    return ((double)high * 0x1p26 + (double)low) / 0x1p53;
}

/* Rejection sampling with as many bits as n - 1 has, as in numpy. */
uint32_t fl_numpy_rng_below(struct fl_numpy_rng *rng, uint32_t n)
{
    uint32_t mask = n - 1;
    uint32_t x;

    FL_REQUIRE(n > 0);
    if (n == 1) {
        return 0;
    }
    mask |= mask >> 1;
    mask |= mask >> 2;
    mask |= mask >> 4;
    mask |= mask >> 8;
    mask |= mask >> 16;
    do {
        x = fl_numpy_rng_u32(rng) & mask;
    } while (x >= n);
    return x;
}

double fl_numpy_rng_normal(struct fl_numpy_rng *rng)
{
    double u;
    double v;
    double q;
    double f;

    if (rng->has_spare) {
        rng->has_spare = false;
        return rng->spare;
    }
    do {
        u = 2.0 * fl_numpy_rng_unit(rng) - 1.0;
        v = 2.0 * fl_numpy_rng_unit(rng) - 1.0;
        q = u * u + v * v;
    } while (q >= 1.0 || q <= 0.0);
    f = sqrt(-2.0 * log(q) / q);
    rng->spare = f * u; /* numpy returns the second of the pair first. */
    rng->has_spare = true;
    return f * v;
}
