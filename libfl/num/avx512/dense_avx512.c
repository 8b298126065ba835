#include "libfl/num/dense_kern.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx2,fma")
#endif

#define FL__LANES        16
#define FL__FWD_ROWS     10
#define FL__DW_ROWS      8
#define FL__SMALL_N_ROWS 4
#include "libfl/num/dense_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__dense_kern fl__dense_avx512 = {
    .name = "avx512",
    .batch_below = SIZE_MAX,
    .forward = dense_kern_forward,
    .forward_small_n = dense_kern_forward_small_n,
    .backward_data = dense_kern_backward_data,
    .weights = dense_kern_weights,
};

#else

/* Nothing for other processors: BLAS does it. */
typedef int fl__dense_avx512;

#endif
