#ifndef FL_NUM_POOL_MEAN_H
#define FL_NUM_POOL_MEAN_H

/*
 * Average pooling on NHWC images, with the shapes and strides of pool.h; windows lie wholly on the
 * image (top and left are 0). dx is completely overwritten, zero after the samples. Purity: no
 * allocation, no state.
 */

#include "libfl/num/pool.h"

void fl_pool_mean_forward(const struct fl_pool *pool, float *y, size_t ldy, const float *x,
                          size_t ldx, size_t batch);
void fl_pool_mean_backward(const struct fl_pool *pool, float *dx, size_t lddx, const float *dy,
                           size_t lddy, size_t batch);

/* The mean of each channel over all pixels: y[batch][c]. */
void fl_pool_all_forward(size_t c, size_t pixels, float *y, size_t ldy, const float *x, size_t ldx,
                         size_t batch);
void fl_pool_all_backward(size_t c, size_t pixels, float *dx, size_t lddx, const float *dy,
                          size_t lddy, size_t batch);

#endif
