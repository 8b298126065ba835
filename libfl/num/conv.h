#ifndef FL_NUM_CONV_H
#define FL_NUM_CONV_H

/*
 * Two-dimensional convolution (cross-correlation, as PyTorch has it) on NHWC images:
 * patches are gathered into a matrix, OpenBLAS multiplies (docs/kernels.md#convolutions).
 *
 *     x[batch][h][w][c]    row stride ldx floats a sample
 *     y[batch][oh][ow][k]  row stride ldy; dy as y, dx as x
 *     w[kh][kw][c][k]      so that one patch row times w is one pixel of y
 *
 * The scratch, fl_conv_scratch() floats aligned to 64 bytes, holds the patches of a few
 * images. The columns behind a sample of dx become zero, as dense.h wants them.
 *
 * Purity: no allocation, no state. The same shapes on the same machine give the same bits.
 */

#include <stdbool.h>
#include <stddef.h>

struct fl_conv {
    size_t c, h, w; /* input */
    size_t k;       /* output channels */
    size_t kh, kw, stride, pad;
    size_t oh, ow; /* (h + 2 pad - kh) / stride + 1, likewise ow */
};

/* Floats of the weights. */
size_t fl_conv_weights(const struct fl_conv *conv);
size_t fl_conv_scratch(const struct fl_conv *conv);

/* y = x * w + bias, then max(y, 0) when `relu`. */
void fl_conv_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                     const float *w, const float *bias, size_t batch, bool relu, float *scratch);
/* dx, wholly overwritten. */
void fl_conv_backward_data(const struct fl_conv *conv, float *dx, size_t lddx, const float *dy,
                           size_t lddy, const float *w, size_t batch, float *scratch);
/* dw, wholly overwritten, or what it had plus that when `add`. */
void fl_conv_backward_weights(const struct fl_conv *conv, float *dw, const float *x, size_t ldx,
                              const float *dy, size_t lddy, size_t batch, bool add, float *scratch);
/* db[k] = sum over samples and pixels of dy, sample by sample in rising order. */
void fl_conv_backward_bias(const struct fl_conv *conv, float *db, const float *dy, size_t lddy,
                           size_t batch);

/* The same in plain loops with double sums: the oracle of the tests. */
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
