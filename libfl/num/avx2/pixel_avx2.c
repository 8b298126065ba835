#include "libfl/num/pixel_kern.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define FL__LANES 8
#include "libfl/num/act_impl.h"
#include "libfl/num/pixel_impl.h"
#include "libfl/num/pool_impl.h"
#include "libfl/num/softmax_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__pixel_kern fl__pixel_avx2 = FL__PIXEL_ROW("avx2");

#else

/* Other processors have the plain row. */
typedef int fl__pixel_avx2;

#endif
