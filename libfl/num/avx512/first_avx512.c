#include "libfl/num/first_kern.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx2,fma")
#endif

#define FL__LANES 16
#include "libfl/num/first_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__first_kern fl__first_avx512 = {
    .forward = first_kern_forward,
    .weights = first_kern_weights,
};

#else

/* Nothing for other processors. */
typedef int fl__first_avx512;

#endif
