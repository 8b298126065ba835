#ifndef FL_TESTS_NUM_REFERENCE_H
#define FL_TESTS_NUM_REFERENCE_H

/* Convolutions and products loop by loop, with double sums: what the kernels are compared with. */

#include "libfl/num/conv.h"

/*
 * Reference in plain loops with double sums, for weights [kh][kw][c][k], one group, and equal
 * strides of dx and x.
 */
void conv_forward_ref(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                      const float *w, const float *bias, size_t batch, bool relu);
void conv_backward_data_ref(const struct fl_conv *conv, float *dx, size_t lddx, const float *dy,
                            size_t lddy, const float *w, size_t batch);
void conv_backward_weights_ref(const struct fl_conv *conv, float *dw, const float *x, size_t ldx,
                               const float *dy, size_t lddy, size_t batch);
/* Reference of fl_gemm() in plain C with double sums. */
void gemm_ref(bool trans_a, bool trans_b, size_t m, size_t n, size_t k, float alpha, const float *a,
              size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc);

#endif
