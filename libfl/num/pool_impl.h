#ifndef FL_NUM_POOL_IMPL_H
#define FL_NUM_POOL_IMPL_H

/* The pooling kernels of pixel_kern.h; behind pixel_impl.h. */

#include "libfl/num/pixel_impl.h"

/* Wholly where there are four pixels in a window, as most have. */
#if defined(__clang__)
#define UNROLL4 _Pragma("clang loop unroll_count(4)")
#else
#define UNROLL4 _Pragma("GCC unroll 4")
#endif

/* Bytes as integers of a vector's width. */
typedef uint8_t vec_bytes __attribute__((vector_size(FL__LANES)));
typedef uint16_t vec_shorts __attribute__((vector_size(2 * FL__LANES)));
typedef uint32_t vec_words __attribute__((vector_size(4 * FL__LANES)));
typedef uint8_t vec_bytes_mem __attribute__((vector_size(FL__LANES), aligned(1), may_alias));

/* By way of shorts: for one step GCC 12 takes each byte out by itself. */
INLINE vec_mask load_bytes(const uint8_t *p, size_t lanes)
{
    uint8_t all[FL__LANES] = {0};
    vec_bytes bytes;
    size_t i;

    if (lanes == FL__LANES) {
        bytes = *(const vec_bytes_mem *)p;
    } else {
        for (i = 0; i < lanes; i++) {
            all[i] = p[i];
        }
        bytes = *(const vec_bytes_mem *)all;
    }
    return (vec_mask) __builtin_convertvector(__builtin_convertvector(bytes, vec_shorts),
                                              vec_words);
}

INLINE void store_bytes(uint8_t *p, vec_mask v, size_t lanes)
{
    vec_bytes all = __builtin_convertvector(v, vec_bytes);
    size_t i;

    if (lanes == FL__LANES) {
        *(vec_bytes_mem *)p = all;
        return;
    }
    for (i = 0; i < lanes; i++) {
        p[i] = all[i];
    }
}

/* Pixels of the window of one output pixel: where they begin, and their places. */
struct taps {
    size_t n;
    size_t first;                                       /* of the image's floats */
    size_t offset[FL_POOL_SIZE_MAX * FL_POOL_SIZE_MAX]; /* from that on */
    int32_t place[FL_POOL_SIZE_MAX * FL_POOL_SIZE_MAX];
};

/* `taps` may be those of another window: of two that lie wholly on the image they are the same. */
INLINE void find_taps(struct taps *taps, const struct fl_pool *pool, size_t oy, size_t ox)
{
    const struct fl__pool_window win = fl__pool_window(pool, oy, ox);
    size_t n = (win.y1 - win.y0) * (win.x1 - win.x0);
    size_t i, j;

    taps->first = (win.y0 * pool->w + win.x0) * pool->c;
    if (n == pool->size * pool->size && taps->n == n) {
        return;
    }
    taps->n = 0;
    for (i = win.y0; i < win.y1; i++) {
        for (j = win.x0; j < win.x1; j++) {
            taps->offset[taps->n] = ((i - win.y0) * pool->w + j - win.x0) * pool->c;
            taps->place[taps->n] = (int32_t)(win.place + (i - win.y0) * pool->size + (j - win.x0));
            taps->n++;
        }
    }
}

/*
 * Asks for what the window of the next row brings new, one row of windows before it is needed: the
 * rows of a window lie apart, and without that a pool waits for memory half of its time.
 */
INLINE void prefetch_below(const struct fl_pool *pool, const float *image, const struct taps *taps)
{
    size_t end = pool->h * pool->w * pool->c;
    size_t i, j;

    for (i = 0; i < pool->stride; i++) {
        size_t at = taps->first + (pool->size + i) * pool->w * pool->c;

        for (j = at; j < at + pool->stride * pool->c && j < end; j += 16) {
            __builtin_prefetch(image + j);
        }
    }
}

/* The first of the largest; NaN is larger than everything, and the last one of several counts. */
INLINE void take_largest(float *y, uint8_t *index, const float *x, const struct taps *taps,
                         size_t n_taps, size_t lanes)
{
    vec best = load_lanes(x + taps->offset[0], lanes);
    vec_mask place = taps->place[0] - (vec_mask){0};
    size_t i;

    UNROLL4 for (i = 1; i < n_taps; i++)
    {
        vec v = load_lanes(x + taps->offset[i], lanes);
        vec_mask take = (v > best) | (v != v);

        best = (vec)(((vec_mask)v & take) | ((vec_mask)best & ~take));
        place = (take & taps->place[i]) | (place & ~take);
    }
    store_lanes(y, best, lanes);
    store_bytes(index, place, lanes);
}

INLINE void take_pixel(float *y, uint8_t *index, const float *x, const struct taps *taps,
                       size_t n_taps, size_t c)
{
    size_t j = 0;

    for (; j + FL__LANES <= c; j += FL__LANES) {
        take_largest(y + j, index + j, x + j, taps, n_taps, FL__LANES);
    }
    if (j < c) {
        take_largest(y + j, index + j, x + j, taps, n_taps, c - j);
    }
}

static void pool_sample(const struct fl_pool *pool, float *y, uint8_t *index, const float *x)
{
    struct taps taps;
    size_t oy, ox;

    taps.n = 0;
    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            find_taps(&taps, pool, oy, ox);
            prefetch_below(pool, x, &taps);
            if (taps.n == 4) {
                take_pixel(y, index, x + taps.first, &taps, 4, pool->c);
            } else {
                take_pixel(y, index, x + taps.first, &taps, taps.n, pool->c);
            }
            y += pool->c;
            index += pool->c;
        }
    }
}

/* Windows side by side that cover the image: each pixel belongs to one of them. */
static bool tiles(const struct fl_pool *pool)
{
    return pool->stride == pool->size && pool->top == 0 && pool->left == 0 &&
           pool->oh * pool->size == pool->h && pool->ow * pool->size == pool->w;
}

INLINE void give_lanes(float *dx, const float *dy, const uint8_t *index, const float *y,
                       const struct taps *taps, size_t n_taps, size_t lanes, bool add)
{
    vec d = load_lanes(dy, lanes);
    vec_mask place = load_bytes(index, lanes);
    size_t i;

    if (y != NULL) {
        d = only(d, load_lanes(y, lanes) > (vec){0});
    }
    UNROLL4 for (i = 0; i < n_taps; i++)
    {
        float *to = dx + taps->offset[i];
        vec mine = only(d, place == taps->place[i]);

        store_lanes(to, add ? load_lanes(to, lanes) + mine : mine, lanes);
    }
}

INLINE void give_pixel(float *dx, const float *dy, const uint8_t *index, const float *y,
                       const struct taps *taps, size_t n_taps, size_t c, bool add)
{
    size_t j = 0;

    for (; j + FL__LANES <= c; j += FL__LANES) {
        give_lanes(dx + j, dy + j, index + j, y != NULL ? y + j : NULL, taps, n_taps, FL__LANES,
                   add);
    }
    if (j < c) {
        give_lanes(dx + j, dy + j, index + j, y != NULL ? y + j : NULL, taps, n_taps, c - j, add);
    }
}

static void unpool_sample(const struct fl_pool *pool, float *dx, const float *dy,
                          const uint8_t *index, const float *y)
{
    bool apart = tiles(pool);
    struct taps taps;
    size_t oy, ox;

    taps.n = 0;
    if (!apart) {
        (void)memset(dx, 0, pool->h * pool->w * pool->c * sizeof(*dx));
    }
    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            size_t at = (oy * pool->ow + ox) * pool->c;
            const float *mask = y != NULL ? y + at : NULL;
            float *to;

            find_taps(&taps, pool, oy, ox);
            prefetch_below(pool, dx, &taps);
            to = dx + taps.first;
            if (apart && taps.n == 4) {
                give_pixel(to, dy + at, index + at, mask, &taps, 4, pool->c, false);
            } else {
                give_pixel(to, dy + at, index + at, mask, &taps, taps.n, pool->c, !apart);
            }
        }
    }
}

#define FL__PIXEL_ROW(row)                                                                       \
    {                                                                                            \
        .name = (row), .bias = add_bias, .mask = mask_all, .sums = sums, .mask_sums = mask_sums, \
        .spread = spread, .affine = affine, .products = products, .combine = combine,            \
        .pool = pool_sample, .unpool = unpool_sample, .softmax = softmax                         \
    }

#endif
