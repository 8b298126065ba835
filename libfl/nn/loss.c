#include "libfl/nn/loss.h"

#include <math.h>

#include "libfl/num/softmax.h"

/* Index of the largest number of a row, the lowest one on ties. */
static size_t loss_largest(const float *row, size_t n)
{
    size_t best = 0;
    size_t j;

    for (j = 1; j < n; j++) {
        best = row[j] > row[best] ? j : best;
    }
    return best;
}

double fl__softmax_ce(const struct fl_kernels *kernels, const float *z, size_t ld, const int32_t *y,
                      size_t batch, size_t classes, float scale, float *dz, size_t *ret_correct)
{
    double total = 0.0;
    size_t correct = 0;
    size_t b;

    for (b = 0; b < batch; b++) {
        const float *row = z + b * ld;
        float *d = dz != NULL ? dz + b * ld : NULL;
        size_t label = (size_t)y[b];
        float top;
        double sum = fl_softmax(kernels, d, row, classes, (double)scale, &top);
        double loss;

        FL_REQUIRE(y[b] >= 0 && label < classes);
        loss = log(sum) - ((double)row[label] - (double)top);
        total += loss;
        if (ret_correct != NULL) {
            correct += loss_largest(row, classes) == label && isfinite(loss);
        }
        if (d != NULL) {
            d[label] -= scale;
        }
    }
    if (ret_correct != NULL) {
        *ret_correct = correct;
    }
    return total;
}

double fl__softmax_ce_soft(const struct fl_kernels *kernels, const float *z, size_t ld,
                           const float *target, size_t batch, size_t classes, float scale,
                           float *dz)
{
    double total = 0.0;
    size_t b;
    size_t j;

    for (b = 0; b < batch; b++) {
        const float *row = z + b * ld;
        const float *t = target + b * classes;
        float *d = dz + b * ld;
        double weight = 0.0;
        double log_sum;
        float top;

        for (j = 0; j < classes; j++) {
            weight += (double)t[j];
        }
        log_sum = log(fl_softmax(kernels, d, row, classes, (double)scale * weight, &top));
        for (j = 0; j < classes; j++) {
            total += (double)t[j] * (log_sum - ((double)row[j] - (double)top));
            d[j] -= t[j] * scale;
        }
    }
    return total;
}

/*
 * With q = softmax(z) and m = <q, rz>: dL_y = m - rz_y; its derivative by rz is q - onehot(y),
 * by z q (rz - m).
 */
double fl__softmax_ce_jvp(const struct fl_kernels *kernels, const struct fl__ce_jvp *in, float *dz,
                          float *sz, double *ret_slope)
{
    double total = in->target != NULL ? fl__softmax_ce_soft(kernels, in->z, in->ld, in->target,
                                                            in->batch, in->classes, in->loss, dz)
                                      : fl__softmax_ce(kernels, in->z, in->ld, in->y, in->batch,
                                                       in->classes, in->loss, dz, NULL);
    size_t b;
    size_t j;

    *ret_slope = 0.0;
    for (b = 0; b < in->batch; b++) {
        const float *along = in->rz + b * in->ld;
        float *d = dz + b * in->ld;
        float *s = sz + b * in->ld;
        size_t label = (size_t)in->y[b];
        double mean = 0.0;
        float top;

        FL_REQUIRE(in->y[b] >= 0 && label < in->classes);
        (void)fl_softmax(kernels, s, in->z + b * in->ld, in->classes, 1.0, &top);
        for (j = 0; j < in->classes; j++) {
            mean += (double)s[j] * (double)along[j];
        }
        *ret_slope += mean - (double)along[label];
        for (j = 0; j < in->classes; j++) {
            d[j] += (float)((double)in->slope * (double)s[j] * ((double)along[j] - mean));
            s[j] *= in->slope;
        }
        s[label] -= in->slope;
    }
    return total;
}
