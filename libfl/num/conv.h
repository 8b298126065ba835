#ifndef FL_NUM_CONV_H
#define FL_NUM_CONV_H

/*
 * Two-dimensional convolution (cross-correlation, as in PyTorch) on NHWC images. There are several
 * algorithms, equal up to rounding; fl_conv_plan() chooses once the algorithm, the layout of the
 * weights and the memory for a shape (docs/kernels.md#convolutions).
 *
 *     x[batch][h][w][c]    row stride ldx floats per sample
 *     y[batch][oh][ow][k]  row stride ldy; dy as y, dx as x
 *     w                    fl_conv_weights() numbers in the order of the algorithm
 *
 * The scratch has fl_conv_scratch() floats, aligned to 64 bytes. The columns after a sample of dx
 * become zero, as dense.h requires.
 *
 * Purity: no allocation, no state. The same shapes with the same kernels give the same bits,
 * and those of one sample's y do not depend on the batch around it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/dense.h"
#include "libfl/num/kernels.h"

struct fl__conv_algorithm;

struct fl_conv {
    size_t c, h, w; /* input */
    size_t k;       /* output channels */
    size_t kh, kw, stride, pad;
    size_t groups; /* a divisor of c and of k; 0: 1 */
    /* Set by fl_conv_plan(): */
    size_t oh, ow; /* (h + 2 pad - kh) / stride + 1, likewise ow */
    const struct fl_kernels *kernels;
    const struct fl__conv_algorithm *algorithm;
};

/*
 * Choose the algorithm for a shape with 1 <= stride, pad < kh, kw and kernels no larger than the
 * padded image.
 */
void fl_conv_plan(struct fl_conv *conv, const struct fl_kernels *kernels);
/* Name of the algorithm, for benchmarks and messages. */
const char *fl_conv_algorithm(const struct fl_conv *conv);

/* Number of floats of the weights. */
size_t fl_conv_weights(const struct fl_conv *conv);
/* Index in the weights of number `i` of PyTorch's w[k][c / groups][kh][kw]. */
size_t fl_conv_place(const struct fl_conv *conv, size_t i);
/* Use of a scratch; each includes the earlier ones. */
enum fl_conv_use {
    FL_CONV_FORWARD,
    FL_CONV_BACKWARD,
    FL_CONV_JVP, /* backward with a second product */
};
/* Size of the scratch in floats, for batches up to `batch`. */
size_t fl_conv_scratch(const struct fl_conv *conv, size_t batch, enum fl_conv_use use);

/* y = x * w + bias, then max(y, 0) when `relu`. */
void fl_conv_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                     const float *w, const float *bias, size_t batch, bool relu, float *scratch);

struct fl_conv_backward {
    size_t batch;
    const float *dy;
    size_t lddy;
    const float *w;
    float *dx; /* completely overwritten; NULL: not needed */
    size_t lddx;
    /* The following only with an update. */
    const float *x;
    size_t ldx;
    /* strides as x and dy; dw is the sum of those of (x, dy) and (rx, sy) */
    const float *rx, *sy;
    /*
     * Called with dw block by block, each number once; dx is complete by then, so w may be
     * changed. NULL: only dx.
     */
    fl_dense_update_cb update;
    void *ctx;
};

void fl_conv_backward(const struct fl_conv *conv, const struct fl_conv_backward *io,
                      float *scratch);
/*
 * db[k] = sum over samples and pixels of dy. With y, the output of forward with `relu`, dy is
 * masked in place to the gradient before ReLU.
 */
void fl_conv_backward_bias(const struct fl_conv *conv, float *db, float *dy, size_t lddy,
                           const float *y, size_t ldy, size_t batch);

/* Convert samples of c planes of `pixels` numbers to NHWC: y[b][p][c] = x[b][c][p]. */
void fl_planes_to_pixels(float *y, size_t ldy, const float *x, size_t ldx, size_t batch, size_t c,
                         size_t pixels);

#endif
