#ifndef FL_NUM_VEC_H
#define FL_NUM_VEC_H

/*
 * Vector kernels. Outputs first, sizes last, no allocation, no errors. Single
 * precision data, double precision sums.
 *
 * Order of every sum: FL_VEC_LANES partial sums, of which lane j adds the terms of the
 * indices i = j mod FL_VEC_LANES in rising order; the lanes are then added as
 * ((0+4)+(2+6)) + ((1+5)+(3+7)). That order is part of the contract: the result is the
 * same bit for bit on every machine, whatever its vector width. Products of two floats
 * are exact in double, and contraction is off.
 *
 * Arrays must not overlap unless stated; n may be 0; no alignment is required.
 */

#include <stdbool.h>
#include <stddef.h>

#define FL_VEC_LANES 8

/* y[i] += a * x[i] */
void fl_vec_axpy(float *y, float a, const float *x, size_t n);
/* y[i] = x[i] * a; y may be x. */
void fl_vec_scale(float *y, float a, const float *x, size_t n);
/* z[i] = x[i] - y[i]; z may be x or y. */
void fl_vec_sub(float *z, const float *x, const float *y, size_t n);
double fl_vec_dot(const float *x, const float *y, size_t n);
/* sqrt(sum x^2) */
double fl_vec_norm2(const float *x, size_t n);
/* sum (x - y)^2, each difference taken in double. */
double fl_vec_distance_sq(const float *x, const float *y, size_t n);
bool fl_vec_finite(const float *x, size_t n);

/* Block sums of the aggregation: acc[i] += w * x[i], in double. */
void fl_acc_add(double *acc, double w, const float *x, size_t n);
/*
 * out[i] = x[i] + acc[i]. A step of zero keeps the bits of the entry: -0.0 + 0.0 would be 0.0.
 * NaN is propagated.
 */
void fl_acc_step(float *out, const float *x, const double *acc, size_t n);
/* acc[i] *= a */
void fl_acc_scale(double *acc, double a, size_t n);
/* sum (acc[i] - x[i])^2 */
double fl_acc_distance_sq(const double *acc, const float *x, size_t n);

#endif
