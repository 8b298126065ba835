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
#define PLAIN(what, which)              \
    {                                   \
        .text = (what), .kind = (which) \
    }
#define BLOCK      PLAIN("block", REF_BLOCK)
#define SHORTCUT   PLAIN("shortcut", REF_SHORTCUT)
#define ADD        PLAIN("add", REF_ADD)
#define LN         PLAIN("ln", REF_LN)
#define GLOBALPOOL PLAIN("globalpool", REF_GLOBALPOOL)
#define SIGMOID    PLAIN("sigmoid", REF_SIGMOID)
#define TANH       PLAIN("tanh", REF_TANH)
#define GELU       PLAIN("gelu", REF_GELU)
#define LAST       PLAIN("last", REF_LAST)
#define EMBEDDING(what, words, n)                                        \
    {                                                                    \
        .text = (what), .kind = REF_EMBEDDING, .out = (n), .kh = (words) \
    }
#define LSTM(what, n)                                \
    {                                                \
        .text = (what), .kind = REF_LSTM, .out = (n) \
    }
#define ATTENTION(what, n, masked)                                           \
    {                                                                        \
        .text = (what), .kind = REF_ATTENTION, .kh = (n), .nobias = (masked) \
    }
#define ROW(n, ...)                                                   \
    {                                                                 \
        .input = {(n), 1, 1}, .flat = true, .layers = { __VA_ARGS__ } \
    }
#define GN(what, n)                                \
    {                                              \
        .text = (what), .kind = REF_GN, .out = (n) \
    }
#define AVGPOOL(what, size, step)                                                         \
    {                                                                                     \
        .text = (what), .kind = REF_AVGPOOL, .kh = (size), .kw = (size), .stride = (step) \
    }
#define CONVG(what, n, y, x, step, edge, parts, bare)                                         \
    {                                                                                         \
        .text = (what), .kind = REF_CONV, .out = (n), .kh = (y), .kw = (x), .stride = (step), \
        .pad = (edge), .groups = (parts), .nobias = (bare)                                    \
    }
#define IMAGE(c, h, w, ...)                                 \
    {                                                       \
        .input = {(c), (h), (w)}, .layers = { __VA_ARGS__ } \
    }

#endif
