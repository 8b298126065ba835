#ifndef FL_TESTS_FEDMIX_FIXTURE_H
#define FL_TESTS_FEDMIX_FIXTURE_H

/* Summaries of FedMix, written by hand. */

#include "libfl/strategy/solver/solver_fedmix.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"

#define INPUTS  7
#define CLASSES 4

static inline void put_header(struct fl_buf *out, uint32_t dim, uint32_t classes, uint32_t pairs)
{
    const uint32_t words[3] = {dim, classes, pairs};

    ck_assert_int_eq(fl_buf_add(out, "FLMX", 4), FL_OK);
    ck_assert_int_eq(fl_buf_add(out, words, sizeof(words)), FL_OK);
}

/* Adds a summary of `n` pairs to a union; `size` 0: means that are 0. */
static inline struct fl_solver_bytes put_summary(struct fl_buf *means, uint32_t n, double size,
                                                 uint64_t seed)
{
    struct fl_rng rng;
    uint32_t i;
    size_t j;

    fl_rng_seed(&rng, seed);
    put_header(means, INPUTS, CLASSES, n);
    for (i = 0; i < n; i++) {
        float pair[INPUTS + CLASSES] = {0};

        for (j = 0; j < INPUTS; j++) {
            pair[j] = (float)(size * fl_rng_normal(&rng));
        }
        pair[INPUTS + i % CLASSES] += 0.625f;
        pair[INPUTS + seed % CLASSES] += 0.375f;
        ck_assert_int_eq(fl_buf_add(means, pair, sizeof(pair)), FL_OK);
    }
    return (struct fl_solver_bytes){.data = means->data, .len = means->len};
}

#endif
