#include "libfl/num/norm.h"

#include <math.h>
#include <string.h>

/* Channels that are treated at once, their sums beside the loop. */
#define CHUNK 64

/*
 * Sums of one sample in float, those of the batch in double: a map of 32x32 loses nothing,
 * and a batch of any size adds no error.
 */
struct totals {
    double a[CHUNK];
    double b[CHUNK];
};

static void add_sums(struct totals *t, const float *x, size_t c, size_t pixels, size_t n)
{
    float sum[CHUNK] = {0};
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            sum[j] += x[p * c + j];
        }
    }
    for (j = 0; j < n; j++) {
        t->a[j] += (double)sum[j];
    }
}

static void add_squares(struct totals *t, const float *x, const float *mean, size_t c,
                        size_t pixels, size_t n)
{
    float sum[CHUNK] = {0};
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            float d = x[p * c + j] - mean[j];

            sum[j] += d * d;
        }
    }
    for (j = 0; j < n; j++) {
        t->b[j] += (double)sum[j];
    }
}

void fl_bn_moments(const struct fl_bn *bn, float *mean, float *var, const float *x, size_t ldx,
                   size_t batch)
{
    double count = (double)(batch * bn->pixels);
    size_t c0, b, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
        struct totals t = {.a = {0}};

        for (b = 0; b < batch; b++) {
            add_sums(&t, x + b * ldx + c0, bn->c, bn->pixels, n);
        }
        for (j = 0; j < n; j++) {
            mean[c0 + j] = (float)(t.a[j] / count);
        }
        /* A pass of its own: the difference of squares loses a small variance. */
        for (b = 0; b < batch; b++) {
            add_squares(&t, x + b * ldx + c0, mean + c0, bn->c, bn->pixels, n);
        }
        for (j = 0; j < n; j++) {
            var[c0 + j] = (float)(t.b[j] / count);
        }
    }
}

void fl_bn_track(const struct fl_bn *bn, float *running_mean, float *running_var, const float *mean,
                 const float *var, size_t n)
{
    double unbiased = n > 1 ? (double)n / (double)(n - 1) : 0.0;
    size_t i;

    for (i = 0; i < bn->c; i++) {
        running_mean[i] = (float)((1.0 - FL_BN_MOMENTUM) * (double)running_mean[i] +
                                  FL_BN_MOMENTUM * (double)mean[i]);
        if (n > 1) {
            running_var[i] = (float)((1.0 - FL_BN_MOMENTUM) * (double)running_var[i] +
                                     FL_BN_MOMENTUM * unbiased * (double)var[i]);
        }
    }
}

static float inverse_deviation(float var)
{
    return (float)(1.0 / sqrt((double)var + FL_BN_EPS));
}

/* y = x * scale + shift for one sample. */
static void affine(float *restrict y, const float *restrict x, const float *restrict scale,
                   const float *restrict shift, size_t c, size_t pixels, size_t n, bool relu)
{
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            float v = x[p * c + j] * scale[j] + shift[j];

            /* NaN passes: a diverged network must not look healthy. */
            y[p * c + j] = relu && v < 0.0f ? 0.0f : v;
        }
    }
}

void fl_bn_forward(const struct fl_bn *bn, float *y, size_t ldy, const float *x, size_t ldx,
                   const float *mean, const float *var, const float *gamma, const float *beta,
                   size_t batch, bool relu)
{
    size_t c0, b, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
        float scale[CHUNK];
        float shift[CHUNK];

        for (j = 0; j < n; j++) {
            scale[j] = gamma[c0 + j] * inverse_deviation(var[c0 + j]);
            shift[j] = beta[c0 + j] - mean[c0 + j] * scale[j];
        }
        for (b = 0; b < batch; b++) {
            if (relu) {
                affine(y + b * ldy + c0, x + b * ldx + c0, scale, shift, bn->c, bn->pixels, n,
                       true);
            } else {
                affine(y + b * ldy + c0, x + b * ldx + c0, scale, shift, bn->c, bn->pixels, n,
                       false);
            }
        }
    }
}

/* Adds dy * (x - mean) to a and dy to b. */
static void add_products(struct totals *t, const float *dy, const float *x, const float *mean,
                         size_t c, size_t pixels, size_t n)
{
    float product[CHUNK] = {0};
    float sum[CHUNK] = {0};
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            float d = dy[p * c + j];

            product[j] += d * (x[p * c + j] - mean[j]);
            sum[j] += d;
        }
    }
    for (j = 0; j < n; j++) {
        t->a[j] += (double)product[j];
        t->b[j] += (double)sum[j];
    }
}

void fl_bn_backward_sums(const struct fl_bn *bn, float *dgamma, float *dbeta, const float *dy,
                         size_t lddy, const float *x, size_t ldx, const float *mean,
                         const float *var, size_t batch)
{
    size_t c0, b, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
        struct totals t = {.a = {0}};

        for (b = 0; b < batch; b++) {
            add_products(&t, dy + b * lddy + c0, x + b * ldx + c0, mean + c0, bn->c, bn->pixels, n);
        }
        for (j = 0; j < n; j++) {
            dgamma[c0 + j] = (float)(t.a[j] * (double)inverse_deviation(var[c0 + j]));
            dbeta[c0 + j] = (float)t.b[j];
        }
    }
}

struct factors {
    float dy[CHUNK];
    float x[CHUNK];
    float one[CHUNK];
};

/* dx = dy * f.dy + (x - mean) * f.x + f.one for one sample. */
static void combine(float *restrict dx, const float *restrict dy, const float *restrict x,
                    const float *restrict mean, const struct factors *restrict f, size_t c,
                    size_t pixels, size_t n)
{
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            dx[p * c + j] =
                dy[p * c + j] * f->dy[j] + (x[p * c + j] - mean[j]) * f->x[j] + f->one[j];
        }
    }
}

/*
 * With m numbers a channel and inv = 1 / sqrt(var + eps):
 *     dx = gamma * inv * (dy - dbeta / m - xhat * dgamma / m)
 */
void fl_bn_backward_data(const struct fl_bn *bn, float *dx, size_t lddx, const float *dy,
                         size_t lddy, const float *x, size_t ldx, const float *mean,
                         const float *var, const float *gamma, const float *dgamma,
                         const float *dbeta, size_t batch)
{
    double m = (double)(batch * bn->pixels);
    size_t row = bn->pixels * bn->c;
    size_t c0, b, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
        struct factors f;

        for (j = 0; j < n; j++) {
            double inv = (double)inverse_deviation(var[c0 + j]);
            double scale = (double)gamma[c0 + j] * inv;

            f.dy[j] = (float)scale;
            f.x[j] = (float)(-scale * inv * (double)dgamma[c0 + j] / m);
            f.one[j] = (float)(-scale * (double)dbeta[c0 + j] / m);
        }
        for (b = 0; b < batch; b++) {
            combine(dx + b * lddx + c0, dy + b * lddy + c0, x + b * ldx + c0, mean + c0, &f, bn->c,
                    bn->pixels, n);
        }
    }
    for (b = 0; b < batch && row < lddx; b++) {
        (void)memset(dx + b * lddx + row, 0, (lddx - row) * sizeof(*dx));
    }
}
