#ifndef FL_NUM_VEC_H
#define FL_NUM_VEC_H

/*
 * Vector kernels. Outputs first, sizes last, no allocation, no errors. Single
 * precision data, double precision sums, always in rising index order, so that a
 * result does not depend on the machine's vector width or on threads.
 *
 * Arrays do not overlap unless said; n may be 0.
 */

#include <stdbool.h>
#include <stddef.h>

/* y[i] += a * x[i] */
void fl_vec_axpy(float *y, float a, const float *x, size_t n);
/* y[i] = x[i] * a; y may be x. */
void fl_vec_scale(float *y, float a, const float *x, size_t n);
/* z[i] = x[i] - y[i]; z may be x or y. */
void fl_vec_sub(float *z, const float *x, const float *y, size_t n);
double fl_vec_dot(const float *x, const float *y, size_t n);
double fl_vec_norm2(const float *x, size_t n);
/* sqrt(sum (x - y)^2) */
double fl_vec_distance(const float *x, const float *y, size_t n);
bool fl_vec_finite(const float *x, size_t n);

/* Block sums of the aggregation: acc[i] += w * x[i], in double. */
void fl_acc_add(double *acc, double w, const float *x, size_t n);
/* acc[i] *= a */
void fl_acc_scale(double *acc, double a, size_t n);
/* sum (acc[i] - x[i])^2 */
double fl_acc_distance_sq(const double *acc, const float *x, size_t n);

#endif
