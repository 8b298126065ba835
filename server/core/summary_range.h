#ifndef FL_CORE_SUMMARY_RANGE_H
#define FL_CORE_SUMMARY_RANGE_H

/* Which data summaries (FedMix) have values that are out of the range of the others. Pure. */

#include <stddef.h>

#include "libfl/base/err.h"

/*
 * How large the values of each of `n` summaries may be: `factor` times the median of the others'
 * largest magnitudes, largest[0 … n-1], which are finite and at least 0. With fewer than two
 * others, a median of 0 or a factor of 0 there is no bound: INFINITY. The order of the summaries
 * does not matter. FL_ENOMEM: nothing is set.
 */
FL_MUST_CHECK int fl_summary_bounds(const double *largest, size_t n, double factor,
                                    double *ret_bounds);

#endif
