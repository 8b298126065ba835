/*
 * Group normalisation (group_norm.h): forward pass and gradient, with the kernels of pixel_kern.h
 * for one sample after the other, which stays in the cache between its passes. No state; runs on
 * the caller's thread. Directional derivatives are in group_norm_jvp.c.
 */
#include "libfl/num/group_norm.h"

#include <math.h>
#include <string.h>

#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"

#define CHUNK FL__PIXEL_CHUNK

/* Number of channels of the chunk that begins at c0. */
static size_t group_chunk(const struct fl_gn *gn, size_t c0)
{
    return gn->c - c0 < CHUNK ? gn->c - c0 : CHUNK;
}

static size_t group_of(const struct fl_gn *gn, size_t channel)
{
    /* Layer norm has one group, and so few numbers a row that divisions would take half the time.
     */
    return gn->groups == 1 ? 0 : channel / (gn->c / gn->groups);
}

static double group_count(const struct fl_gn *gn)
{
    return (double)(gn->c / gn->groups * gn->pixels);
}

/* Where row `r`, counted over the batch, begins. */
static size_t group_row(const struct fl_gn *gn, size_t r, size_t ld)
{
    return r / gn->rows * ld + r % gn->rows * gn->pixels * gn->c;
}

/*
 * Two passes: the variance is the mean of squared distances from the rounded mean, less the square
 * of what rounding left.
 */
static void group_moments(const struct fl__pixel_kern *kern, const struct fl_gn *gn, float *mean,
                          float *inv, const float *x)
{
    double sum[FL_GN_GROUPS_MAX];
    double square[FL_GN_GROUPS_MAX];
    size_t c0, g, j;

    (void)memset(sum, 0, gn->groups * sizeof(*sum));
    (void)memset(square, 0, gn->groups * sizeof(*square));
    for (c0 = 0; c0 < gn->c; c0 += CHUNK) {
        double total[CHUNK] = {0};

        kern->sums(total, x + c0, gn->c, gn->pixels, group_chunk(gn, c0));
        for (j = 0; j < group_chunk(gn, c0); j++) {
            sum[group_of(gn, c0 + j)] += total[j];
        }
    }
    for (g = 0; g < gn->groups; g++) {
        mean[g] = (float)(sum[g] / group_count(gn));
        sum[g] = 0.0;
    }
    for (c0 = 0; c0 < gn->c; c0 += CHUNK) {
        double total[CHUNK] = {0};
        double spread[CHUNK] = {0};
        float about[CHUNK];

        for (j = 0; j < group_chunk(gn, c0); j++) {
            about[j] = mean[group_of(gn, c0 + j)];
        }
        kern->spread(total, spread, x + c0, about, gn->c, gn->pixels, group_chunk(gn, c0));
        for (j = 0; j < group_chunk(gn, c0); j++) {
            sum[group_of(gn, c0 + j)] += total[j];
            square[group_of(gn, c0 + j)] += spread[j];
        }
    }
    for (g = 0; g < gn->groups; g++) {
        double centred = sum[g] / group_count(gn);
        double var = square[g] / group_count(gn) - centred * centred;

        /* NaN is kept. */
        inv[g] = (float)(1.0 / sqrt((var < 0.0 ? 0.0 : var) + FL_GN_EPS));
    }
}

struct group_factors {
    float mean[CHUNK], scale[CHUNK], by_x[CHUNK], less[CHUNK];
};

/* The factors of forward for the chunk at c0 of one sample. */
static struct fl__pixel_bn group_forward_factors(const struct fl_gn *gn, struct group_factors *f,
                                                 size_t c0, const float *mean, const float *inv,
                                                 const float *gamma, const float *beta)
{
    size_t j;

    for (j = 0; j < group_chunk(gn, c0); j++) {
        size_t g = group_of(gn, c0 + j);

        f->mean[j] = mean[g];
        f->scale[j] = gamma[c0 + j] * inv[g];
    }
    return (struct fl__pixel_bn){.mean = f->mean, .scale = f->scale, .shift = beta + c0};
}

void fl_gn_forward(const struct fl_kernels *kernels, const struct fl_gn *gn, float *y, size_t ldy,
                   float *mean, float *inv, const float *x, size_t ldx, const float *gamma,
                   const float *beta, size_t batch, bool relu)
{
    size_t r, c0;

    for (r = 0; r < batch * gn->rows; r++) {
        const float *from = x + group_row(gn, r, ldx);
        float *to = y + group_row(gn, r, ldy);

        group_moments(kernels->pixel, gn, mean, inv, from);
        for (c0 = 0; c0 < gn->c; c0 += CHUNK) {
            struct group_factors f;
            const struct fl__pixel_bn at =
                group_forward_factors(gn, &f, c0, mean, inv, gamma, beta);

            kernels->pixel->affine(to + c0, from + c0, &at, gn->c, gn->pixels, group_chunk(gn, c0),
                                   relu);
        }
        mean += gn->groups;
        inv += gn->groups;
    }
}

/* Sums of one row: of gamma dy and gamma dy (x - mean) for each group, divided by its size. */
struct group_sums {
    double dy[FL_GN_GROUPS_MAX], product[FL_GN_GROUPS_MAX];
};

static void group_backward_sums(const struct fl__pixel_kern *kern, const struct fl_gn *gn,
                                struct group_sums *s, double *dgamma, double *dbeta,
                                const struct fl_gn_backward *io, size_t r)
{
    const float *dy = io->dy + group_row(gn, r, io->lddy);
    const float *x = io->x + group_row(gn, r, io->ldx);
    const float *mean = io->mean + r * gn->groups;
    const float *inv = io->inv + r * gn->groups;
    size_t c0, j;

    (void)memset(s->dy, 0, gn->groups * sizeof(double));
    (void)memset(s->product, 0, gn->groups * sizeof(double));
    for (c0 = 0; c0 < gn->c; c0 += CHUNK) {
        double total[CHUNK] = {0};
        double product[CHUNK] = {0};
        struct group_factors f;
        const struct fl__pixel_bn at =
            group_forward_factors(gn, &f, c0, mean, inv, io->gamma, io->beta);

        kern->products(total, product, dy + c0, x + c0, &at, gn->c, gn->pixels, group_chunk(gn, c0),
                       io->relu);
        for (j = 0; j < group_chunk(gn, c0); j++) {
            size_t g = group_of(gn, c0 + j);

            dgamma[c0 + j] += product[j] * (double)inv[g];
            dbeta[c0 + j] += total[j];
            s->dy[g] += (double)io->gamma[c0 + j] * total[j] / group_count(gn);
            s->product[g] += (double)io->gamma[c0 + j] * product[j] / group_count(gn);
        }
    }
}

/*
 * With the means over a group m1 of gamma dy and m2 of gamma dy xhat:
 *     dx = inv (gamma dy - m1 - xhat m2)
 */
static void group_backward_data(const struct fl__pixel_kern *kern, const struct fl_gn *gn,
                                const struct group_sums *s, const struct fl_gn_backward *io,
                                size_t r)
{
    const float *dy = io->dy + group_row(gn, r, io->lddy);
    const float *x = io->x + group_row(gn, r, io->ldx);
    float *dx = io->dx + group_row(gn, r, io->lddx);
    const float *mean = io->mean + r * gn->groups;
    const float *inv = io->inv + r * gn->groups;
    size_t c0, j;

    for (c0 = 0; c0 < gn->c; c0 += CHUNK) {
        struct group_factors f;
        struct fl__pixel_bn at = group_forward_factors(gn, &f, c0, mean, inv, io->gamma, io->beta);

        for (j = 0; j < group_chunk(gn, c0); j++) {
            size_t g = group_of(gn, c0 + j);
            double i = (double)inv[g];

            f.by_x[j] = (float)(-i * i * i * s->product[g]);
            f.less[j] = (float)(i * s->dy[g]);
        }
        at.by_dy = f.scale;
        at.by_x = f.by_x;
        at.less = f.less;
        kern->combine_less(dx + c0, dy + c0, x + c0, &at, gn->c, gn->pixels, group_chunk(gn, c0),
                           io->relu);
    }
}

void fl_gn_backward(const struct fl_kernels *kernels, const struct fl_gn *gn, float *dgamma,
                    float *dbeta, const struct fl_gn_backward *io, size_t batch, float *totals)
{
    double *gamma = (double *)(void *)totals;
    double *beta = gamma + gn->c;
    size_t all = gn->rows * gn->pixels * gn->c;
    struct group_sums s;
    size_t r, b, j;

    (void)memset(gamma, 0, 2 * gn->c * sizeof(*gamma));
    for (r = 0; r < batch * gn->rows; r++) {
        group_backward_sums(kernels->pixel, gn, &s, gamma, beta, io, r);
        if (io->dx != NULL) {
            group_backward_data(kernels->pixel, gn, &s, io, r);
        }
    }
    for (b = 0; io->dx != NULL && b < batch && all < io->lddx; b++) {
        (void)memset(io->dx + b * io->lddx + all, 0, (io->lddx - all) * sizeof(float));
    }
    for (j = 0; j < gn->c; j++) {
        dgamma[j] = (float)gamma[j];
        dbeta[j] = (float)beta[j];
    }
}
