#ifndef FL_NUM_PIXEL_IMPL_H
#define FL_NUM_PIXEL_IMPL_H

/*
 * The kernels of pixel_kern.h except pooling (pool_impl.h), written once with vectors of FL__LANES
 * floats. Four vectors of channels at a time are processed over all pixels, so that constants and
 * sums stay in registers and every cache line is read once; then single vectors; the last one may
 * be partial, which is slower.
 */

#include <string.h>

#include "libfl/num/lanes_impl.h"
#include "libfl/num/pixel_kern.h"

#define COLS 4

/* Calls f(cols, lanes, ...) for all channels; the arguments may use j, the first of a call. */
#define JVP_CHANNELS(f, channels, ...)                               \
    do {                                                             \
        size_t left = (channels);                                    \
        size_t j = 0;                                                \
                                                                     \
        for (; left >= COLS * FL__LANES; left -= COLS * FL__LANES) { \
            f(COLS, FL__LANES, __VA_ARGS__);                         \
            j += COLS * FL__LANES;                                   \
        }                                                            \
        for (; left >= FL__LANES; left -= FL__LANES) {               \
            f(1, FL__LANES, __VA_ARGS__);                            \
            j += FL__LANES;                                          \
        }                                                            \
        if (left > 0) {                                              \
            f(1, left, __VA_ARGS__);                                 \
        }                                                            \
    } while (0)

/* The first `lanes` floats of a vector; the others are zero. */
INLINE vec load_lanes(const float *p, size_t lanes)
{
    float all[FL__LANES] = {0};
    size_t i;

    if (lanes == FL__LANES) {
        return load(p);
    }
    for (i = 0; i < lanes; i++) {
        all[i] = p[i];
    }
    return load(all);
}

INLINE void store_lanes(float *p, vec v, size_t lanes)
{
    float all[FL__LANES];
    size_t i;

    if (lanes == FL__LANES) {
        store(p, v);
        return;
    }
    store(all, v);
    for (i = 0; i < lanes; i++) {
        p[i] = all[i];
    }
}

/* v where `mask` is set, otherwise 0. */
INLINE vec select_lanes(vec v, vec_mask mask)
{
    return (vec)((vec_mask)v & mask);
}

INLINE void load_cols(vec *to, const float *from, size_t cols, size_t lanes)
{
    size_t i;

    UNROLL for (i = 0; i < cols; i++)
    {
        to[i] = load_lanes(from + i * FL__LANES, lanes);
    }
}

INLINE void zero_cols(vec *to, size_t cols)
{
    size_t i;

    UNROLL for (i = 0; i < cols; i++)
    {
        to[i] = (vec){0};
    }
}

INLINE void add_totals(double *total, const vec *sum, size_t cols, size_t lanes)
{
    float all[COLS * FL__LANES];
    size_t i;

    UNROLL for (i = 0; i < cols; i++)
    {
        store(all + i * FL__LANES, sum[i]);
    }
    for (i = 0; i < (cols - 1) * FL__LANES + lanes; i++) {
        total[i] += (double)all[i];
    }
}

INLINE size_t run_of(size_t rows)
{
    return rows < FL__PIXEL_RUN ? rows : FL__PIXEL_RUN;
}

INLINE void bias_cols(size_t cols, size_t lanes, float *y, const float *bias, size_t ld,
                      size_t rows, bool relu)
{
    vec b[COLS];
    size_t r, i;

    load_cols(b, bias, cols, lanes);
    for (r = 0; r < rows; r++) {
        UNROLL for (i = 0; i < cols; i++)
        {
            float *at = y + r * ld + i * FL__LANES;
            vec v = load_lanes(at, lanes) + b[i];

            store_lanes(at, relu ? relu_of(v) : v, lanes);
        }
    }
}

static void pixel_add_bias(float *y, size_t ld, const float *bias, size_t rows, size_t n, bool relu)
{
    if (relu) {
        JVP_CHANNELS(bias_cols, n, y + j, bias + j, ld, rows, true);
    } else {
        JVP_CHANNELS(bias_cols, n, y + j, bias + j, ld, rows, false);
    }
}

INLINE void mask_lanes(float *dy, const float *y, size_t lanes)
{
    store_lanes(dy, select_lanes(load_lanes(dy, lanes), load_lanes(y, lanes) > (vec){0}), lanes);
}

static void pixel_mask_all(float *dy, const float *y, size_t n)
{
    size_t i = 0;

    for (; i + FL__LANES <= n; i += FL__LANES) {
        mask_lanes(dy + i, y + i, FL__LANES);
    }
    mask_lanes(dy + i, y + i, n - i);
}

/* With y the sums are those of the masked dy, which is stored in `masked`. */
INLINE void sums_run(size_t cols, size_t lanes, double *total, float *masked, const float *dy,
                     const float *y, size_t ld, size_t rows)
{
    vec sum[COLS];
    size_t r, i;

    zero_cols(sum, cols);
    for (r = 0; r < rows; r++) {
        UNROLL for (i = 0; i < cols; i++)
        {
            size_t at = r * ld + i * FL__LANES;
            vec d = load_lanes(dy + at, lanes);

            if (y != NULL) {
                d = select_lanes(d, load_lanes(y + at, lanes) > (vec){0});
                store_lanes(masked + at, d, lanes);
            }
            sum[i] += d;
        }
    }
    add_totals(total, sum, cols, lanes);
}

static void pixel_sums(double *total, const float *dy, size_t ld, size_t rows, size_t n)
{
    size_t r;

    for (r = 0; r < rows; r += run_of(rows - r)) {
        JVP_CHANNELS(sums_run, n, total + j, NULL, dy + r * ld + j, NULL, ld, run_of(rows - r));
    }
}

static void pixel_mask_sums(double *total, float *dy, const float *y, size_t ld, size_t rows,
                            size_t n)
{
    size_t r;

    for (r = 0; r < rows; r += run_of(rows - r)) {
        JVP_CHANNELS(sums_run, n, total + j, dy + r * ld + j, dy + r * ld + j, y + r * ld + j, ld,
                     run_of(rows - r));
    }
}

INLINE void spread_run(size_t cols, size_t lanes, double *total, double *square, const float *x,
                       const float *about, size_t ld, size_t rows)
{
    vec sum[COLS], sum2[COLS], a[COLS];
    size_t r, i;

    load_cols(a, about, cols, lanes);
    zero_cols(sum, cols);
    zero_cols(sum2, cols);
    for (r = 0; r < rows; r++) {
        UNROLL for (i = 0; i < cols; i++)
        {
            vec d = load_lanes(x + r * ld + i * FL__LANES, lanes) - a[i];

            sum[i] += d;
            sum2[i] += d * d;
        }
    }
    add_totals(total, sum, cols, lanes);
    add_totals(square, sum2, cols, lanes);
}

static void pixel_spread(double *total, double *square, const float *x, const float *about,
                         size_t ld, size_t rows, size_t n)
{
    size_t r;

    for (r = 0; r < rows; r += run_of(rows - r)) {
        JVP_CHANNELS(spread_run, n, total + j, square + j, x + r * ld + j, about + j, ld,
                     run_of(rows - r));
    }
}

INLINE void affine_cols(size_t cols, size_t lanes, float *y, const float *x, const float *mean,
                        const float *scale, const float *shift, size_t ld, size_t rows, bool relu)
{
    vec m[COLS], a[COLS], b[COLS];
    size_t r, i;

    load_cols(m, mean, cols, lanes);
    load_cols(a, scale, cols, lanes);
    load_cols(b, shift, cols, lanes);
    for (r = 0; r < rows; r++) {
        UNROLL for (i = 0; i < cols; i++)
        {
            size_t at = r * ld + i * FL__LANES;
            vec v = (load_lanes(x + at, lanes) - m[i]) * a[i] + b[i];

            store_lanes(y + at, relu ? relu_of(v) : v, lanes);
        }
    }
}

static void pixel_affine(float *y, const float *x, const struct fl__pixel_bn *bn, size_t ld,
                         size_t rows, size_t n, bool relu)
{
    if (relu) {
        JVP_CHANNELS(affine_cols, n, y + j, x + j, bn->mean + j, bn->scale + j, bn->shift + j, ld,
                     rows, true);
    } else {
        JVP_CHANNELS(affine_cols, n, y + j, x + j, bn->mean + j, bn->scale + j, bn->shift + j, ld,
                     rows, false);
    }
}

/* Constants of one block of channels. */
struct constants {
    vec mean[COLS], scale[COLS], shift[COLS], mean_dy[COLS], by_dy[COLS], by_x[COLS], less[COLS];
};

/* dy where the affine output of x = mean + centred is above zero; 0 for NaN. */
INLINE vec pixel_relu_passed(vec dy, vec centred, const struct constants *k, size_t i, bool relu)
{
    return relu ? select_lanes(dy, centred * k->scale[i] + k->shift[i] > (vec){0}) : dy;
}

INLINE void products_run(size_t cols, size_t lanes, size_t j, double *total, double *product,
                         const float *dy, const float *x, const struct fl__pixel_bn *bn, size_t ld,
                         size_t rows, bool relu)
{
    struct constants k;
    vec sum[COLS], sum2[COLS];
    size_t r, i;

    load_cols(k.mean, bn->mean + j, cols, lanes);
    if (relu) {
        load_cols(k.scale, bn->scale + j, cols, lanes);
        load_cols(k.shift, bn->shift + j, cols, lanes);
    }
    zero_cols(sum, cols);
    zero_cols(sum2, cols);
    for (r = 0; r < rows; r++) {
        UNROLL for (i = 0; i < cols; i++)
        {
            size_t at = r * ld + j + i * FL__LANES;
            vec centred = load_lanes(x + at, lanes) - k.mean[i];
            vec d = pixel_relu_passed(load_lanes(dy + at, lanes), centred, &k, i, relu);

            sum[i] += d;
            sum2[i] += d * centred;
        }
    }
    add_totals(total + j, sum, cols, lanes);
    add_totals(product + j, sum2, cols, lanes);
}

static void pixel_products(double *total, double *product, const float *dy, const float *x,
                           const struct fl__pixel_bn *bn, size_t ld, size_t rows, size_t n,
                           bool relu)
{
    size_t r;

    for (r = 0; r < rows; r += run_of(rows - r)) {
        if (relu) {
            JVP_CHANNELS(products_run, n, j, total, product, dy + r * ld, x + r * ld, bn, ld,
                         run_of(rows - r), true);
        } else {
            JVP_CHANNELS(products_run, n, j, total, product, dy + r * ld, x + r * ld, bn, ld,
                         run_of(rows - r), false);
        }
    }
}

INLINE void combine_cols(size_t cols, size_t lanes, size_t j, float *dx, const float *dy,
                         const float *x, const struct fl__pixel_bn *bn, size_t ld, size_t rows,
                         bool relu)
{
    struct constants k;
    size_t r, i;

    load_cols(k.mean, bn->mean + j, cols, lanes);
    if (relu) {
        load_cols(k.scale, bn->scale + j, cols, lanes);
        load_cols(k.shift, bn->shift + j, cols, lanes);
    }
    load_cols(k.by_dy, bn->by_dy + j, cols, lanes);
    load_cols(k.by_x, bn->by_x + j, cols, lanes);
    load_cols(k.mean_dy, bn->mean_dy + j, cols, lanes);
    for (r = 0; r < rows; r++) {
        UNROLL for (i = 0; i < cols; i++)
        {
            size_t at = r * ld + j + i * FL__LANES;
            vec centred = load_lanes(x + at, lanes) - k.mean[i];
            vec d = pixel_relu_passed(load_lanes(dy + at, lanes), centred, &k, i, relu);

            store_lanes(dx + at, (d - k.mean_dy[i]) * k.by_dy[i] + centred * k.by_x[i], lanes);
        }
    }
}

static void pixel_combine(float *dx, const float *dy, const float *x, const struct fl__pixel_bn *bn,
                          size_t ld, size_t rows, size_t n, bool relu)
{
    if (relu) {
        JVP_CHANNELS(combine_cols, n, j, dx, dy, x, bn, ld, rows, true);
    } else {
        JVP_CHANNELS(combine_cols, n, j, dx, dy, x, bn, ld, rows, false);
    }
}

INLINE void combine_less_cols(size_t cols, size_t lanes, size_t j, float *dx, const float *dy,
                              const float *x, const struct fl__pixel_bn *bn, size_t ld, size_t rows,
                              bool relu)
{
    struct constants k;
    size_t r, i;

    load_cols(k.mean, bn->mean + j, cols, lanes);
    if (relu) {
        load_cols(k.scale, bn->scale + j, cols, lanes);
        load_cols(k.shift, bn->shift + j, cols, lanes);
    }
    load_cols(k.by_dy, bn->by_dy + j, cols, lanes);
    load_cols(k.by_x, bn->by_x + j, cols, lanes);
    load_cols(k.less, bn->less + j, cols, lanes);
    for (r = 0; r < rows; r++) {
        UNROLL for (i = 0; i < cols; i++)
        {
            size_t at = r * ld + j + i * FL__LANES;
            vec centred = load_lanes(x + at, lanes) - k.mean[i];
            vec d = pixel_relu_passed(load_lanes(dy + at, lanes), centred, &k, i, relu);

            store_lanes(dx + at, d * k.by_dy[i] + centred * k.by_x[i] - k.less[i], lanes);
        }
    }
}

static void pixel_combine_less(float *dx, const float *dy, const float *x,
                               const struct fl__pixel_bn *bn, size_t ld, size_t rows, size_t n,
                               bool relu)
{
    if (relu) {
        JVP_CHANNELS(combine_less_cols, n, j, dx, dy, x, bn, ld, rows, true);
    } else {
        JVP_CHANNELS(combine_less_cols, n, j, dx, dy, x, bn, ld, rows, false);
    }
}

#endif
