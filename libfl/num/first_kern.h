#ifndef FL_NUM_FIRST_KERN_H
#define FL_NUM_FIRST_KERN_H

/*
 * Kernels for convolutions of images with few channels, as in a network's first layer, one row per
 * instruction set; private to libfl/num and its tests. For patches of 27 or 75 numbers gathering
 * costs more than a matrix product saves, so these kernels read the image directly
 * (docs/kernels.md#convolutions).
 *
 * One image per call. Its rows are (w + 2 pad) * c floats: the caller adds the padding. Weights and
 * their gradient are [kh][kw][c][k], stride is 1 and k a multiple of FL__FIRST_OUTPUTS. Nothing is
 * read or written beyond the operands.
 *
 * Purity: no allocation, no state. Pointers need no alignment; 64 bytes are faster.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/conv.h"

#define FL__FIRST_OUTPUTS 16

struct fl__first_kern {
    /* y[oh][ow][k]; NaN passes ReLU. */
    void (*forward)(const struct fl_conv *conv, float *y, const float *image, const float *w,
                    const float *bias, bool relu);
    /* Add the contribution of this image to the gradient of the weights g. */
    void (*weights)(const struct fl_conv *conv, float *g, const float *image, const float *dy);
};

#if defined(__x86_64__)
extern const struct fl__first_kern fl__first_avx512;
extern const struct fl__first_kern fl__first_avx2;
#endif
/* For every processor. */
extern const struct fl__first_kern fl__first_plain;

#endif
