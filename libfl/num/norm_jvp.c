/*
 * Directional derivatives (JVP) of batch normalisation (R-operator; Pearlmutter 1994): tangents
 * forward, and the adjoints of values and of their tangents backward. The backward functions are
 * derivatives of the ordinary ones: the adjoint of a tangent is propagated like a gradient, the
 * adjoint of a value is the directional derivative of that. No state; runs on the caller's
 * thread.
 */
#include <math.h>
#include <string.h>

#include "libfl/num/norm.h"

/* Channels processed at a time. */
#define CHUNK 64

static double norm_jvp_inverse_deviation(float var)
{
    return 1.0 / sqrt((double)var + FL_BN_EPS);
}

/* Sums of one chunk of channels: of a sample in float, of the batch in double. */
struct sums {
    double first[CHUNK], second[CHUNK];
};

/* Adds d to `first` and d * (x - mean) to `second`. */
static void norm_jvp_add_products(struct sums *s, const float *restrict d, const float *restrict x,
                                  const float *restrict mean, size_t c, size_t pixels, size_t n)
{
    float sum[CHUNK] = {0};
    float product[CHUNK] = {0};
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            sum[j] += d[p * c + j];
            product[j] += d[p * c + j] * (x[p * c + j] - mean[j]);
        }
    }
    for (j = 0; j < n; j++) {
        s->first[j] += (double)sum[j];
        s->second[j] += (double)product[j];
    }
}

void fl_bn_moments_jvp(const struct fl_bn *bn, float *rmean, float *slope, const float *rx,
                       const float *x, size_t ldx, const float *mean, const float *var,
                       size_t batch)
{
    double count = (double)(batch * bn->pixels);
    size_t c0, b, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
        struct sums s = {.first = {0}};

        for (b = 0; rx != NULL && b < batch; b++) {
            norm_jvp_add_products(&s, rx + b * ldx + c0, x + b * ldx + c0, mean + c0, bn->c,
                                  bn->pixels, n);
        }
        for (j = 0; j < n; j++) {
            rmean[c0 + j] = (float)(s.first[j] / count);
            slope[c0 + j] = (float)(s.second[j] * norm_jvp_inverse_deviation(var[c0 + j]) / count);
        }
    }
}

/* Factors of rx, x - mean and 1, per channel. */
struct forward_factors {
    float rx[CHUNK], x[CHUNK], one[CHUNK];
};

static void norm_jvp_tangents(float *restrict ry, const float *restrict rx, const float *restrict x,
                              const float *restrict mean, const struct forward_factors *restrict f,
                              size_t c, size_t pixels, size_t n)
{
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            float along = rx != NULL ? rx[p * c + j] * f->rx[j] : 0.0f;

            ry[p * c + j] = along + (x[p * c + j] - mean[j]) * f->x[j] + f->one[j];
        }
    }
}

/*
 * With inv = 1 / sqrt(var + eps) and a = mean(xhat rx): rxhat = inv (rx - rmean - xhat a), so
 *     ry = gamma rxhat + rgamma xhat + rbeta
 */
void fl_bn_forward_jvp(const struct fl_bn *bn, float *ry, size_t ldy, const float *rx,
                       const float *x, size_t ldx, const struct fl_bn_jvp *at, size_t batch)
{
    size_t c0, b, j;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
        struct forward_factors f;

        for (j = 0; j < n; j++) {
            double inv = norm_jvp_inverse_deviation(at->var[c0 + j]);
            double scale = (double)at->gamma[c0 + j] * inv;
            double rgamma = at->rgamma != NULL ? (double)at->rgamma[c0 + j] : 0.0;
            double rbeta = at->rbeta != NULL ? (double)at->rbeta[c0 + j] : 0.0;

            f.rx[j] = (float)scale;
            f.x[j] = (float)(rgamma * inv - scale * inv * (double)at->slope[c0 + j]);
            f.one[j] = (float)(rbeta - scale * (double)at->rmean[c0 + j]);
        }
        for (b = 0; b < batch; b++) {
            norm_jvp_tangents(ry + b * ldy + c0, rx != NULL ? rx + b * ldx + c0 : NULL,
                              x + b * ldx + c0, at->mean + c0, &f, bn->c, bn->pixels, n);
        }
    }
}

/* Adds d * rx. */
static void add_tangents(double *total, const float *restrict d, const float *restrict rx, size_t c,
                         size_t pixels, size_t n)
{
    float product[CHUNK] = {0};
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            product[j] += d[p * c + j] * rx[p * c + j];
        }
    }
    for (j = 0; j < n; j++) {
        total[j] += (double)product[j];
    }
}

/* Factors of dx and of sx, per channel. */
struct norm_jvp_backward_factors {
    float dx_dy[CHUNK], dx_sy[CHUNK], dx_rx[CHUNK], dx_x[CHUNK], dx_one[CHUNK];
    float sx_sy[CHUNK], sx_x[CHUNK], sx_one[CHUNK];
};

/*
 * The ordinary backward pass of S = gamma sy is sx = inv (S - mean(S) - xhat p), p = mean(S xhat).
 * Its derivative, with U = gamma dy + rgamma sy for the one of S and -inv^2 a for that of inv, is
 *     dx = inv (U - mean(U) - rxhat p - xhat q) - inv a sx,   q = mean(U xhat) + mean(S rxhat)
 * which gives the factors. `u`, `s`: sums of dy and sy, `srx`: of sy rx.
 */
static void norm_jvp_backward_factors(struct norm_jvp_backward_factors *f,
                                      const struct fl_bn_jvp *at, size_t c0, size_t n,
                                      const struct sums *u, const struct sums *s, const double *srx,
                                      double count, float *dgamma, float *dbeta)
{
    size_t j;

    for (j = 0; j < n; j++) {
        double inv = norm_jvp_inverse_deviation(at->var[c0 + j]);
        double gamma = (double)at->gamma[c0 + j];
        double rgamma = at->rgamma != NULL ? (double)at->rgamma[c0 + j] : 0.0;
        double a = (double)at->slope[c0 + j];
        double rmean = (double)at->rmean[c0 + j];
        double u_xhat = u->second[j] * inv;
        double s_xhat = s->second[j] * inv;
        double s_rxhat = inv * (srx[j] - rmean * s->first[j] - a * s_xhat);
        double mean_u = (gamma * u->first[j] + rgamma * s->first[j]) / count;
        double mean_s = gamma * s->first[j] / count;
        double p = gamma * s_xhat / count;
        double q = (gamma * u_xhat + rgamma * s_xhat + gamma * s_rxhat) / count;

        dbeta[c0 + j] = (float)u->first[j];
        dgamma[c0 + j] = (float)(u_xhat + s_rxhat);
        f->sx_sy[j] = (float)(inv * gamma);
        f->sx_x[j] = (float)(-inv * inv * p);
        f->sx_one[j] = (float)(-inv * mean_s);
        f->dx_dy[j] = (float)(inv * gamma);
        f->dx_sy[j] = (float)(inv * rgamma - inv * inv * a * gamma);
        f->dx_rx[j] = (float)(-inv * inv * p);
        f->dx_x[j] = (float)(inv * (2.0 * inv * inv * a * p - inv * q));
        f->dx_one[j] = (float)(-inv * mean_u + inv * inv * (rmean * p + a * mean_s));
    }
}

struct streams {
    float *dx, *sx;
    const float *dy, *sy, *x, *rx;
};

static void norm_jvp_combine(const struct streams *t, const float *restrict mean,
                             const struct norm_jvp_backward_factors *restrict f, size_t c,
                             size_t pixels, size_t n)
{
    size_t p, j;

    for (p = 0; p < pixels; p++) {
        for (j = 0; j < n; j++) {
            size_t i = p * c + j;
            float centred = t->x[i] - mean[j];
            float along = t->rx != NULL ? t->rx[i] * f->dx_rx[j] : 0.0f;

            t->dx[i] = t->dy[i] * f->dx_dy[j] + t->sy[i] * f->dx_sy[j] + along +
                       centred * f->dx_x[j] + f->dx_one[j];
            t->sx[i] = t->sy[i] * f->sx_sy[j] + centred * f->sx_x[j] + f->sx_one[j];
        }
    }
}

void fl_bn_backward_jvp(const struct fl_bn *bn, const struct fl_bn_streams *io,
                        const struct fl_bn_jvp *at, float *dgamma, float *dbeta, size_t batch)
{
    double count = (double)(batch * bn->pixels);
    size_t row = bn->pixels * bn->c;
    size_t c0, b;

    for (c0 = 0; c0 < bn->c; c0 += CHUNK) {
        size_t n = bn->c - c0 < CHUNK ? bn->c - c0 : CHUNK;
        struct norm_jvp_backward_factors f;
        struct sums u = {.first = {0}};
        struct sums s = {.first = {0}};
        double srx[CHUNK] = {0};

        for (b = 0; b < batch; b++) {
            const float *x = io->x + b * io->ldx + c0;
            const float *sy = io->sy + b * io->ldy + c0;

            norm_jvp_add_products(&u, io->dy + b * io->ldy + c0, x, at->mean + c0, bn->c,
                                  bn->pixels, n);
            norm_jvp_add_products(&s, sy, x, at->mean + c0, bn->c, bn->pixels, n);
            if (io->rx != NULL) {
                add_tangents(srx, sy, io->rx + b * io->ldx + c0, bn->c, bn->pixels, n);
            }
        }
        norm_jvp_backward_factors(&f, at, c0, n, &u, &s, srx, count, dgamma, dbeta);
        for (b = 0; b < batch; b++) {
            const struct streams t = {.dx = io->dx + b * io->ldx + c0,
                                      .sx = io->sx + b * io->ldx + c0,
                                      .dy = io->dy + b * io->ldy + c0,
                                      .sy = io->sy + b * io->ldy + c0,
                                      .x = io->x + b * io->ldx + c0,
                                      .rx = io->rx != NULL ? io->rx + b * io->ldx + c0 : NULL};

            norm_jvp_combine(&t, at->mean + c0, &f, bn->c, bn->pixels, n);
        }
    }
    for (b = 0; b < batch && row < io->ldx; b++) {
        (void)memset(io->dx + b * io->ldx + row, 0, (io->ldx - row) * sizeof(float));
        (void)memset(io->sx + b * io->ldx + row, 0, (io->ldx - row) * sizeof(float));
    }
}
