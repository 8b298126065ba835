#include "libfl/nn/loss.h"

#include <math.h>

#include "libfl/base/err.h"

/* Where the largest of a row is, the lowest when there are several. */
static size_t largest(const float *row, size_t n)
{
    size_t best = 0;
    size_t j;

    for (j = 1; j < n; j++) {
        best = row[j] > row[best] ? j : best;
    }
    return best;
}

/*
 * exp(row - row[best]) into `e` when that is not NULL; returns their sum. The largest exponent
 * is 0: no overflow, and the sum is at least 1.
 */
static double exponentials(const float *row, size_t best, size_t n, float *e)
{
    double sum = 0.0;
    size_t j;

    for (j = 0; j < n; j++) {
        float v = expf(row[j] - row[best]);

        sum += (double)v;
        if (e != NULL) {
            e[j] = v;
        }
    }
    return sum;
}

double fl__softmax_ce(const float *z, size_t ld, const int32_t *y, size_t batch, size_t classes,
                      float scale, float *dz, size_t *ret_correct)
{
    double total = 0.0;
    size_t correct = 0;
    size_t b;
    size_t j;

    for (b = 0; b < batch; b++) {
        const float *row = z + b * ld;
        size_t label = (size_t)y[b];
        size_t best = largest(row, classes);
        double sum = exponentials(row, best, classes, dz != NULL ? dz + b * ld : NULL);
        double loss;

        FL_REQUIRE(y[b] >= 0 && label < classes);
        loss = log(sum) - ((double)row[label] - (double)row[best]);
        total += loss;
        correct += best == label && isfinite(loss);
        if (dz != NULL) {
            float factor = (float)((double)scale / sum);

            for (j = 0; j < classes; j++) {
                dz[b * ld + j] *= factor;
            }
            dz[b * ld + label] -= scale;
            for (j = classes; j < ld; j++) {
                dz[b * ld + j] = 0.0f;
            }
        }
    }
    if (ret_correct != NULL) {
        *ret_correct = correct;
    }
    return total;
}

double fl__softmax_ce_soft(const float *z, size_t ld, const float *target, size_t batch,
                           size_t classes, float scale, float *dz)
{
    double total = 0.0;
    size_t b;
    size_t j;

    for (b = 0; b < batch; b++) {
        const float *row = z + b * ld;
        const float *t = target + b * classes;
        float *d = dz + b * ld;
        size_t best = largest(row, classes);
        double sum = exponentials(row, best, classes, d);
        double log_sum = log(sum);
        double weight = 0.0;
        float factor;

        for (j = 0; j < classes; j++) {
            weight += (double)t[j];
            total += (double)t[j] * (log_sum - ((double)row[j] - (double)row[best]));
        }
        factor = (float)((double)scale * weight / sum);
        for (j = 0; j < classes; j++) {
            d[j] = d[j] * factor - t[j] * scale;
        }
        for (j = classes; j < ld; j++) {
            d[j] = 0.0f;
        }
    }
    return total;
}

/* With q = softmax(z) and m = <q, rz>: dL_y = m - rz_y, by rz q - onehot(y), by z q (rz - m). */
double fl__softmax_ce_along(const struct fl__ce_along *in, float *dz, float *sz, double *ret_slope)
{
    double total =
        in->target != NULL
            ? fl__softmax_ce_soft(in->z, in->ld, in->target, in->batch, in->classes, in->loss, dz)
            : fl__softmax_ce(in->z, in->ld, in->y, in->batch, in->classes, in->loss, dz, NULL);
    size_t b;
    size_t j;

    *ret_slope = 0.0;
    for (b = 0; b < in->batch; b++) {
        const float *row = in->z + b * in->ld;
        const float *along = in->rz + b * in->ld;
        float *d = dz + b * in->ld;
        float *s = sz + b * in->ld;
        size_t label = (size_t)in->y[b];
        double sum = exponentials(row, largest(row, in->classes), in->classes, s);
        double mean = 0.0;

        FL_REQUIRE(in->y[b] >= 0 && label < in->classes);
        for (j = 0; j < in->classes; j++) {
            mean += (double)s[j] * (double)along[j] / sum;
        }
        *ret_slope += mean - (double)along[label];
        for (j = 0; j < in->classes; j++) {
            double q = (double)s[j] / sum;

            d[j] += (float)((double)in->slope * q * ((double)along[j] - mean));
            s[j] = (float)((double)in->slope * q);
        }
        s[label] -= in->slope;
        for (j = in->classes; j < in->ld; j++) {
            s[j] = 0.0f;
        }
    }
    return total;
}
