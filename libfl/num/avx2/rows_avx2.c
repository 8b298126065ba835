#include "libfl/num/rows_kern.h"

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif

#define ROWS_WIDTH   4
#define ROWS_TILE    2
#define ROWS_LOAD(x) (rows_lanes) _mm256_cvtps_pd(_mm_loadu_ps(x))
#include "libfl/num/rows_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__rows_kern fl__rows_avx2 = FL__ROWS_ROW;

#else

/* Nothing for other processors. */
typedef int fl__rows_avx2;

#endif
