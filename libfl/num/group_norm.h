#ifndef FL_NUM_GROUP_NORM_H
#define FL_NUM_GROUP_NORM_H

/*
 * Group normalisation (Wu and He 2018, equations 1 and 6) on NHWC images: each sample is normalised
 * over the pixels and the channels of a group. Group g has the channels [g, g + 1) * c / groups.
 * With one group and one pixel, and each pixel of an image as a row, it is the layer normalisation
 * of the channels (Ba, Kiros and Hinton 2016).
 *
 *     x[batch][rows][pixels][c]  stride ldx floats per sample; y, dx, dy as x
 *     mean, inv[batch][rows][groups]  moments of x: mean and 1 / sqrt(variance + eps)
 *
 * The columns after a sample of dx become zero, as dense.h requires. Purity: no allocation, no
 * state. The same shapes with the same kernels give the same bits, and those of a sample do not
 * depend on the batch around it, except for sums over the batch.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/kernels.h"

/* Added to every variance. */
#define FL_GN_EPS        1e-5
#define FL_GN_GROUPS_MAX 1024

struct fl_gn {
    size_t c, pixels;
    size_t rows;   /* parts of a sample, each normalised for itself */
    size_t groups; /* a divisor of c, at most FL_GN_GROUPS_MAX */
};

/* Moments and y = (x - mean) * inv * gamma + beta, then max(y, 0) when `relu`. */
void fl_gn_forward(const struct fl_kernels *kernels, const struct fl_gn *gn, float *y, size_t ldy,
                   float *mean, float *inv, const float *x, size_t ldx, const float *gamma,
                   const float *beta, size_t batch, bool relu);

/* With `relu` dy is the gradient after ReLU and is masked first. */
struct fl_gn_backward {
    const float *dy, *x;
    size_t lddy, ldx;
    const float *mean, *inv, *gamma, *beta;
    float *dx; /* completely overwritten; NULL: not needed */
    size_t lddx;
    bool relu;
};
/*
 * dgamma and dbeta, sums over batch, rows and pixels of dy * xhat and of dy, and dx. `totals`: 4 c
 * floats, aligned to a double.
 */
void fl_gn_backward(const struct fl_kernels *kernels, const struct fl_gn *gn, float *dgamma,
                    float *dbeta, const struct fl_gn_backward *io, size_t batch, float *totals);

/*
 * Directional derivatives (JVP): rx, ry, rgamma, rbeta are the tangents of x, y, gamma and beta, sy
 * and sx the adjoints of ry and rx, dy and dx those of y and x. NULL: zero, or not needed (dx and
 * sx together). ReLU is the caller's.
 */
struct fl_gn_jvp {
    const float *x, *rx;
    size_t ldx;
    const float *mean, *inv, *gamma, *rgamma, *rbeta;
};
void fl_gn_forward_jvp(const struct fl_gn *gn, float *ry, size_t ldy, const struct fl_gn_jvp *at,
                       size_t batch);
struct fl_gn_streams {
    const float *dy, *sy;
    size_t ldy;
    float *dx, *sx; /* stride ldx */
};
/* `totals`: 4 c floats, aligned to a double. */
void fl_gn_backward_jvp(const struct fl_gn *gn, const struct fl_gn_streams *io,
                        const struct fl_gn_jvp *at, float *dgamma, float *dbeta, size_t batch,
                        float *totals);

#endif
