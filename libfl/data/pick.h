#ifndef FL_DATA_PICK_H
#define FL_DATA_PICK_H

/* Random choice of samples, the same on every machine. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/rng.h"

/* The `round` argument of FL_RNG_PARTITION keys: which draw it is. */
enum fl_pick_draw {
    FL_PICK_PARTITION = 0,
    FL_PICK_LOCAL_TEST = 1,
    FL_PICK_SPLIT = 2,
    FL_PICK_NOISY_CLIENTS = 3,
    FL_PICK_NOISE = 4
};

/*
 * A byte for each of `n` samples, 1 for the `k` <= n that are chosen; every choice is equally
 * likely. Returns owned: free(). FL_ENOMEM.
 */
FL_MUST_CHECK int fl_pick_marks(struct fl_rng *rng, size_t n, size_t k, uint8_t **ret,
                                struct fl_err *err);

#endif
