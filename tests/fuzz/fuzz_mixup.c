/* Summaries of FedMix, from a client (one) and from a server (one behind the other). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/solver/solver_fedmix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Those of the corpus. */
#define DIM     3
#define CLASSES 2

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fl_solver_bytes bytes = {.data = data, .len = size};
    struct fl__mix_union all = {0};
    struct fl_err err = {0};
    float pair[DIM + CLASSES];
    uint64_t i;
    int one = fl__mix_check(NULL, data, size, DIM, CLASSES, &err);
    int any = fl__mix_check(NULL, data, size, 0, 0, &err);
    const struct fl_solver_bytes own = {.data = data, .len = size / 2};
    int rv = fl__mix_union_open(&bytes, &own, DIM, CLASSES, &all, &err);

    FL_REQUIRE(rv == FL_OK || rv == FL_EFORMAT);
    FL_REQUIRE(one == FL_EFORMAT || (any == FL_OK && rv == FL_OK && all.n_summaries == 1));
    FL_REQUIRE(size > 0 || (rv == FL_OK && all.n_pairs == 0));
    for (i = 0; i < all.n_pairs; i++) {
        fl__mix_union_pair(&all, i, pair, pair + DIM);
        FL_REQUIRE(isfinite(pair[0]) && pair[DIM] >= 0.0F && pair[DIM + 1] >= 0.0F);
    }
    FL_REQUIRE(all.n_summaries <= all.n_pairs);
    fl__mix_union_done(&all);
    return 0;
}
