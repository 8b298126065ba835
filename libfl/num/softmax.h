#ifndef FL_NUM_SOFTMAX_H
#define FL_NUM_SOFTMAX_H

/*
 * Softmax of one row of numbers.
 *
 * Purity: no allocation, no state. The same numbers with the same kernels give the same bits.
 */

#include <stddef.h>

#include "libfl/num/kernels.h"

/* Row stride for n numbers: the padding is read and ignored; in q it becomes zero. */
static inline size_t fl_softmax_stride(size_t n)
{
    return (n + 15) / 16 * 16;
}

/*
 * q[j] = scale * exp(z[j] - top) / sum, where top is the largest of z[n] and sum is that of the
 * exponentials, which is returned; n >= 1. q NULL: only the sum. Exponentials below the smallest
 * normal float may be 0. With a NaN or inf in z, or only -inf, the sum is NaN.
 */
double fl_softmax(const struct fl_kernels *kernels, float *q, const float *z, size_t n,
                  double scale, float *ret_top);

#endif
