#ifndef FL_NUM_CONV_H
#define FL_NUM_CONV_H

/*
 * Two-dimensional convolution (cross-correlation, as PyTorch has it) on NHWC images. Several
 * ways lead to the same numbers up to rounding; which one a shape gets, how its weights lie
 * and what memory it needs is decided once by fl_conv_plan() (docs/kernels.md#convolutions).
 *
 *     x[batch][h][w][c]    row stride ldx floats a sample
 *     y[batch][oh][ow][k]  row stride ldy; dy as y, dx as x
 *     w                    fl_conv_weights() numbers in the order of the way
 *
 * The scratch has fl_conv_scratch() floats, aligned to 64 bytes. The columns behind a sample
 * of dx become zero, as dense.h wants them.
 *
 * Purity: no allocation, no state. The same shapes with the same kernels give the same bits,
 * and those of one sample's y do not depend on the batch around it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/dense.h"
#include "libfl/num/kernels.h"

struct fl__conv_way;

struct fl_conv {
    size_t c, h, w; /* input */
    size_t k;       /* output channels */
    size_t kh, kw, stride, pad;
    /* By fl_conv_plan(): */
    size_t oh, ow; /* (h + 2 pad - kh) / stride + 1, likewise ow */
    const struct fl_kernels *kernels;
    const struct fl__conv_way *way;
};

/* For sizes with 1 <= stride, pad < kh, kw and kernels no larger than the padded image. */
void fl_conv_plan(struct fl_conv *conv, const struct fl_kernels *kernels);
/* Its name, for benchmarks and messages. */
const char *fl_conv_way(const struct fl_conv *conv);

/* Floats of the weights. */
size_t fl_conv_weights(const struct fl_conv *conv);
/* Where number `i` of PyTorch's w[k][c][kh][kw] lies. */
size_t fl_conv_place(const struct fl_conv *conv, size_t i);
/* What a scratch is for; each includes those before it. */
enum fl_conv_use {
    FL_CONV_FORWARD,
    FL_CONV_BACKWARD,
    FL_CONV_JVP, /* backward with a second product */
};
/* For batches up to `batch`. */
size_t fl_conv_scratch(const struct fl_conv *conv, size_t batch, enum fl_conv_use use);

/* y = x * w + bias, then max(y, 0) when `relu`. */
void fl_conv_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                     const float *w, const float *bias, size_t batch, bool relu, float *scratch);

struct fl_conv_backward {
    size_t batch;
    const float *dy;
    size_t lddy;
    const float *w;
    float *dx; /* wholly overwritten; NULL: nobody needs it */
    size_t lddx;
    /* The rest only with an update. */
    const float *x;
    size_t ldx;
    const float *rx, *sy; /* strides as x and dy: dw is that of (x, dy) plus that of (rx, sy) */
    /*
     * Gets dw block by block, each number once; dx is done by then, so w may change. NULL: only
     * dx.
     */
    fl_dense_update_cb update;
    void *ctx;
};

void fl_conv_backward(const struct fl_conv *conv, const struct fl_conv_backward *io,
                      float *scratch);
/*
 * db[k] = sum over samples and pixels of dy. With y, what forward with `relu` made, dy becomes
 * the gradient before ReLU on the way.
 */
void fl_conv_backward_bias(const struct fl_conv *conv, float *db, float *dy, size_t lddy,
                           const float *y, size_t ldy, size_t batch);

/*
 * The same in plain loops with double sums, for weights [kh][kw][c][k] and a stride of dx and x
 * alike: the oracle of the tests.
 */
void fl_conv_forward_ref(const struct fl_conv *conv, float *y, size_t ldy, const float *x,
                         size_t ldx, const float *w, const float *bias, size_t batch, bool relu);
void fl_conv_backward_data_ref(const struct fl_conv *conv, float *dx, size_t lddx, const float *dy,
                               size_t lddy, const float *w, size_t batch);
void fl_conv_backward_weights_ref(const struct fl_conv *conv, float *dw, const float *x, size_t ldx,
                                  const float *dy, size_t lddy, size_t batch);

/* Samples of c planes of `pixels` numbers to NHWC: y[b][p][c] = x[b][c][p]. */
void fl_planes_to_pixels(float *y, size_t ldy, const float *x, size_t ldx, size_t batch, size_t c,
                         size_t pixels);

#endif
