/*
 * Directional derivatives (JVP) of group normalisation (R-operator; Pearlmutter 1994), in plain
 * loops with sums in double, one group of one row after the other. With the mean over a group
 * written m(.), xhat = inv (x - mean), a = m(xhat rx):
 *     rxhat = inv (rx - m(rx) - xhat a)        ry = gamma rxhat + rgamma xhat + rbeta
 * The backward pass of S = gamma sy is sx = inv (S - m(S) - xhat p), p = m(S xhat); with
 * U = gamma dy + rgamma sy, and -inv^2 a the tangent of inv, its derivative is
 *     dx = inv (U - m(U) - rxhat p - xhat q) - inv a sx,   q = m(U xhat) + m(S rxhat)
 * No state; runs on the caller's thread.
 */
#include <string.h>

#include "libfl/num/group_norm.h"

/* One group of row `r`, counted over the batch: `n` channels of each pixel. */
struct group_place {
    const struct fl_gn *gn;
    const struct fl_gn_jvp *jvp;
    size_t r, n;
    size_t channel; /* the first */
    double mean, inv, count;
    double rmean, a;
};

static double group_value(const float *p, size_t i)
{
    return p != NULL ? (double)p[i] : 0.0;
}

/* Number of channel j of a pixel in a batch with the stride ld. */
static size_t group_at(const struct group_place *at, size_t ld, size_t pixel, size_t j)
{
    const struct fl_gn *gn = at->gn;
    size_t pixels = at->r % gn->rows * gn->pixels + pixel;

    return at->r / gn->rows * ld + pixels * gn->c + at->channel + j;
}

static double group_xhat(const struct group_place *at, size_t pixel, size_t j)
{
    return at->inv * ((double)at->jvp->x[group_at(at, at->jvp->ldx, pixel, j)] - at->mean);
}

static double group_rxhat(const struct group_place *at, size_t pixel, size_t j)
{
    double rx = group_value(at->jvp->rx, group_at(at, at->jvp->ldx, pixel, j));

    return at->inv * (rx - at->rmean - group_xhat(at, pixel, j) * at->a);
}

/* Group q, counted over the batch. */
static struct group_place group_place(const struct fl_gn *gn, const struct fl_gn_jvp *jvp, size_t q)
{
    struct group_place at = {.gn = gn, .jvp = jvp, .r = q / gn->groups, .n = gn->c / gn->groups};
    double rsum = 0.0;
    double product = 0.0;
    size_t p, j;

    at.channel = q % gn->groups * at.n;
    at.count = (double)(at.n * gn->pixels);
    at.mean = (double)jvp->mean[q];
    at.inv = (double)jvp->inv[q];
    for (p = 0; jvp->rx != NULL && p < gn->pixels; p++) {
        for (j = 0; j < at.n; j++) {
            double rx = (double)jvp->rx[group_at(&at, jvp->ldx, p, j)];

            rsum += rx;
            product += rx * group_xhat(&at, p, j);
        }
    }
    at.rmean = rsum / at.count;
    at.a = product / at.count;
    return at;
}

void fl_gn_forward_jvp(const struct fl_gn *gn, float *ry, size_t ldy, const struct fl_gn_jvp *jvp,
                       size_t batch)
{
    size_t q, p, j;

    for (q = 0; q < batch * gn->rows * gn->groups; q++) {
        const struct group_place at = group_place(gn, jvp, q);

        for (p = 0; p < gn->pixels; p++) {
            for (j = 0; j < at.n; j++) {
                size_t c = at.channel + j;

                ry[group_at(&at, ldy, p, j)] =
                    (float)((double)jvp->gamma[c] * group_rxhat(&at, p, j) +
                            group_value(jvp->rgamma, c) * group_xhat(&at, p, j) +
                            group_value(jvp->rbeta, c));
            }
        }
    }
}

/* Means over the group, as above. */
struct group_means {
    double s, u, p, q;
};

static struct group_means group_means(const struct group_place *at, const struct fl_gn_streams *io,
                                      double *dgamma, double *dbeta)
{
    struct group_means m = {.s = 0.0};
    size_t p, j;

    for (p = 0; p < at->gn->pixels; p++) {
        for (j = 0; j < at->n; j++) {
            size_t c = at->channel + j;
            double dy = (double)io->dy[group_at(at, io->ldy, p, j)];
            double sy = (double)io->sy[group_at(at, io->ldy, p, j)];
            double s = (double)at->jvp->gamma[c] * sy;
            double u = (double)at->jvp->gamma[c] * dy + group_value(at->jvp->rgamma, c) * sy;
            double xhat = group_xhat(at, p, j);
            double rxhat = group_rxhat(at, p, j);

            dgamma[c] += dy * xhat + sy * rxhat;
            dbeta[c] += dy;
            m.s += s / at->count;
            m.u += u / at->count;
            m.p += s * xhat / at->count;
            m.q += (u * xhat + s * rxhat) / at->count;
        }
    }
    return m;
}

static void group_jvp_data(const struct group_place *at, const struct fl_gn_streams *io,
                           const struct group_means *m)
{
    size_t p, j;

    for (p = 0; p < at->gn->pixels; p++) {
        for (j = 0; j < at->n; j++) {
            size_t c = at->channel + j;
            size_t to = group_at(at, at->jvp->ldx, p, j);
            double dy = (double)io->dy[group_at(at, io->ldy, p, j)];
            double sy = (double)io->sy[group_at(at, io->ldy, p, j)];
            double s = (double)at->jvp->gamma[c] * sy;
            double u = (double)at->jvp->gamma[c] * dy + group_value(at->jvp->rgamma, c) * sy;
            double xhat = group_xhat(at, p, j);
            double sx = at->inv * (s - m->s - xhat * m->p);

            io->sx[to] = (float)sx;
            io->dx[to] = (float)(at->inv * (u - m->u - group_rxhat(at, p, j) * m->p - xhat * m->q) -
                                 at->inv * at->a * sx);
        }
    }
}

void fl_gn_backward_jvp(const struct fl_gn *gn, const struct fl_gn_streams *io,
                        const struct fl_gn_jvp *jvp, float *dgamma, float *dbeta, size_t batch,
                        float *totals)
{
    double *gamma = (double *)(void *)totals;
    double *beta = gamma + gn->c;
    size_t row = gn->rows * gn->pixels * gn->c;
    size_t q, b, j;

    (void)memset(gamma, 0, 2 * gn->c * sizeof(*gamma));
    for (q = 0; q < batch * gn->rows * gn->groups; q++) {
        const struct group_place at = group_place(gn, jvp, q);
        const struct group_means m = group_means(&at, io, gamma, beta);

        if (io->dx != NULL) {
            group_jvp_data(&at, io, &m);
        }
    }
    for (b = 0; io->dx != NULL && b < batch; b++) {
        (void)memset(io->dx + b * jvp->ldx + row, 0, (jvp->ldx - row) * sizeof(float));
        (void)memset(io->sx + b * jvp->ldx + row, 0, (jvp->ldx - row) * sizeof(float));
    }
    for (j = 0; j < gn->c; j++) {
        dgamma[j] = (float)gamma[j];
        dbeta[j] = (float)beta[j];
    }
}
