/*
 * Reference implementation of the kernels of pixel_kern.h: one number at a time, sums in double.
 * The oracle of the tests, and the kernels of instruction set "reference".
 */
#include <math.h>
#include <string.h>

#include "libfl/num/pixel_kern.h"
#include "libfl/num/softmax.h"

/* NaN passes: a diverged network must not look healthy. */
static float relu_of(float v, bool relu)
{
    return relu && v < 0.0f ? 0.0f : v;
}

static void ref_add_bias(float *y, size_t ld, const float *bias, size_t rows, size_t n, bool relu)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            y[r * ld + j] = relu_of(y[r * ld + j] + bias[j], relu);
        }
    }
}

static void ref_mask_all(float *dy, const float *y, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        dy[i] = y[i] > 0.0f ? dy[i] : 0.0f;
    }
}

static void ref_sums(double *total, const float *dy, size_t ld, size_t rows, size_t n)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            total[j] += (double)dy[r * ld + j];
        }
    }
}

static void ref_mask_sums(double *total, float *dy, const float *y, size_t ld, size_t rows,
                          size_t n)
{
    size_t r;

    for (r = 0; r < rows; r++) {
        ref_mask_all(dy + r * ld, y + r * ld, n);
    }
    ref_sums(total, dy, ld, rows, n);
}

static void ref_spread(double *total, double *square, const float *x, const float *about, size_t ld,
                       size_t rows, size_t n)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            double d = (double)x[r * ld + j] - (double)about[j];

            total[j] += d;
            square[j] += d * d;
        }
    }
}

static float affine_of(const struct fl__pixel_bn *bn, float x, size_t j)
{
    return (x - bn->mean[j]) * bn->scale[j] + bn->shift[j];
}

static void ref_affine(float *y, const float *x, const struct fl__pixel_bn *bn, size_t ld,
                       size_t rows, size_t n, bool relu)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            y[r * ld + j] = relu_of(affine_of(bn, x[r * ld + j], j), relu);
        }
    }
}

/* dy masked with ReLU. */
static double ref_relu_passed(const struct fl__pixel_bn *bn, float dy, float x, size_t j, bool relu)
{
    return relu && !(affine_of(bn, x, j) > 0.0f) ? 0.0 : (double)dy;
}

static void ref_products(double *total, double *product, const float *dy, const float *x,
                         const struct fl__pixel_bn *bn, size_t ld, size_t rows, size_t n, bool relu)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            size_t i = r * ld + j;
            double d = ref_relu_passed(bn, dy[i], x[i], j, relu);

            total[j] += d;
            product[j] += d * ((double)x[i] - (double)bn->mean[j]);
        }
    }
}

static void ref_combine(float *dx, const float *dy, const float *x, const struct fl__pixel_bn *bn,
                        size_t ld, size_t rows, size_t n, bool relu)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            size_t i = r * ld + j;
            double centred = (double)x[i] - (double)bn->mean[j];

            double d = ref_relu_passed(bn, dy[i], x[i], j, relu) - (double)bn->mean_dy[j];

            dx[i] = (float)(d * (double)bn->by_dy[j] + centred * (double)bn->by_x[j]);
        }
    }
}

static void ref_combine_less(float *dx, const float *dy, const float *x,
                             const struct fl__pixel_bn *bn, size_t ld, size_t rows, size_t n,
                             bool relu)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            size_t i = r * ld + j;
            double centred = (double)x[i] - (double)bn->mean[j];
            double d = ref_relu_passed(bn, dy[i], x[i], j, relu);

            dx[i] = (float)(d * (double)bn->by_dy[j] + centred * (double)bn->by_x[j] -
                            (double)bn->less[j]);
        }
    }
}

/* Channel j of the window: its largest number and its position. */
static void ref_largest(const struct fl_pool *pool, const struct fl__pool_window *win,
                        const float *x, size_t j, float *y, uint8_t *index)
{
    bool first = true;
    size_t r, c;

    for (r = win->y0; r < win->y1; r++) {
        for (c = win->x0; c < win->x1; c++) {
            float v = x[(r * pool->w + c) * pool->c + j];

            /* Only NaN differs from itself. */
            if (first || v > *y || v != v) {
                *y = v;
                *index = (uint8_t)(win->place + (r - win->y0) * pool->size + (c - win->x0));
                first = false;
            }
        }
    }
}

static void ref_pool_sample(const struct fl_pool *pool, float *y, uint8_t *index, const float *x)
{
    size_t oy, ox, j;

    for (oy = 0; oy < pool->oh; oy++) {
        for (ox = 0; ox < pool->ow; ox++) {
            const struct fl__pool_window win = fl__pool_window(pool, oy, ox);

            for (j = 0; j < pool->c; j++) {
                ref_largest(pool, &win, x, j, y++, index++);
            }
        }
    }
}

static void ref_unpool_sample(const struct fl_pool *pool, float *dx, const float *dy,
                              const uint8_t *index, const float *y)
{
    size_t i;

    (void)memset(dx, 0, pool->h * pool->w * pool->c * sizeof(*dx));
    for (i = 0; i < pool->oh * pool->ow * pool->c; i++) {
        size_t pixel = i / pool->c;
        size_t row = pixel / pool->ow * pool->stride + index[i] / pool->size - pool->top;
        size_t column = pixel % pool->ow * pool->stride + index[i] % pool->size - pool->left;

        if (y == NULL || y[i] > 0.0f) {
            dx[(row * pool->w + column) * pool->c + i % pool->c] += dy[i];
        }
    }
}

static void ref_sigmoid(float *y, const float *x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] = (float)(1.0 / (1.0 + exp(-(double)x[i])));
    }
}

static void ref_tanh(float *y, const float *x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] = (float)tanh((double)x[i]);
    }
}

static double ref_normal_below(double x)
{
    return 0.5 * erfc(-x * 0.70710678118654752);
}

static void ref_gelu(float *y, const float *x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] = (float)((double)x[i] * ref_normal_below((double)x[i]));
    }
}

static void ref_gelu_slope(float *y, const float *x, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        double v = (double)x[i];

        y[i] = (float)(ref_normal_below(v) + v * 0.39894228040143268 * exp(-0.5 * v * v));
    }
}

static double ref_softmax(float *q, const float *z, size_t n, double scale, float *ret_top)
{
    float top = z[0];
    double sum = 0.0;
    size_t j;

    for (j = 1; j < n; j++) {
        top = z[j] > top ? z[j] : top;
    }
    for (j = 0; j < n; j++) {
        sum += exp((double)(z[j] - top));
    }
    for (j = 0; q != NULL && j < fl_softmax_stride(n); j++) {
        q[j] = j < n ? (float)(exp((double)(z[j] - top)) * scale / sum) : 0.0f;
    }
    *ret_top = top;
    return sum;
}

static void ref_accumulate(float *to, const float *a, const float *b,
                           const struct fl__pixel_steps *steps, size_t rows, size_t n)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            to[r * steps->to + j] += a[r * steps->a + j] * b[r * steps->b + j];
        }
    }
}

const struct fl__pixel_kern fl__pixel_ref = {
    .name = "reference",
    .bias = ref_add_bias,
    .mask = ref_mask_all,
    .sums = ref_sums,
    .mask_sums = ref_mask_sums,
    .spread = ref_spread,
    .affine = ref_affine,
    .products = ref_products,
    .combine = ref_combine,
    .combine_less = ref_combine_less,
    .accumulate = ref_accumulate,
    .pool = ref_pool_sample,
    .unpool = ref_unpool_sample,
    .sigmoid = ref_sigmoid,
    .tanh = ref_tanh,
    .gelu = ref_gelu,
    .gelu_slope = ref_gelu_slope,
    .softmax = ref_softmax,
};
