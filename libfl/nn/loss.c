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

static double loss_of_labels(const struct fl_kernels *kernels, const struct fl__ce *in, float *dz,
                             size_t *ret_correct)
{
    double total = 0.0;
    size_t correct = 0;
    size_t b;

    for (b = 0; b < in->batch; b++) {
        const float *row = in->z + b * in->ld;
        float *d = dz != NULL ? dz + b * in->ld : NULL;
        size_t label = (size_t)in->y[b];
        float top;
        double sum = fl_softmax(kernels, d, row, in->classes, (double)in->scale, &top);
        double loss;

        FL_REQUIRE(in->y[b] >= 0 && label < in->classes);
        loss = log(sum) - ((double)row[label] - (double)top);
        total += loss;
        if (ret_correct != NULL) {
            correct += loss_largest(row, in->classes) == label && isfinite(loss);
        }
        if (d != NULL) {
            d[label] -= in->scale;
        }
    }
    if (ret_correct != NULL) {
        *ret_correct = correct;
    }
    return total;
}

static double loss_of_targets(const struct fl_kernels *kernels, const struct fl__ce *in, float *dz)
{
    double total = 0.0;
    size_t b;
    size_t j;

    for (b = 0; b < in->batch; b++) {
        const float *row = in->z + b * in->ld;
        const float *t = in->target + b * in->classes;
        float *d = dz + b * in->ld;
        double weight = 0.0;
        double log_sum;
        float top;

        for (j = 0; j < in->classes; j++) {
            weight += (double)t[j];
        }
        log_sum = log(fl_softmax(kernels, d, row, in->classes, (double)in->scale * weight, &top));
        for (j = 0; j < in->classes; j++) {
            total += (double)t[j] * (log_sum - ((double)row[j] - (double)top));
            d[j] -= t[j] * in->scale;
        }
    }
    return total;
}

double fl__softmax_ce(const struct fl_kernels *kernels, const struct fl__ce *in, float *dz,
                      size_t *ret_correct)
{
    return in->target != NULL ? loss_of_targets(kernels, in, dz)
                              : loss_of_labels(kernels, in, dz, ret_correct);
}

/*
 * With q = softmax(z) and m = <q, rz>: dL_y = m - rz_y; its derivative by rz is q - onehot(y),
 * by z q (rz - m).
 */
double fl__softmax_ce_jvp(const struct fl_kernels *kernels, const struct fl__ce_jvp *in, float *dz,
                          float *sz, double *ret_slope)
{
    const struct fl__ce *ce = &in->ce;
    double total = fl__softmax_ce(kernels, ce, dz, NULL);
    size_t b;
    size_t j;

    *ret_slope = 0.0;
    for (b = 0; b < ce->batch; b++) {
        const float *along = in->rz + b * ce->ld;
        float *d = dz + b * ce->ld;
        float *s = sz + b * ce->ld;
        size_t label = (size_t)ce->y[b];
        double mean = 0.0;
        float top;

        FL_REQUIRE(ce->y[b] >= 0 && label < ce->classes);
        (void)fl_softmax(kernels, s, ce->z + b * ce->ld, ce->classes, 1.0, &top);
        for (j = 0; j < ce->classes; j++) {
            mean += (double)s[j] * (double)along[j];
        }
        *ret_slope += mean - (double)along[label];
        for (j = 0; j < ce->classes; j++) {
            d[j] += (float)((double)in->slope * (double)s[j] * ((double)along[j] - mean));
            s[j] *= in->slope;
        }
        s[label] -= in->slope;
    }
    return total;
}
