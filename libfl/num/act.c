#include "libfl/num/act.h"

#include <math.h>

#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"

void fl_act_forward(const struct fl_kernels *kernels, enum fl_act act, float *y, const float *x,
                    size_t n)
{
    switch (act) {
    case FL_ACT_SIGMOID:
        kernels->pixel->sigmoid(y, x, n);
        break;
    case FL_ACT_TANH:
        kernels->pixel->tanh(y, x, n);
        break;
    case FL_ACT_GELU:
    default:
        kernels->pixel->gelu(y, x, n);
        break;
    }
}

void fl_act_slope(const struct fl_kernels *kernels, enum fl_act act, float *restrict slope,
                  const float *restrict x, const float *restrict y, size_t n)
{
    size_t i;

    switch (act) {
    case FL_ACT_SIGMOID:
        for (i = 0; i < n; i++) {
            slope[i] = y[i] * (1.0f - y[i]);
        }
        break;
    case FL_ACT_TANH:
        for (i = 0; i < n; i++) {
            slope[i] = 1.0f - y[i] * y[i];
        }
        break;
    case FL_ACT_GELU:
    default:
        kernels->pixel->gelu_slope(slope, x, n);
        break;
    }
}

void fl_act_bend(enum fl_act act, float *restrict bend, const float *restrict at,
                 const float *restrict along, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        if (act == FL_ACT_SIGMOID) {
            bend[i] = (1.0f - 2.0f * at[i]) * along[i];
        } else if (act == FL_ACT_TANH) {
            bend[i] = -2.0f * at[i] * along[i];
        } else {
            double v = (double)at[i];

            /* exp(-x^2 / 2) / sqrt(2 pi) is the derivative of the cumulative distribution. */
            bend[i] = (float)(0.39894228040143268 * exp(-0.5 * v * v) * (2.0 - v * v)) * along[i];
        }
    }
}
