#include "libfl/num/wino_kern.h"

#define FL__LANES      4
#define FL__PANEL_ROWS 4
#include "libfl/num/panel_impl.h"
#include "libfl/num/wino_forms_impl.h"

const struct fl__wino_kern fl__wino_plain = {
    .form = {[FL__WINO_3X3] = &wino_kernel3,
             [FL__WINO_5X5] = &wino_kernel5,
             [FL__WINO_2X2] = &wino_map2},
    .turn = packed_transpose,
    .nn = packed_product_nn,
    .tn = packed_product_tn,
};
