#include "libfl/num/dense_kern.h"

#define FL__LANES        4
#define FL__FWD_ROWS     5
#define FL__DW_ROWS      4
#define FL__SMALL_N_ROWS 2
#include "libfl/num/dense_impl.h"

const struct fl__dense_kern fl__dense_plain = {
    .name = "portable",
    .batch_below = 48,
    .forward = dense_kern_forward,
    .forward_small_n = dense_kern_forward_small_n,
    .backward_data = NULL,
    .weights = dense_kern_weights,
};
