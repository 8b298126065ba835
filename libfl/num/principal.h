#ifndef FL_NUM_PRINCIPAL_H
#define FL_NUM_PRINCIPAL_H

/*
 * The direction of the largest variance of some vectors, from their inner products. No allocation,
 * no errors.
 */

#include <stddef.h>

/*
 * Makes inner products of n vectors, gram[n][n], those of their differences from the mean of all.
 * `means` [n] is scratch memory.
 */
void fl_principal_centre(double *gram, size_t n, double *means);
/*
 * Writes v[n], the first eigenvector of a positive semidefinite matrix, of any length: the
 * projections of the vectors on the direction, up to a common factor. All 0 when the matrix is. By
 * power iteration from the column with the largest diagonal entry, which ends when it has
 * converged, or after 1e8 products and 1000 steps: variances closer than that are not told apart.
 * `next` [n] is scratch memory.
 */
void fl_principal(const double *gram, size_t n, double *v, double *next);

#endif
