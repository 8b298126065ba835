#include "libfl/num/gemm.h"

#include <limits.h>
#include <pthread.h>

#include "libfl/num/blas.h"

/*
 * OpenBLAS built without threads can give the same buffer to two concurrent callers: one product
 * in a thousand is then wrong. With that build products are serialised; a daemon has only one
 * thread that multiplies. The build with threads (libopenblas-pthread) supports concurrent
 * callers.
 */
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

int fl_gemm_init(struct fl_err *err)
{
    return fl__blas_load(err);
}

const char *fl_gemm_kernel(void)
{
    const struct fl__blas *blas = fl__blas();

    return blas != NULL ? blas->get_corename() : "none";
}

/* As in BLAS, beta = 0 overwrites even NaN. */
static void scale_rows(size_t m, size_t n, float beta, float *c, size_t ldc)
{
    size_t i;
    size_t j;

    for (i = 0; i < m; i++) {
        for (j = 0; j < n; j++) {
            c[i * ldc + j] = beta < 0.0f || beta > 0.0f ? c[i * ldc + j] * beta : 0.0f;
        }
    }
}

void fl_gemm(bool trans_a, bool trans_b, size_t m, size_t n, size_t k, float alpha, const float *a,
             size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
    const struct fl__blas *blas = fl__blas();

    if (m == 0 || n == 0) {
        return;
    }
    if (k == 0) {
        scale_rows(m, n, beta, c, ldc);
        return;
    }
    FL_REQUIRE(blas != NULL);
    FL_REQUIRE(m <= INT_MAX && n <= INT_MAX && k <= INT_MAX && lda <= INT_MAX && ldb <= INT_MAX &&
               ldc <= INT_MAX);
    FL_REQUIRE(lda >= (trans_a ? m : k) && ldb >= (trans_b ? k : n) && ldc >= n);
    if (blas->get_parallel() == 0) {
        (void)pthread_mutex_lock(&one_at_a_time);
    }
    blas->sgemm(CblasRowMajor, trans_a ? CblasTrans : CblasNoTrans,
                trans_b ? CblasTrans : CblasNoTrans, (blasint)m, (blasint)n, (blasint)k, alpha, a,
                (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
    if (blas->get_parallel() == 0) {
        (void)pthread_mutex_unlock(&one_at_a_time);
    }
}
