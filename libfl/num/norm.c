/*
 * Batch normalisation (norm.h): moments, forward pass and gradient, with the kernels of
 * pixel_kern.h. No state; runs on the caller's thread. Directional derivatives are in
 * norm_jvp.c.
 */
#include "libfl/num/norm.h"

#include <math.h>
#include <string.h>

#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"

#define CHUNK FL__PIXEL_CHUNK

/* Number of channels of the chunk that begins at c0. */
static size_t chunk_of(const struct fl_bn *bn, size_t c0)
{
    return bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
}

/* The reference point of the moments: the mean of the first sample. */
static void first_mean(const struct fl__pixel_kern *kern, const struct fl_bn *bn, float *about,
                       const float *x, size_t n)
{
    double total[CHUNK] = {0};
    size_t j;

    kern->sums(total, x, bn->c, bn->pixels, n);
    for (j = 0; j < n; j++) {
        about[j] = (float)(total[j] / (double)bn->pixels);
    }
}

/*
 * One pass: with d = x - about, var = mean(d^2) - mean(d)^2 (Chan, Golub and LeVeque 1983,
 * "Algorithms for computing the sample variance"). The difference loses little when `about` is near
 * the mean, and the mean of the first sample is: its pixels alone make the variance at least
 * mean(d)^2 / batch, so that at most log2(batch + 1) bits are lost, of sums that are held in
 * double from FL__PIXEL_RUN pixels on.
 */
void fl_bn_moments(const struct fl_kernels *kernels, const struct fl_bn *bn, float *mean,
                   float *var, const float *x, size_t ldx, size_t batch)
{
    const struct fl__pixel_runs runs = fl__pixel_runs(batch, bn->pixels, bn->c, ldx, ldx);
    double count = (double)(batch * bn->pixels);
    size_t c0, i, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = chunk_of(bn, c0);
        double total[CHUNK] = {0};
        double square[CHUNK] = {0};
        float about[CHUNK];

        first_mean(kernels->pixel, bn, about, x + c0, n);
        for (i = 0; i < runs.n; i++) {
            kernels->pixel->spread(total, square, x + i * ldx + c0, about, runs.ld, runs.rows, n);
        }
        for (j = 0; j < n; j++) {
            double centred = total[j] / count;
            double v = square[j] / count - centred * centred;

            mean[c0 + j] = (float)((double)about[j] + centred);
            /* NaN is kept. */
            var[c0 + j] = v < 0.0 ? 0.0f : (float)v;
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

static float norm_inverse_deviation(float var)
{
    return (float)(1.0 / sqrt((double)var + FL_BN_EPS));
}

struct factors {
    float scale[CHUNK];
    float mean_dy[CHUNK], by_dy[CHUNK], by_x[CHUNK];
};

/* Compute the factors of forward for n channels. */
static struct fl__pixel_bn forward_factors(struct factors *f, const float *mean, const float *var,
                                           const float *gamma, const float *beta, size_t n)
{
    size_t j;

    for (j = 0; j < n; j++) {
        f->scale[j] = gamma[j] * norm_inverse_deviation(var[j]);
    }
    return (struct fl__pixel_bn){.mean = mean, .scale = f->scale, .shift = beta};
}

void fl_bn_forward(const struct fl_kernels *kernels, const struct fl_bn *bn, float *y, size_t ldy,
                   const float *x, size_t ldx, const float *mean, const float *var,
                   const float *gamma, const float *beta, size_t batch, bool relu)
{
    const struct fl__pixel_runs runs = fl__pixel_runs(batch, bn->pixels, bn->c, ldx, ldy);
    size_t c0, i;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = chunk_of(bn, c0);
        struct factors f;
        const struct fl__pixel_bn at =
            forward_factors(&f, mean + c0, var + c0, gamma + c0, beta + c0, n);

        for (i = 0; i < runs.n; i++) {
            kernels->pixel->affine(y + i * ldy + c0, x + i * ldx + c0, &at, runs.ld, runs.rows, n,
                                   relu);
        }
    }
}

void fl_bn_backward_sums(const struct fl_kernels *kernels, const struct fl_bn *bn, float *dgamma,
                         float *dbeta, const struct fl_bn_backward *io, size_t batch)
{
    const struct fl__pixel_runs runs = fl__pixel_runs(batch, bn->pixels, bn->c, io->ldx, io->lddy);
    size_t c0, i, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = chunk_of(bn, c0);
        double total[CHUNK] = {0};
        double product[CHUNK] = {0};
        struct factors f;
        const struct fl__pixel_bn at =
            forward_factors(&f, io->mean + c0, io->var + c0, io->gamma + c0, io->beta + c0, n);

        for (i = 0; i < runs.n; i++) {
            kernels->pixel->products(total, product, io->dy + i * io->lddy + c0,
                                     io->x + i * io->ldx + c0, &at, runs.ld, runs.rows, n,
                                     io->relu);
        }
        for (j = 0; j < n; j++) {
            dgamma[c0 + j] = (float)(product[j] * (double)norm_inverse_deviation(io->var[c0 + j]));
            dbeta[c0 + j] = (float)total[j];
        }
    }
}

/*
 * With m numbers per channel and inv = 1 / sqrt(var + eps):
 *     dx = gamma * inv * (dy - dbeta / m - xhat * dgamma / m)
 */
static struct fl__pixel_bn norm_backward_factors(struct factors *f, const struct fl_bn_backward *io,
                                                 size_t c0, size_t n, const float *dgamma,
                                                 const float *dbeta, double m)
{
    struct fl__pixel_bn at =
        forward_factors(f, io->mean + c0, io->var + c0, io->gamma + c0, io->beta + c0, n);
    size_t j;

    for (j = 0; j < n; j++) {
        double inv = (double)norm_inverse_deviation(io->var[c0 + j]);
        double scale = (double)io->gamma[c0 + j] * inv;

        f->by_dy[j] = (float)scale;
        f->by_x[j] = (float)(-scale * inv * (double)dgamma[c0 + j] / m);
        f->mean_dy[j] = (float)((double)dbeta[c0 + j] / m);
    }
    at.by_dy = f->by_dy;
    at.by_x = f->by_x;
    at.mean_dy = f->mean_dy;
    return at;
}

void fl_bn_backward_data(const struct fl_kernels *kernels, const struct fl_bn *bn, float *dx,
                         size_t lddx, const struct fl_bn_backward *io, const float *dgamma,
                         const float *dbeta, size_t batch)
{
    struct fl__pixel_runs runs = fl__pixel_runs(batch, bn->pixels, bn->c, io->ldx, io->lddy);
    double m = (double)(batch * bn->pixels);
    size_t row = bn->pixels * bn->c;
    size_t c0, b, i;

    if (lddx != io->ldx) {
        runs = (struct fl__pixel_runs){batch, bn->pixels, bn->c};
    }
    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = chunk_of(bn, c0);
        struct factors f;
        const struct fl__pixel_bn at = norm_backward_factors(&f, io, c0, n, dgamma, dbeta, m);

        for (i = 0; i < runs.n; i++) {
            kernels->pixel->combine(dx + i * lddx + c0, io->dy + i * io->lddy + c0,
                                    io->x + i * io->ldx + c0, &at, runs.ld, runs.rows, n, io->relu);
        }
    }
    for (b = 0; b < batch && row < lddx; b++) {
        (void)memset(dx + b * lddx + row, 0, (lddx - row) * sizeof(*dx));
    }
}
