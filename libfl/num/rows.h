#ifndef FL_NUM_ROWS_H
#define FL_NUM_ROWS_H

/*
 * Kernels over many rows at once: inner products of all pairs, sums of some rows, and columns
 * sorted and averaged. Results are the same bit for bit on every machine. No allocation, no errors.
 *
 * A tile is an array of rows with FL_ROWS_COLUMNS columns each, one behind the other.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/num/vec.h"

/* Columns of the rows of fl_rows_gram() are a multiple of it. */
#define FL_ROWS_STEP FL_VEC_LANES

/*
 * gram[i * stride + j] += <x_i, x_j> for j <= i, over n rows x_i = x + i * row of as many columns.
 * Products of floats are exact in double, so it does not matter whether they are contracted. The
 * order of each sum is that of fl_vec_dot(), with zeros up to the multiple of FL_ROWS_STEP. Fastest
 * for at most FL_ROWS_PIECE columns, so that the rows of some pairs fit into a core's first cache.
 */
#define FL_ROWS_PIECE 1024
void fl_rows_gram(double *gram, size_t stride, const float *x, size_t row, size_t n,
                  size_t columns);

#define FL_ROWS_COLUMNS 64

/*
 * sums[a] = sum of the rows of a tile x[n] that sum a has, for m sums: a tile too. Rows are in
 * groups of FL_ROWS_GROUP; bit j of groups[a * fl_rows_groups(n) + g] says that sum a has row
 * FL_ROWS_GROUP g + j. The rows of each group are added in rising order, and then the groups: with
 * many sums each sum of a group is needed by several of them, and is made once.
 */
#define FL_ROWS_GROUP 4
static inline size_t fl_rows_groups(size_t n)
{
    return (n + FL_ROWS_GROUP - 1) / FL_ROWS_GROUP;
}
void fl_rows_sum(double *sums, const uint8_t *groups, size_t m, const float *x, size_t n);

/* The first n columns of m rows x + i * row as a tile, with zeros in the others. */
void fl_rows_tile(float *tile, const float *x, size_t row, size_t m, size_t n);
/* Sort each column of a tile of m rows in rising order. No value may be NaN. */
void fl_rows_sort(float *rows, size_t m);
void fl_rows_sort_wide(double *rows, size_t m);
/* wide[i] = x[i], for n values. */
void fl_rows_widen(double *wide, const float *x, size_t n);

/* out[c] = mean of rows from … to - 1 of a tile, from < to. */
void fl_rows_mean(double *out, const double *rows, size_t from, size_t to);
/*
 * Of each column of a sorted tile of m rows the m - f values nearest to `middle`, f < (m + 1) / 2:
 * their mean, the smallest and the largest of them. Of two equally near ones the smaller is taken.
 */
void fl_rows_nearest(double *out, double *low, double *high, const double *rows, size_t m, size_t f,
                     const double *middle);
/* How many of n values x[c] are in low[c] … high[c], both included. n <= FL_ROWS_COLUMNS. */
size_t fl_rows_between(const float *x, const double *low, const double *high, size_t n);
size_t fl_rows_between_wide(const double *x, const double *low, const double *high, size_t n);

#endif
