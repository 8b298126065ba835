#ifndef FL_NUM_BLAS_H
#define FL_NUM_BLAS_H

/*
 * OpenBLAS, loaded when it is first asked for instead of with the program: it is forty times as
 * large as a client, which has no use for it where a program of the user's own trains, and runs
 * without it.
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
 * Once per process, on one BLAS thread; from any thread, and again at no cost. FL_ENOENT: there is
 * no such library, or not all of these in it; again and again in a process that was told so once.
 */
FL_MUST_CHECK int fl__blas_load(struct fl_err *err);
/* What fl__blas_load() loaded; NULL before that. */
const struct fl__blas *fl__blas(void);

#endif
