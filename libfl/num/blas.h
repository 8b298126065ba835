#ifndef FL_NUM_BLAS_H
#define FL_NUM_BLAS_H

/*
 * OpenBLAS, loaded on first use instead of at program start: it is forty times as large as a
 * client, which does not need it with an external trainer and runs without it.
 */

#include <cblas.h>

#include "libfl/base/err.h"

struct fl__blas {
    __typeof__(&cblas_sgemm) sgemm;
    __typeof__(&openblas_set_num_threads) set_num_threads;
    __typeof__(&openblas_get_parallel) get_parallel;
    __typeof__(&openblas_get_corename) get_corename;
};

/*
 * Load OpenBLAS, once per process, with one BLAS thread; from any thread, repeated calls are
 * free. FL_ENOENT: the library or one of its functions is missing; the result is the same for
 * all later calls.
 */
FL_MUST_CHECK int fl__blas_load(struct fl_err *err);
/* The functions loaded by fl__blas_load(); NULL before. */
const struct fl__blas *fl__blas(void);

#endif
