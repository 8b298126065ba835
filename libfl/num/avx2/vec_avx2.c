#include "libfl/num/vec_kern.h"

#if defined(__x86_64__)

/* Without "fma": nothing here may be contracted. */
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2")
#endif

#include "libfl/num/vec_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__vec_kern fl__vec_avx2 = FL__VEC_ROW;

#else

/* Nothing for other processors. */
typedef int fl__vec_avx2;

#endif
