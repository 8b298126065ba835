#ifndef FL_NUM_NORM_H
#define FL_NUM_NORM_H

/*
 * Normalisations on NHWC images: by the batch (Ioffe and Szegedy 2015, algorithms 1 and 2)
 * and by neighbouring channels (Krizhevsky et al. 2012, section 3.3).
 *
 *     x[batch][pixels][c]  row stride ldx floats per sample; y, dx, dy as x
 *
 * The columns after a sample of dx become zero, as dense.h requires. Purity: no allocation, no
 * state. The same shapes with the same kernels give the same bits.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/kernels.h"

/* Added to every variance. */
#define FL_BN_EPS 1e-5
/* Weight of the newest batch in the running statistics. */
#define FL_BN_MOMENTUM 0.1

struct fl_bn {
    size_t c, pixels;
};

/* Mean and biased variance of each channel over batch and pixels; batch * pixels >= 1. */
void fl_bn_moments(const struct fl_kernels *kernels, const struct fl_bn *bn, float *mean,
                   float *var, const float *x, size_t ldx, size_t batch);
/*
 * Update the running statistics after a batch of `n` numbers per channel; the running variance
 * uses the unbiased variance, as in PyTorch. With a single number it is unchanged.
 */
void fl_bn_track(const struct fl_bn *bn, float *running_mean, float *running_var, const float *mean,
                 const float *var, size_t n);
/* y = (x - mean) / sqrt(var + eps) * gamma + beta, then max(y, 0) when `relu`. */
void fl_bn_forward(const struct fl_kernels *kernels, const struct fl_bn *bn, float *y, size_t ldy,
                   const float *x, size_t ldx, const float *mean, const float *var,
                   const float *gamma, const float *beta, size_t batch, bool relu);

/* With `relu` dy is the gradient after ReLU and is masked first. */
struct fl_bn_backward {
    const float *dy, *x;
    size_t lddy, ldx;
    const float *mean, *var, *gamma, *beta;
    bool relu;
};
/* dgamma and dbeta: sums over the batch of dy * xhat and of dy. */
void fl_bn_backward_sums(const struct fl_kernels *kernels, const struct fl_bn *bn, float *dgamma,
                         float *dbeta, const struct fl_bn_backward *io, size_t batch);
/* dx, completely overwritten, for statistics of the same batch. */
void fl_bn_backward_data(const struct fl_kernels *kernels, const struct fl_bn *bn, float *dx,
                         size_t lddx, const struct fl_bn_backward *io, const float *dgamma,
                         const float *dbeta, size_t batch);

/*
 * Directional derivatives (JVP): rx, ry, rgamma, rbeta are the tangents of x, y, gamma and beta,
 * sy and sx the adjoints of ry and rx, dy and dx those of y and x. rx NULL: zero; then rgamma
 * and rbeta are zero too.
 */
struct fl_bn_jvp {
    const float *mean, *var;    /* moments of the batch, fl_bn_moments() */
    const float *rmean, *slope; /* fl_bn_moments_jvp() */
    const float *gamma;
    const float *rgamma, *rbeta;
};

/* rmean: mean of rx; slope: mean of xhat * rx. */
void fl_bn_moments_jvp(const struct fl_bn *bn, float *rmean, float *slope, const float *rx,
                       const float *x, size_t ldx, const float *mean, const float *var,
                       size_t batch);
/* ry, without ReLU. */
void fl_bn_forward_jvp(const struct fl_bn *bn, float *ry, size_t ldy, const float *rx,
                       const float *x, size_t ldx, const struct fl_bn_jvp *at, size_t batch);

/* Rows of ldx floats: x, rx, dx, sx; of ldy floats: dy, sy. */
struct fl_bn_streams {
    const float *x, *rx, *dy, *sy;
    float *dx, *sx;
    size_t ldx, ldy;
};
/* dx and sx, completely overwritten, and the gradients dgamma and dbeta. */
void fl_bn_backward_jvp(const struct fl_bn *bn, const struct fl_bn_streams *io,
                        const struct fl_bn_jvp *at, float *dgamma, float *dbeta, size_t batch);

/*
 * y[i] = x[i] / s[i]^0.75, s[i] = 1 + 0.001 / 9 * sum of x[j]^2 over |j - i| <= 4: TensorFlow's
 * form and the numbers of its CIFAR-10 tutorial (radius 4, bias 1, alpha 0.001 / 9, beta 0.75).
 * `scratch`: fl_lrn_scratch() floats.
 */
size_t fl_lrn_scratch(size_t c);
void fl_lrn_forward(float *y, size_t ldy, const float *x, size_t ldx, size_t c, size_t pixels,
                    size_t batch, float *scratch);
void fl_lrn_backward(float *dx, size_t lddx, const float *dy, size_t lddy, const float *x,
                     size_t ldx, size_t c, size_t pixels, size_t batch, float *scratch);

/*
 * JVP forms: ry from rx; backward, dx from dy and sy, while fl_lrn_backward() computes sx from
 * sy. `scratch`: fl_lrn_scratch_jvp() floats.
 */
size_t fl_lrn_scratch_jvp(size_t c);
void fl_lrn_forward_jvp(float *ry, size_t ldy, const float *rx, const float *x, size_t ldx,
                        size_t c, size_t pixels, size_t batch, float *scratch);
void fl_lrn_backward_jvp(float *dx, size_t lddx, const float *dy, const float *sy, size_t lddy,
                         const float *rx, const float *x, size_t ldx, size_t c, size_t pixels,
                         size_t batch, float *scratch);

#endif
