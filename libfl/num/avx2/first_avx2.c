#include "libfl/num/first_kern.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define FL__LANES 8
#include "libfl/num/first_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__first_kern fl__first_avx2 = {
    .forward = first_kern_forward,
    .weights = first_kern_weights,
};

#else

/* Nothing for other processors. */
typedef int fl__first_avx2;

#endif
