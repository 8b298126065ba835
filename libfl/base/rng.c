#include "libfl/base/rng.h"

#include <math.h>

#include "libfl/base/err.h"

static uint64_t rng_splitmix64(uint64_t *state)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return fl_rng_mix(*state);
}

static uint64_t rng_rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void fl_rng_seed(struct fl_rng *rng, uint64_t seed)
{
    int i;

    for (i = 0; i < 4; i++) {
        rng->s[i] = rng_splitmix64(&seed);
    }
}

void fl_rng_key(struct fl_rng *rng, uint64_t master, enum fl_rng_purpose purpose, uint64_t round,
                uint64_t client)
{
    uint64_t h = master;

    /* Each component is mixed in after a full splitmix round of the previous ones, so that (1, 2)
     * and (2, 1) give different streams. */
    h = rng_splitmix64(&h) ^ (uint64_t)purpose;
    h = rng_splitmix64(&h) ^ round;
    h = rng_splitmix64(&h) ^ client;
    fl_rng_seed(rng, rng_splitmix64(&h));
}

/* Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021. */
uint64_t fl_rng_u64(struct fl_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rng_rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rng_rotl(s[3], 45);
    return result;
}

uint64_t fl_rng_below(struct fl_rng *rng, uint64_t n)
{
    uint64_t limit;
    uint64_t x;

    FL_REQUIRE(n > 0);
    /* The lowest 2^64 mod n values would make the first remainders likelier. */
    limit = (0 - n) % n;
    do {
        x = fl_rng_u64(rng);
    } while (x < limit);
    return x % n;
}

double fl_rng_unit(struct fl_rng *rng)
{
    return ((double)(fl_rng_u64(rng) >> 12) + 0.5) * 0x1p-52;
}

double fl_rng_normal(struct fl_rng *rng)
{
    double u;
    double v;
    double q;

    do {
        u = 2.0 * fl_rng_unit(rng) - 1.0;
        v = 2.0 * fl_rng_unit(rng) - 1.0;
        q = u * u + v * v;
    } while (q >= 1.0 || q <= 0.0);
    return u * sqrt(-2.0 * log(q) / q);
}

void fl_rng_shuffle(struct fl_rng *rng, uint32_t *items, size_t n)
{
    size_t i;

    for (i = n; i > 1; i--) {
        size_t j = (size_t)fl_rng_below(rng, i);
        uint32_t tmp = items[i - 1];

        items[i - 1] = items[j];
        items[j] = tmp;
    }
}

uint64_t fl_hash64(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    size_t i;

    for (i = 0; i < len; i++) { /* FNV-1a, then a splitmix finish for the high bits. */
        h = (h ^ p[i]) * UINT64_C(0x100000001b3);
    }
    return rng_splitmix64(&h);
}
