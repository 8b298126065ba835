#ifndef FL_NUM_ACT_H
#define FL_NUM_ACT_H

/*
 * Activation functions of n numbers: sigmoid 1 / (1 + exp(-x)), tanh, and GELU in its exact form,
 * x times the cumulative normal distribution (Hendrycks and Gimpel 2016). NaN stays NaN. Purity: no
 * allocation, no state.
 */

#include <stddef.h>

#include "libfl/num/kernels.h"

enum fl_act { FL_ACT_SIGMOID, FL_ACT_TANH, FL_ACT_GELU };

void fl_act_forward(const struct fl_kernels *kernels, enum fl_act act, float *y, const float *x,
                    size_t n);
/* The derivative at x; y is the output of forward, which alone is read, of GELU x alone. */
void fl_act_slope(const struct fl_kernels *kernels, enum fl_act act, float *slope, const float *x,
                  const float *y, size_t n);
/*
 * The derivative of the slope along a direction rx of x: bend = f''(x) rx. It is computed from y
 * and ry = f'(x) rx, of GELU from x and rx.
 */
void fl_act_bend(enum fl_act act, float *bend, const float *at, const float *along, size_t n);

#endif
