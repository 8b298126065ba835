#ifndef FL_NUM_DENSE_H
#define FL_NUM_DENSE_H

/*
 * Dense layers: y = x W + b, its gradients, and a fused ReLU.
 *
 *     x[batch][in]  row stride ldx     w[in][out]  contiguous     bias[out]
 *     y[batch][out] row stride ldy     dy as y, dx as x
 *
 * Small-n layers (fl_dense_small_n()) have w[out][in] instead, and so has dW. This depends only on
 * the shape, not on the kernels.
 *
 * Internal activations (y, dy and dx, except the raw input) have the stride fl_dense_stride(n) and
 * are aligned to 64 bytes. The columns n..stride of a gradient are zero: every function that writes
 * dy or dx keeps them zero. Those of y have any finite value. Kernels may read, but never write, up
 * to FL_DENSE_SLACK floats after w and after the last row of any operand; this memory must exist
 * and be finite.
 *
 * Purity: no allocation, no state. The same shapes with the same kernels give the same bits.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/kernels.h"

#define FL_DENSE_SLACK 16

/* Row stride for rows of n floats: the next multiple of 16. */
size_t fl_dense_stride(size_t n);
/*
 * True for a small-n layer (few outputs), whose kernels run along the inputs: with vectors along
 * ten outputs a third of the lanes would be idle, and each number of x would be loaded
 * separately.
 */
bool fl_dense_small_n(size_t in, size_t out);
/* Size of the scratch of fl_dense_backward_weights() in floats. */
size_t fl_dense_scratch(size_t in, size_t out);

/* y = x W + bias, then max(y, 0) when `relu`. */
void fl_dense_forward(const struct fl_kernels *kernels, float *y, size_t ldy, const float *x,
                      size_t ldx, const float *w, const float *bias, size_t batch, size_t in,
                      size_t out, bool relu);
/* y += bias in every row, then max(y, 0) when `relu`; NaN stays NaN. */
void fl_dense_add_bias(const struct fl_kernels *kernels, float *y, size_t ldy, const float *bias,
                       size_t batch, size_t out, bool relu);
/* dx = dy W^T; the columns in..lddx of dx become zero. */
void fl_dense_backward_data(const struct fl_kernels *kernels, float *dx, size_t lddx,
                            const float *dy, size_t lddy, const float *w, size_t batch, size_t in,
                            size_t out);
/*
 * Update hook: `grad` contains the n floats of dW from `offset` on, valid for the call. Blocks
 * come in rising order and cover dW once.
 */
typedef void (*fl_dense_update_cb)(void *ctx, size_t offset, size_t n, const float *grad);
/*
 * dW = x^T dy, block by block: rows that fill about 24 KB of `scratch` (aligned to 64 bytes,
 * fl_dense_scratch() floats), so that the update finds them in the L1 cache and there is no
 * gradient array; for small-n layers at least half of dW.
 */
void fl_dense_backward_weights(const struct fl_kernels *kernels, const float *x, size_t ldx,
                               const float *dy, size_t lddy, size_t batch, size_t in, size_t out,
                               float *scratch, fl_dense_update_cb update, void *ctx);
/*
 * dW = x^T dy + rx^T sy in the same manner, with twice the scratch (the second half begins at a
 * multiple of 16 floats). rx NULL: without the second product.
 */
void fl_dense_backward_weights_jvp(const struct fl_kernels *kernels, const float *x,
                                   const float *rx, size_t ldx, const float *dy, const float *sy,
                                   size_t lddy, size_t batch, size_t in, size_t out, float *scratch,
                                   fl_dense_update_cb update, void *ctx);
/*
 * db[j] = sum over the batch of dy[.][j], and zero after them up to fl_dense_stride(out). With y,
 * the output of forward with `relu`, dy is first masked with fl_relu_backward().
 */
void fl_dense_backward_bias(const struct fl_kernels *kernels, float *db, float *dy, size_t lddy,
                            const float *y, size_t ldy, size_t batch, size_t out);
/* dy = y > 0 ? dy : 0, where y is the output of forward with `relu`. */
void fl_relu_backward(const struct fl_kernels *kernels, float *dy, size_t lddy, const float *y,
                      size_t ldy, size_t batch, size_t n);

#endif
