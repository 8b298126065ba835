#include "libfl/num/softmax.h"

#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"

double fl_softmax(const struct fl_kernels *kernels, float *q, const float *z, size_t n,
                  double scale, float *ret_top)
{
    return kernels->pixel->softmax(q, z, n, scale, ret_top);
}
