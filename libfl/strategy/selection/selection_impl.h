#ifndef FL_STRATEGY_SELECTION_IMPL_H
#define FL_STRATEGY_SELECTION_IMPL_H

/* Random draws without replacement, shared by several policies. */

#include "libfl/base/rng.h"
#include "libfl/conf/options.h"

/*
 * Draw `want` of the numbers 0..n-1 uniformly, ascending. `scratch` has n entries and is
 * overwritten; `chosen` may be `scratch`.
 */
void fl__draw_uniform(uint32_t *chosen, uint32_t *scratch, size_t n, size_t want,
                      struct fl_rng *rng);
/*
 * Successive draws in proportion to p[n], ascending (docs/algorithms.md#draws-without-replacement).
 * Entries that are not positive and finite count as 0; when too few are positive the rest is filled
 * uniformly. FL_ENOMEM.
 */
int fl__draw_weighted(uint32_t *chosen, const double *p, size_t n, size_t want, struct fl_rng *rng);

#endif
