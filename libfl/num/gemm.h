#ifndef FL_NUM_GEMM_H
#define FL_NUM_GEMM_H

/*
 * The only user of OpenBLAS. Row-major single precision matrices.
 *
 * Threading: fl_gemm_init() loads OpenBLAS and sets it to one thread; the same kernel on
 * the same shapes then gives the same bits.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"

/*
 * Load OpenBLAS; must be called before the first product, from any thread, repeated calls are
 * allowed. FL_ENOENT: OpenBLAS is missing, so no network can be created; the message names the
 * library and the package to install.
 */
FL_MUST_CHECK int fl_gemm_init(struct fl_err *err);
/* Name of the BLAS kernel in use, "none" before fl_gemm_init(); for logs and benchmark output. */
const char *fl_gemm_kernel(void);

/*
 * C[m][n] = alpha * op(A) * op(B) + beta * C, with op(A) m x k and op(B) k x n;
 * lda, ldb, ldc are row strides of the stored matrices.
 */
void fl_gemm(bool trans_a, bool trans_b, size_t m, size_t n, size_t k, float alpha, const float *a,
             size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc);

#endif
