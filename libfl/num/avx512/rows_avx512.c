#include "libfl/num/rows_kern.h"

#if defined(__x86_64__)

#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx2,fma,prefer-vector-width=512")
#endif

#define ROWS_WIDTH   8
#define ROWS_TILE    5
#define ROWS_LOAD(x) (rows_lanes) _mm512_cvtps_pd(_mm256_loadu_ps(x))
#include "libfl/num/rows_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__rows_kern fl__rows_avx512 = FL__ROWS_ROW;

#else

/* Nothing for other processors. */
typedef int fl__rows_avx512;

#endif
