#include "libfl/num/first_kern.h"

#define FL__LANES 4
#include "libfl/num/first_impl.h"

const struct fl__first_kern fl__first_plain = {
    .forward = forward,
    .weights = weights,
};
