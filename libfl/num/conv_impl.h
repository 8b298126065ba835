#ifndef FL_NUM_CONV_IMPL_H
#define FL_NUM_CONV_IMPL_H

/*
 * The convolution algorithms, one file and one row each; private to libfl/num and its tests. The
 * first one that supports the shape and the kernels is used (conv.c).
 */

#include "libfl/num/conv.h"
#include "libfl/num/kernels_impl.h"

struct fl__conv_algorithm {
    const char *name;
    bool (*fits)(const struct fl_conv *conv);
    /* As the functions of conv.h. */
    size_t (*place)(const struct fl_conv *conv, size_t i);
    size_t (*scratch)(const struct fl_conv *conv, size_t batch, enum fl_conv_use use);
    void (*forward)(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                    const float *w, const float *bias, size_t batch, bool relu, float *scratch);
    void (*backward)(const struct fl_conv *conv, const struct fl_conv_backward *io, float *scratch);
};

extern const struct fl__conv_algorithm fl__conv_depthwise;
extern const struct fl__conv_algorithm fl__conv_groups;
extern const struct fl__conv_algorithm fl__conv_first;
extern const struct fl__conv_algorithm fl__conv_wino;
extern const struct fl__conv_algorithm fl__conv_patches;

/* Weights as [kh][kw][c][k]. */
size_t fl__conv_place_patches(const struct fl_conv *conv, size_t i);

#endif
