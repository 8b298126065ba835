#include "libfl/num/dense_kern.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define FL__LANES        8
#define FL__FWD_ROWS     5
#define FL__DW_ROWS      4
#define FL__SMALL_N_ROWS 2
#include "libfl/num/dense_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__dense_kern fl__dense_avx2 = {
    .name = "avx2",
    .batch_below = 48,
    .forward = dense_kern_forward,
    .forward_small_n = dense_kern_forward_small_n,
    .backward_data = NULL,
    .weights = dense_kern_weights,
};

#else

/* Nothing for other processors: BLAS does it. */
typedef int fl__dense_avx2;

#endif
