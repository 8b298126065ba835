#ifndef FL_NUM_POOL_H
#define FL_NUM_POOL_H

/*
 * Max-pooling on NHWC images. Windows are clipped at the edges.
 *
 *     x[batch][h][w][c]  row stride ldx floats per sample; dx as x
 *     y[batch][oh][ow][c]  row stride ldy; dy as y
 *     index[batch][oh*ow*c]: position of the maximum in its window, row * size + column
 *
 * The first maximum of a window counts; NaN counts as the largest, so that a diverged network does
 * not look healthy.
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
    size_t top, left; /* padding before the image in rows and columns; less than size */
    size_t oh, ow;    /* every window contains at least one pixel */
};

void fl_pool_forward(const struct fl_kernels *kernels, const struct fl_pool *pool, float *y,
                     size_t ldy, uint8_t *index, const float *x, size_t ldx, size_t batch);
/* y = the numbers of x at the positions `index` from a forward pass of another x. */
void fl_pool_take(const struct fl_pool *pool, float *y, size_t ldy, const uint8_t *index,
                  const float *x, size_t ldx, size_t batch);
/*
 * dx, completely overwritten, zero after the samples. With y, the output of forward for an x
 * that is an output of ReLU, dx is the gradient before ReLU: the maximum of a window passes it
 * when it is above zero.
 */
void fl_pool_backward(const struct fl_kernels *kernels, const struct fl_pool *pool, float *dx,
                      size_t lddx, const float *dy, size_t lddy, const uint8_t *index,
                      const float *y, size_t ldy, size_t batch);

#endif
