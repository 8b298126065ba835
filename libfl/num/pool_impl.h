#ifndef FL_NUM_POOL_IMPL_H
#define FL_NUM_POOL_IMPL_H

/* The pooling kernels of pixel_kern.h; included after pixel_impl.h. */

#include "libfl/num/pixel_impl.h"

/* Unrolled completely for windows of four pixels, the most common size. */
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

/* Widened via shorts: in one step GCC 12 extracts each byte separately. */
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

/*
 * Window offsets: the pixels of the window of one output pixel, and their positions in the
 * window.
 */
struct window_offsets {
    size_t n;
    size_t first; /* start of the window in the image, in floats */
    size_t offset[FL_POOL_SIZE_MAX * FL_POOL_SIZE_MAX]; /* relative to the start */
    int32_t place[FL_POOL_SIZE_MAX * FL_POOL_SIZE_MAX];
};

/*
 * `window` may contain the offsets of another window: for two windows completely inside the
 * image they are the same.
 */
INLINE void find_offsets(struct window_offsets *window, const struct fl_pool *pool, size_t oy,
                         size_t ox)
{
    const struct fl__pool_window win = fl__pool_window(pool, oy, ox);
    size_t n = (win.y1 - win.y0) * (win.x1 - win.x0);
    size_t i, j;

    window->first = (win.y0 * pool->w + win.x0) * pool->c;
    if (n == pool->size * pool->size && window->n == n) {
        return;
    }
    window->n = 0;
    for (i = win.y0; i < win.y1; i++) {
        for (j = win.x0; j < win.x1; j++) {
            window->offset[window->n] = ((i - win.y0) * pool->w + j - win.x0) * pool->c;
            window->place[window->n] =
                (int32_t)(win.place + (i - win.y0) * pool->size + (j - win.x0));
            window->n++;
        }
    }
}

/*
 * Prefetches the new data of the window in the next row, one row of windows ahead: the rows of a
 * window are far apart, and without prefetching a pool waits for memory half of the time.
 */
INLINE void prefetch_below(const struct fl_pool *pool, const float *image,
                           const struct window_offsets *window)
{
    size_t end = pool->h * pool->w * pool->c;
    size_t i, j;

    for (i = 0; i < pool->stride; i++) {
        size_t at = window->first + (pool->size + i) * pool->w * pool->c;

        for (j = at; j < at + pool->stride * pool->c && j < end; j += 16) {
            __builtin_prefetch(image + j);
        }
    }
}

/* The first of the largest numbers; NaN counts as the largest, and the last of several NaN wins. */
INLINE void pool_largest(float *y, uint8_t *index, const float *x,
                         const struct window_offsets *window, size_t n_offsets, size_t lanes)
{
    vec best = load_lanes(x + window->offset[0], lanes);
    vec_mask place = window->place[0] - (vec_mask){0};
    size_t i;

    UNROLL4 for (i = 1; i < n_offsets; i++)
    {
        vec v = load_lanes(x + window->offset[i], lanes);
        vec_mask take = (v > best) | (v != v);

        best = (vec)(((vec_mask)v & take) | ((vec_mask)best & ~take));
        place = (take & window->place[i]) | (place & ~take);
    }
    store_lanes(y, best, lanes);
    store_bytes(index, place, lanes);
}

INLINE void pool_pixel(float *y, uint8_t *index, const float *x,
                       const struct window_offsets *window, size_t n_offsets, size_t c)
{
    size_t j = 0;

    for (; j + FL__LANES <= c; j += FL__LANES) {
        pool_largest(y + j, index + j, x + j, window, n_offsets, FL__LANES);
    }
    if (j < c) {
        pool_largest(y + j, index + j, x + j, window, n_offsets, c - j);
    }
}

static void pixel_pool_sample(const struct fl_pool *pool, float *y, uint8_t *index, const float *x)
{
    struct window_offsets window;
    size_t oy, ox;

    window.n = 0;
    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            find_offsets(&window, pool, oy, ox);
            prefetch_below(pool, x, &window);
            if (window.n == 4) {
                pool_pixel(y, index, x + window.first, &window, 4, pool->c);
            } else {
                pool_pixel(y, index, x + window.first, &window, window.n, pool->c);
            }
            y += pool->c;
            index += pool->c;
        }
    }
}

/* True when adjacent windows cover the image: each pixel belongs to exactly one. */
static bool pool_windows_tile(const struct fl_pool *pool)
{
    return pool->stride == pool->size && pool->top == 0 && pool->left == 0 &&
           pool->oh * pool->size == pool->h && pool->ow * pool->size == pool->w;
}

INLINE void unpool_lanes(float *dx, const float *dy, const uint8_t *index, const float *y,
                         const struct window_offsets *window, size_t n_offsets, size_t lanes,
                         bool add)
{
    vec d = load_lanes(dy, lanes);
    vec_mask place = load_bytes(index, lanes);
    size_t i;

    if (y != NULL) {
        d = select_lanes(d, load_lanes(y, lanes) > (vec){0});
    }
    UNROLL4 for (i = 0; i < n_offsets; i++)
    {
        float *to = dx + window->offset[i];
        vec grad = select_lanes(d, place == window->place[i]);

        store_lanes(to, add ? load_lanes(to, lanes) + grad : grad, lanes);
    }
}

INLINE void unpool_pixel(float *dx, const float *dy, const uint8_t *index, const float *y,
                         const struct window_offsets *window, size_t n_offsets, size_t c, bool add)
{
    size_t j = 0;

    for (; j + FL__LANES <= c; j += FL__LANES) {
        unpool_lanes(dx + j, dy + j, index + j, y != NULL ? y + j : NULL, window, n_offsets,
                     FL__LANES, add);
    }
    if (j < c) {
        unpool_lanes(dx + j, dy + j, index + j, y != NULL ? y + j : NULL, window, n_offsets, c - j,
                     add);
    }
}

static void pixel_unpool_sample(const struct fl_pool *pool, float *dx, const float *dy,
                                const uint8_t *index, const float *y)
{
    bool apart = pool_windows_tile(pool);
    struct window_offsets window;
    size_t oy, ox;

    window.n = 0;
    if (!apart) {
        (void)memset(dx, 0, pool->h * pool->w * pool->c * sizeof(*dx));
    }
    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            size_t at = (oy * pool->ow + ox) * pool->c;
            const float *mask = y != NULL ? y + at : NULL;
            float *to;

            find_offsets(&window, pool, oy, ox);
            prefetch_below(pool, dx, &window);
            to = dx + window.first;
            if (apart && window.n == 4) {
                unpool_pixel(to, dy + at, index + at, mask, &window, 4, pool->c, false);
            } else {
                unpool_pixel(to, dy + at, index + at, mask, &window, window.n, pool->c, !apart);
            }
        }
    }
}

/* --- products of a depthwise convolution --- */

/* Vectors of channels whose sums stay in registers. */
#define ACCUMULATED 4

INLINE void accumulate_vectors(float *to, const float *a, const float *b,
                               const struct fl__pixel_steps *steps, size_t rows, size_t n_vecs)
{
    size_t r, j;

    if (steps->to == 0) {
        vec sum[ACCUMULATED];

        UNROLL for (j = 0; j < n_vecs; j++)
        {
            sum[j] = load(to + j * FL__LANES);
        }
        for (r = 0; r < rows; r++) {
            UNROLL for (j = 0; j < n_vecs; j++)
            {
                sum[j] +=
                    load(a + r * steps->a + j * FL__LANES) * load(b + r * steps->b + j * FL__LANES);
            }
        }
        UNROLL for (j = 0; j < n_vecs; j++)
        {
            store(to + j * FL__LANES, sum[j]);
        }
        return;
    }
    for (r = 0; r < rows; r++) {
        UNROLL for (j = 0; j < n_vecs; j++)
        {
            float *at = to + r * steps->to + j * FL__LANES;

            store(at, load(at) + load(a + r * steps->a + j * FL__LANES) *
                                     load(b + r * steps->b + j * FL__LANES));
        }
    }
}

/* The last channels, fewer than a vector. */
INLINE void accumulate_rest(float *to, const float *a, const float *b,
                            const struct fl__pixel_steps *steps, size_t rows, size_t n)
{
    size_t r;

    for (r = 0; r < rows; r++) {
        float *at = to + r * steps->to;

        store_lanes(at,
                    load_lanes(at, n) +
                        load_lanes(a + r * steps->a, n) * load_lanes(b + r * steps->b, n),
                    n);
    }
}

static void pixel_accumulate(float *to, const float *a, const float *b,
                             const struct fl__pixel_steps *steps, size_t rows, size_t n)
{
    size_t j = 0;

    for (; j + ACCUMULATED * FL__LANES <= n; j += ACCUMULATED * FL__LANES) {
        accumulate_vectors(to + j, a + j, b + j, steps, rows, ACCUMULATED);
    }
    for (; j + FL__LANES <= n; j += FL__LANES) {
        accumulate_vectors(to + j, a + j, b + j, steps, rows, 1);
    }
    if (j < n) {
        accumulate_rest(to + j, a + j, b + j, steps, rows, n - j);
    }
}

#define FL__PIXEL_ROW(row)                                                                        \
    {                                                                                             \
        .name = (row), .bias = pixel_add_bias, .mask = pixel_mask_all, .sums = pixel_sums,        \
        .mask_sums = pixel_mask_sums, .spread = pixel_spread, .affine = pixel_affine,             \
        .products = pixel_products, .combine = pixel_combine, .combine_less = pixel_combine_less, \
        .accumulate = pixel_accumulate, .pool = pixel_pool_sample, .unpool = pixel_unpool_sample, \
        .sigmoid = pixel_sigmoid, .tanh = pixel_tanh, .gelu = pixel_gelu,                         \
        .gelu_slope = pixel_gelu_slope, .softmax = pixel_softmax                                  \
    }

#endif
