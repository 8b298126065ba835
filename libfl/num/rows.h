#ifndef FL_NUM_ROWS_H
#define FL_NUM_ROWS_H

/*
 * Kernels over many rows at once: inner products of all pairs, and columns sorted. Results are the
 * same bit for bit on every machine. No allocation, no errors.
 */

#include <stddef.h>

#include "libfl/num/vec.h"

/* Columns of the rows of fl_rows_gram() are a multiple of it. */
#define FL_ROWS_STEP FL_VEC_LANES

/*
 * gram[i * stride + j] += <x_i, x_j> for j <= i, over rows x[n][columns] whose values are floats:
 * their products are exact in double, so it does not matter whether they are contracted. The order
 * of each sum is that of fl_vec_dot(), with zeros up to the multiple of FL_ROWS_STEP.
 */
void fl_rows_gram(double *gram, size_t stride, const double *x, size_t n, size_t columns);

/*
 * sums[a][FL_ROWS_COLUMNS] = sum of the rows x[i][FL_ROWS_COLUMNS] with members[a * n + i] 1, in
 * rising order of i; those with 0 are left out, as nothing is changed by adding 0 times a finite
 * value. members[m][n] is 0 or 1, so contraction changes nothing either.
 */
#define FL_ROWS_COLUMNS 64
void fl_rows_sum(double *sums, const double *members, size_t m, const double *x, size_t n);

/* Sort each column of rows[m][FL_ROWS_COLUMNS] in rising order. No value may be NaN. */
void fl_rows_sort(float *rows, size_t m);
void fl_rows_sort_wide(double *rows, size_t m);

#endif
