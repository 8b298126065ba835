#include "libfl/num/pool_mean.h"

#include <string.h>

static void pool_mean_add(float *restrict to, const float *restrict from, size_t n, float share)
{
    size_t i;

    for (i = 0; i < n; i++) {
        to[i] += from[i] * share;
    }
}

/* The pixel of the image at (row, column) of the window of output pixel `at`. */
static size_t pool_mean_pixel(const struct fl_pool *pool, size_t at, size_t row, size_t column)
{
    size_t y = at / pool->ow * pool->stride + row;
    size_t x = at % pool->ow * pool->stride + column;

    return (y * pool->w + x) * pool->c;
}

static float pool_mean_share(const struct fl_pool *pool)
{
    return 1.0f / (float)(pool->size * pool->size);
}

void fl_pool_mean_forward(const struct fl_pool *pool, float *y, size_t ldy, const float *x,
                          size_t ldx, size_t batch)
{
    size_t area = pool->size * pool->size;
    size_t b, p, t;

    for (b = 0; b < batch; b++) {
        for (p = 0; p < pool->oh * pool->ow; p++) {
            float *to = y + b * ldy + p * pool->c;

            (void)memset(to, 0, pool->c * sizeof(*to));
            for (t = 0; t < area; t++) {
                size_t at = pool_mean_pixel(pool, p, t / pool->size, t % pool->size);

                pool_mean_add(to, x + b * ldx + at, pool->c, pool_mean_share(pool));
            }
        }
    }
}

void fl_pool_mean_backward(const struct fl_pool *pool, float *dx, size_t lddx, const float *dy,
                           size_t lddy, size_t batch)
{
    size_t area = pool->size * pool->size;
    size_t b, p, t;

    for (b = 0; b < batch; b++) {
        (void)memset(dx + b * lddx, 0, lddx * sizeof(*dx));
        for (p = 0; p < pool->oh * pool->ow; p++) {
            for (t = 0; t < area; t++) {
                size_t at = pool_mean_pixel(pool, p, t / pool->size, t % pool->size);

                pool_mean_add(dx + b * lddx + at, dy + b * lddy + p * pool->c, pool->c,
                              pool_mean_share(pool));
            }
        }
    }
}

void fl_pool_all_forward(size_t c, size_t pixels, float *y, size_t ldy, const float *x, size_t ldx,
                         size_t batch)
{
    float share = 1.0f / (float)pixels;
    size_t b, p;

    for (b = 0; b < batch; b++) {
        (void)memset(y + b * ldy, 0, c * sizeof(*y));
        for (p = 0; p < pixels; p++) {
            pool_mean_add(y + b * ldy, x + b * ldx + p * c, c, share);
        }
    }
}

void fl_pool_all_backward(size_t c, size_t pixels, float *dx, size_t lddx, const float *dy,
                          size_t lddy, size_t batch)
{
    float share = 1.0f / (float)pixels;
    size_t b, p;

    for (b = 0; b < batch; b++) {
        (void)memset(dx + b * lddx, 0, lddx * sizeof(*dx));
        for (p = 0; p < pixels; p++) {
            pool_mean_add(dx + b * lddx + p * c, dy + b * lddy, c, share);
        }
    }
}
