#include "libfl/num/first_kern.h"

#define FL__LANES 4
#include "libfl/num/first_impl.h"

const struct fl__first_kern fl__first_plain = {
    .forward = first_kern_forward,
    .weights = first_kern_weights,
};
