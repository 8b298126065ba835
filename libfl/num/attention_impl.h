#ifndef FL_NUM_ATTENTION_IMPL_H
#define FL_NUM_ATTENTION_IMPL_H

/* What attention keeps of a sample, and its pieces of scratch; private to libfl/num. */

#include <math.h>

#include "libfl/num/attention.h"
#include "libfl/num/dense.h"
#include "libfl/num/softmax.h"

/*
 * One sample: qkv[steps][3 d], shares[heads][steps][ld], out[steps][d]; in the state of tangents
 * the tangent of each.
 */
struct fl__attention_sample {
    float *qkv, *shares, *out;
    size_t ld; /* a row of shares, as softmax writes it */
};

static inline size_t fl__attention_row(const struct fl_self_attention *at)
{
    return fl_softmax_stride(at->steps);
}

static inline struct fl__attention_sample fl__attention_sample(const struct fl_self_attention *at,
                                                               float *state)
{
    struct fl__attention_sample s = {.qkv = state, .ld = fl__attention_row(at)};

    s.out = state + fl_dense_stride(at->steps * 3 * at->d);
    s.shares = s.out + fl_dense_stride(at->steps * at->d);
    return s;
}

static inline float fl__attention_scale(const struct fl_self_attention *at)
{
    return (float)(1.0 / sqrt((double)(at->d / at->heads)));
}

/* The next n floats of a scratch. */
static inline float *fl__attention_piece(float **at, size_t n)
{
    float *p = *at;

    *at += fl_dense_stride(n);
    return p;
}

/* db += the sum of the rows of dy. */
static inline void fl__attention_bias(float *restrict db, const float *restrict dy, size_t rows,
                                      size_t n)
{
    size_t r, j;

    for (r = 0; r < rows; r++) {
        for (j = 0; j < n; j++) {
            db[j] += dy[r * n + j];
        }
    }
}

#endif
