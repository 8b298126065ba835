#include "libfl/data/pick.h"

#include <stdlib.h>

/*
 * Selection sampling (Fan, Muller and Rezucha 1962; Knuth, TAOCP 2, algorithm S): walk through the
 * samples once and choose each with probability (still to choose) / (samples left). One byte per
 * sample; a shuffle would need four.
 */
int fl_pick_marks(struct fl_rng *rng, size_t n, size_t k, uint8_t **ret, struct fl_err *err)
{
    uint8_t *marks;
    size_t i;

    FL_REQUIRE(k <= n);
    marks = calloc(n > 0 ? n : 1, 1);
    if (marks == NULL) {
        return fl_err_set(err, FL_ENOMEM, "choosing among %zu samples: out of memory", n);
    }
    for (i = 0; i < n && k > 0; i++) {
        if (fl_rng_below(rng, n - i) < k) {
            marks[i] = 1;
            k--;
        }
    }
    *ret = marks;
    return FL_OK;
}
