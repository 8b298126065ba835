#ifndef FL_CORE_SUMMARY_RANGE_H
#define FL_CORE_SUMMARY_RANGE_H

/* Range check of data summaries (FedMix): which have values far above those of the others. Pure. */

#include <stddef.h>

#include "libfl/base/err.h"

/*
 * Upper bounds of the values of `n` summaries: `factor` times the median of the other summaries'
 * largest magnitudes, largest[0 … n-1], which are finite and at least 0. With fewer than two
 * others, a median of 0 or a factor of 0 there is no bound: INFINITY. The order of the summaries
 * does not matter. FL_ENOMEM: nothing is set.
 */
FL_MUST_CHECK int fl_summary_bounds(const double *largest, size_t n, double factor,
                                    double *ret_bounds);

#endif
