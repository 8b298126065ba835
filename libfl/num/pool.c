#include "libfl/num/pool.h"

#include <string.h>

#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"

void fl_pool_forward(const struct fl_kernels *kernels, const struct fl_pool *pool, float *y,
                     size_t ldy, uint8_t *index, const float *x, size_t ldx, size_t batch)
{
    size_t n = pool->oh * pool->ow * pool->c;
    size_t b;

    for (b = 0; b < batch; b++) {
        kernels->pixel->pool(pool, y + b * ldy, index + b * n, x + b * ldx);
    }
}

/*
 * Read the number at each window's index, for one output pixel: row * size + column of its
 * window.
 */
static void pool_take_indexed(const struct fl_pool *pool, float *restrict to,
                              const float *restrict x, const uint8_t *restrict index, size_t oy,
                              size_t ox)
{
    size_t i;

    for (i = 0; i < pool->c; i++) {
        size_t row = oy * pool->stride + index[i] / pool->size - pool->top;
        size_t column = ox * pool->stride + index[i] % pool->size - pool->left;

        to[i] = x[(row * pool->w + column) * pool->c + i];
    }
}

void fl_pool_take(const struct fl_pool *pool, float *y, size_t ldy, const uint8_t *index,
                  const float *x, size_t ldx, size_t batch)
{
    size_t b, oy, ox;

    for (b = 0; b < batch; b++) {
        float *to = y + b * ldy;

        for (oy = 0; oy < pool->oh; oy++) {
            for (ox = 0; ox < pool->ow; ox++) {
                pool_take_indexed(pool, to, x + b * ldx, index, oy, ox);
                to += pool->c;
                index += pool->c;
            }
        }
    }
}

void fl_pool_backward(const struct fl_kernels *kernels, const struct fl_pool *pool, float *dx,
                      size_t lddx, const float *dy, size_t lddy, const uint8_t *index,
                      const float *y, size_t ldy, size_t batch)
{
    size_t n = pool->oh * pool->ow * pool->c;
    size_t all = pool->h * pool->w * pool->c;
    size_t b;

    for (b = 0; b < batch; b++) {
        kernels->pixel->unpool(pool, dx + b * lddx, dy + b * lddy, index + b * n,
                               y != NULL ? y + b * ldy : NULL);
        (void)memset(dx + b * lddx + all, 0, (lddx - all) * sizeof(*dx));
    }
}
