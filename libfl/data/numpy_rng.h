#ifndef FL_DATA_NUMPY_RNG_H
#define FL_DATA_NUMPY_RNG_H

/*
 * The stream of numpy.random.RandomState(seed): MT19937 (Matsumoto and Nishimura 1998) with
 * init_genrand, doubles of 53 bits, normals by the polar method with the second value kept. Only
 * for data that must equal published data; everything else uses libfl/base/rng.h.
 */

#include <stdbool.h>
#include <stdint.h>

#define FL_NUMPY_RNG_WORDS 624

struct fl_numpy_rng {
    uint32_t state[FL_NUMPY_RNG_WORDS];
    unsigned next;
    bool has_spare;
    double spare;
};

void fl_numpy_rng_seed(struct fl_numpy_rng *rng, uint32_t seed);
uint32_t fl_numpy_rng_u32(struct fl_numpy_rng *rng);
/* Uniform in [0, 1). */
double fl_numpy_rng_unit(struct fl_numpy_rng *rng);
/* RandomState.randint(n): uniform in [0, n), n > 0. Draws nothing when n is 1. */
uint32_t fl_numpy_rng_below(struct fl_numpy_rng *rng, uint32_t n);
double fl_numpy_rng_normal(struct fl_numpy_rng *rng);

#endif
