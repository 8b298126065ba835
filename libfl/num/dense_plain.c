#include "libfl/num/dense_kern.h"

#define FL__LANES       4
#define FL__FWD_ROWS    5
#define FL__DW_ROWS     4
#define FL__NARROW_ROWS 2
#include "libfl/num/dense_impl.h"

const struct fl__dense_kern fl__dense_plain = {
    .name = "portable",
    .batch_below = 48,
    .forward = forward,
    .forward_narrow = forward_narrow,
    .backward_data = NULL,
    .weights = weights,
};
