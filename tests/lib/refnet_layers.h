#ifndef FL_TESTS_REFNET_LAYERS_H
#define FL_TESTS_REFNET_LAYERS_H

/* Layers of refnet.h, short enough to be read as networks. */

#include "tests/lib/refnet.h"

#define RELU                             \
    {                                    \
        .text = "relu", .kind = REF_RELU \
    }
#define FLATTEN                                \
    {                                          \
        .text = "flatten", .kind = REF_FLATTEN \
    }
#define DENSE(what, n)                                \
    {                                                 \
        .text = (what), .kind = REF_DENSE, .out = (n) \
    }
#define DENSE3 DENSE("dense 3", 3)
#define CONV(what, n, y, x, step, edge)                                                       \
    {                                                                                         \
        .text = (what), .kind = REF_CONV, .out = (n), .kh = (y), .kw = (x), .stride = (step), \
        .pad = (edge)                                                                         \
    }
#define CONV4 CONV("conv 4 3x3 pad 1", 4, 3, 3, 1, 1)
#define POOL(what, size, step, edge, y, x)                                                 \
    {                                                                                      \
        .text = (what), .kind = REF_MAXPOOL, .kh = (size), .kw = (size), .stride = (step), \
        .pad = (edge), .oh = (y), .ow = (x)                                                \
    }
#define BN                           \
    {                                \
        .text = "bn", .kind = REF_BN \
    }
#define LRN                            \
    {                                  \
        .text = "lrn", .kind = REF_LRN \
    }
#define DROPOUT(what, share)                                 \
    {                                                        \
        .text = (what), .kind = REF_DROPOUT, .rate = (share) \
    }
#define IMAGE(c, h, w, ...)                                 \
    {                                                       \
        .input = {(c), (h), (w)}, .layers = { __VA_ARGS__ } \
    }

#endif
