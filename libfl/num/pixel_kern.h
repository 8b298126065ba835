#ifndef FL_NUM_PIXEL_KERN_H
#define FL_NUM_PIXEL_KERN_H

/*
 * Kernels for everything that a network computes except matrix products, one row per instruction
 * set; private to libfl/num and its tests. They read each number at most a few times, so their cost
 * is memory bandwidth.
 *
 * A map is `rows` pixels with stride `ld`, of which a kernel processes n channels. Vectors of
 * constants have n floats, and so have totals, which are added to: in single precision within
 * FL__PIXEL_RUN pixels, in double beyond. Nothing is read or written outside the n channels, no
 * alignment is required, and any size may be 0. Softmax has its own rules.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/num/pool.h"

/* Number of pixels whose sums are accurate enough in single precision. */
#define FL__PIXEL_RUN 256

/* Batch-norm of n channels. */
struct fl__pixel_bn {
    const float *mean;
    /*
     * y = (x - mean) * scale + shift: subtracting the mean first, equal numbers cancel exactly.
     * With a small variance the factors are large, and FMAs would round differently.
     */
    const float *scale, *shift;
    const float *mean_dy, *by_dy, *by_x; /* dx = (dy - mean_dy) * by_dy + (x - mean) * by_x */
    const float *less; /* of combine_less(): dx = dy * by_dy + (x - mean) * by_x - less */
};

/* Floats from one pixel to the next, of three maps; 0: the same n numbers for all pixels. */
struct fl__pixel_steps {
    size_t to, a, b;
};

struct fl__pixel_kern {
    const char *name;
    /* y += bias, then max(y, 0) when `relu`; NaN stays NaN. */
    void (*bias)(float *y, size_t ld, const float *bias, size_t rows, size_t n, bool relu);
    /* dy = y > 0 ? dy : 0, for n numbers in a row. */
    void (*mask)(float *dy, const float *y, size_t n);
    /* total += dy */
    void (*sums)(double *total, const float *dy, size_t ld, size_t rows, size_t n);
    /* mask(), and sums() of the result. */
    void (*mask_sums)(double *total, float *dy, const float *y, size_t ld, size_t rows, size_t n);

    /* total += d, square += d * d with d = x - about */
    void (*spread)(double *total, double *square, const float *x, const float *about, size_t ld,
                   size_t rows, size_t n);
    /* y from x; then max(y, 0) when `relu`, where NaN stays NaN. */
    void (*affine)(float *y, const float *x, const struct fl__pixel_bn *bn, size_t ld, size_t rows,
                   size_t n, bool relu);
    /*
     * total += d, product += d * (x - mean), where d is dy, with `relu` only where affine() of x
     * is above zero: recomputing it is cheaper than reading its output.
     */
    void (*products)(double *total, double *product, const float *dy, const float *x,
                     const struct fl__pixel_bn *bn, size_t ld, size_t rows, size_t n, bool relu);
    /* dx from the same d. */
    void (*combine)(float *dx, const float *dy, const float *x, const struct fl__pixel_bn *bn,
                    size_t ld, size_t rows, size_t n, bool relu);
    /* The same for group norm, where by_dy may be 0 and so has no mean to subtract from dy. */
    void (*combine_less)(float *dx, const float *dy, const float *x, const struct fl__pixel_bn *bn,
                         size_t ld, size_t rows, size_t n, bool relu);

    /* to += a * b for `rows` pixels in their order, in single precision: depthwise convolution. */
    void (*accumulate)(float *to, const float *a, const float *b,
                       const struct fl__pixel_steps *steps, size_t rows, size_t n);

    /* Pooling of pool.h, for one sample. */
    void (*pool)(const struct fl_pool *pool, float *y, uint8_t *index, const float *x);
    /*
     * dx is completely overwritten, its padding is not. With y, the output of pool() on ReLU's
     * output, dx is the gradient of ReLU's input.
     */
    void (*unpool)(const struct fl_pool *pool, float *dx, const float *dy, const uint8_t *index,
                   const float *y);

    /* act.h; gelu_slope is the derivative. y may be x. */
    void (*sigmoid)(float *y, const float *x, size_t n);
    void (*tanh)(float *y, const float *x, size_t n);
    void (*gelu)(float *y, const float *x, size_t n);
    void (*gelu_slope)(float *y, const float *x, size_t n);

    /* Softmax of softmax.h. */
    double (*softmax)(float *q, const float *z, size_t n, double scale, float *ret_top);
};

/* Plain loops with sums in double: the oracle of the tests, and the kernels of "reference". */
extern const struct fl__pixel_kern fl__pixel_ref;
/* Vectors of four floats, for any processor. */
extern const struct fl__pixel_kern fl__pixel_plain;
#if defined(__x86_64__)
extern const struct fl__pixel_kern fl__pixel_avx512;
extern const struct fl__pixel_kern fl__pixel_avx2;
#endif

/* Channels whose totals a caller keeps at a time. */
#define FL__PIXEL_CHUNK 64

/* Adjacent samples without padding form one map: `n` maps of `rows` pixels, `ld` floats apart. */
struct fl__pixel_runs {
    size_t n, rows, ld;
};

/* For samples of two operands, `lda` and `ldb` floats apart. */
static inline struct fl__pixel_runs fl__pixel_runs(size_t batch, size_t pixels, size_t c,
                                                   size_t lda, size_t ldb)
{
    if (lda == ldb && (pixels == 1 || lda == pixels * c)) {
        return (struct fl__pixel_runs){1, batch * pixels, pixels == 1 ? lda : c};
    }
    return (struct fl__pixel_runs){batch, pixels, c};
}

/* dy[batch][pixels][c] and, with ReLU, its output; strides in floats per sample. */
struct fl__pixel_map {
    size_t c, pixels;
    float *dy;
    size_t lddy;
    const float *y; /* NULL: no ReLU, dy is unchanged */
    size_t ldy;
};
/* db = sums over batch and pixels of dy, masked by y first. */
void fl__pixel_bias_sums(const struct fl__pixel_kern *kern, float *db,
                         const struct fl__pixel_map *map, size_t batch);

/* The part of an output pixel's window inside the image. */
struct fl__pool_window {
    size_t y0, y1, x0, x1; /* rows and columns of the image */
    size_t place;          /* index of its first pixel in the whole window, row * size + column */
};

static inline struct fl__pool_window fl__pool_window(const struct fl_pool *pool, size_t oy,
                                                     size_t ox)
{
    size_t y = oy * pool->stride;
    size_t x = ox * pool->stride;
    size_t y1 = y + pool->size - pool->top;
    size_t x1 = x + pool->size - pool->left;
    struct fl__pool_window win = {
        .y0 = y > pool->top ? y - pool->top : 0,
        .y1 = y1 < pool->h ? y1 : pool->h,
        .x0 = x > pool->left ? x - pool->left : 0,
        .x1 = x1 < pool->w ? x1 : pool->w,
    };

    win.place = (win.y0 + pool->top - y) * pool->size + win.x0 + pool->left - x;
    return win;
}

#endif
