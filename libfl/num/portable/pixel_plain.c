#define FL__LANES 4
#include "libfl/num/act_impl.h"
#include "libfl/num/pixel_impl.h"
#include "libfl/num/pool_impl.h"
#include "libfl/num/softmax_impl.h"

const struct fl__pixel_kern fl__pixel_plain = FL__PIXEL_ROW("portable");
