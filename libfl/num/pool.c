#include "libfl/num/pool.h"

#include <stdbool.h>
#include <string.h>

/* The part of a window that lies on the image. */
struct window {
    size_t y0, y1, x0, x1; /* rows and columns of the image */
    size_t skip_y, skip_x; /* of the window, before them */
};

static struct window window_of(const struct fl_pool *pool, size_t oy, size_t ox)
{
    size_t y = oy * pool->stride;
    size_t x = ox * pool->stride;
    struct window win;

    win.y0 = y > pool->top ? y - pool->top : 0;
    win.x0 = x > pool->left ? x - pool->left : 0;
    win.skip_y = win.y0 + pool->top - y;
    win.skip_x = win.x0 + pool->left - x;
    win.y1 = y + pool->size - pool->top < pool->h ? y + pool->size - pool->top : pool->h;
    win.x1 = x + pool->size - pool->left < pool->w ? x + pool->size - pool->left : pool->w;
    return win;
}

static void take_larger(float *restrict y, uint8_t *restrict index, const float *restrict x,
                        size_t c, uint8_t place)
{
    size_t i;

    for (i = 0; i < c; i++) {
        /* Only a NaN is unlike itself. */
        int take = x[i] > y[i] || x[i] != x[i];

        y[i] = take ? x[i] : y[i];
        index[i] = take ? place : index[i];
    }
}

static void add_where(float *restrict dx, const float *restrict dy, const uint8_t *restrict index,
                      size_t c, uint8_t place)
{
    size_t i;

    for (i = 0; i < c; i++) {
        dx[i] += index[i] == place ? dy[i] : 0.0f;
    }
}

static void forward_one(const struct fl_pool *pool, float *y, uint8_t *index, const float *x)
{
    size_t c = pool->c;
    size_t oy, ox, i, j;

    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            struct window win = window_of(pool, oy, ox);

            for (i = win.y0; i < win.y1; i++) {
                size_t row = (i - win.y0 + win.skip_y) * pool->size + win.skip_x;

                for (j = win.x0; j < win.x1; j++) {
                    const float *from = x + (i * pool->w + j) * c;
                    size_t place = row + j - win.x0;

                    if (i == win.y0 && j == win.x0) {
                        (void)memcpy(y, from, c * sizeof(*y));
                        (void)memset(index, (int)place, c);
                    } else {
                        take_larger(y, index, from, c, (uint8_t)place);
                    }
                }
            }
            y += c;
            index += c;
        }
    }
}

void fl_pool_forward(const struct fl_pool *pool, float *y, size_t ldy, uint8_t *index,
                     const float *x, size_t ldx, size_t batch)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        forward_one(pool, y + b * ldy, index + b * pool->oh * pool->ow * pool->c, x + b * ldx);
    }
}

/* The number of each window's place, for one output pixel: row * size + column of its window. */
static void take_placed(const struct fl_pool *pool, float *restrict to, const float *restrict x,
                        const uint8_t *restrict index, size_t oy, size_t ox)
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
                take_placed(pool, to, x + b * ldx, index, oy, ox);
                to += pool->c;
                index += pool->c;
            }
        }
    }
}

static void put_where(float *restrict dx, const float *restrict dy, const uint8_t *restrict index,
                      size_t c, uint8_t place)
{
    size_t i;

    for (i = 0; i < c; i++) {
        dx[i] = index[i] == place ? dy[i] : 0.0f;
    }
}

/* Windows side by side that cover the image: each pixel belongs to one of them. */
static bool tiles(const struct fl_pool *pool)
{
    return pool->stride == pool->size && pool->top == 0 && pool->left == 0 &&
           pool->oh * pool->size == pool->h && pool->ow * pool->size == pool->w;
}

/* backward_one() for these: nothing is added up, so nothing need be zero before. */
static void backward_tiles(const struct fl_pool *pool, float *dx, const float *dy,
                           const uint8_t *index)
{
    size_t c = pool->c;
    size_t oy, ox, i, j;

    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            float *corner = dx + (oy * pool->w + ox) * pool->size * c;

            for (i = 0; i < pool->size; i++) {
                for (j = 0; j < pool->size; j++) {
                    put_where(corner + (i * pool->w + j) * c, dy, index, c,
                              (uint8_t)(i * pool->size + j));
                }
            }
            dy += c;
            index += c;
        }
    }
}

static void backward_one(const struct fl_pool *pool, float *dx, const float *dy,
                         const uint8_t *index)
{
    size_t c = pool->c;
    size_t oy, ox, i, j;

    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            struct window win = window_of(pool, oy, ox);

            for (i = win.y0; i < win.y1; i++) {
                size_t row = (i - win.y0 + win.skip_y) * pool->size + win.skip_x;

                for (j = win.x0; j < win.x1; j++) {
                    add_where(dx + (i * pool->w + j) * c, dy, index, c,
                              (uint8_t)(row + j - win.x0));
                }
            }
            dy += c;
            index += c;
        }
    }
}

void fl_pool_backward(const struct fl_pool *pool, float *dx, size_t lddx, const float *dy,
                      size_t lddy, const uint8_t *index, size_t batch)
{
    size_t n = pool->oh * pool->ow * pool->c;
    size_t all = pool->h * pool->w * pool->c;
    bool apart = tiles(pool);
    size_t b;

    for (b = 0; b < batch; b++) {
        float *to = dx + b * lddx;

        if (apart) {
            backward_tiles(pool, to, dy + b * lddy, index + b * n);
            (void)memset(to + all, 0, (lddx - all) * sizeof(*dx));
        } else {
            (void)memset(to, 0, lddx * sizeof(*dx));
            backward_one(pool, to, dy + b * lddy, index + b * n);
        }
    }
}
