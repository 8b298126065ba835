#ifndef FL_NUM_POOL_H
#define FL_NUM_POOL_H

/*
 * Max-pooling on NHWC images. A window that reaches over an edge is cut there.
 *
 *     x[batch][h][w][c]  row stride ldx floats a sample; dx as x
 *     y[batch][oh][ow][c]  row stride ldy; dy as y
 *     index[batch][oh*ow*c]: the place of the maximum in its window, row * size + column
 *
 * The first maximum of a window counts; NaN is larger than everything, so that a diverged
 * network does not look healthy.
 *
 * Purity: no allocation, no state.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/num/kernels.h"

/* The index of a window is one byte. */
#define FL_POOL_SIZE_MAX 15

struct fl_pool {
    size_t c, h, w;
    size_t size, stride;
    size_t top, left; /* rows and columns of padding before the image; less than size */
    size_t oh, ow;    /* every window holds at least one pixel */
};

void fl_pool_forward(const struct fl_kernels *kernels, const struct fl_pool *pool, float *y,
                     size_t ldy, uint8_t *index, const float *x, size_t ldx, size_t batch);
/* y = the numbers of x at the places of `index`, which a forward pass of another x left. */
void fl_pool_take(const struct fl_pool *pool, float *y, size_t ldy, const uint8_t *index,
                  const float *x, size_t ldx, size_t batch);
/*
 * dx, wholly overwritten, zero behind the samples. With y, what forward made where x came out of
 * ReLU, dx is the gradient before that: a window's maximum passes it when it is above zero.
 */
void fl_pool_backward(const struct fl_kernels *kernels, const struct fl_pool *pool, float *dx,
                      size_t lddx, const float *dy, size_t lddy, const uint8_t *index,
                      const float *y, size_t ldy, size_t batch);

#endif
