#ifndef FL_NUM_KERNELS_IMPL_H
#define FL_NUM_KERNELS_IMPL_H

/* The rows of the instruction-set table (kernels.h); private to libfl/num and its tests. */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/kernels.h"

struct fl__dense_kern;
struct fl__first_kern;
struct fl__pixel_kern;
struct fl__wino_kern;

struct fl_kernels {
    const char *name;
    bool (*supported)(void);            /* the processor supports it */
    const struct fl__dense_kern *dense; /* NULL: BLAS */
    const struct fl__first_kern *first; /* NULL: patches and BLAS */
    const struct fl__wino_kern *wino;   /* NULL: patches and BLAS */
    const struct fl__pixel_kern *pixel;
};

/* The i-th row, fastest first, supported or not; NULL past the end. */
const struct fl_kernels *fl__kernels_row(size_t i);

#endif
