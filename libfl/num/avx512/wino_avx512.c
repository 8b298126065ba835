#include "libfl/num/wino_kern.h"

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,avx2,fma")
#endif

#define FL__LANES      16
#define FL__PANEL_ROWS 12
#include "libfl/num/panel_impl.h"
#include "libfl/num/wino_forms_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct fl__wino_kern fl__wino_avx512 = {
    .form = {[FL__WINO_3X3] = &wino_kernel3,
             [FL__WINO_5X5] = &wino_kernel5,
             [FL__WINO_2X2] = &wino_map2},
    .turn = packed_transpose,
    .nn = packed_product_nn,
    .tn = packed_product_tn,
};

#else

/* Nothing for other processors. */
typedef int fl__wino_avx512;

#endif
