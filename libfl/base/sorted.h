#ifndef FL_BASE_SORTED_H
#define FL_BASE_SORTED_H

/* Doubles in rising order, and what is read from them. No value may be NaN. */

#include <stddef.h>

void fl_sort(double *values, size_t n);
/*
 * Sorts the values and returns the middle one; of two in the middle the smaller one, so that of two
 * values neither is its own measure. n > 0.
 */
double fl_lower_median(double *values, size_t n);

#endif
