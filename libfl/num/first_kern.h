#ifndef FL_NUM_FIRST_KERN_H
#define FL_NUM_FIRST_KERN_H

/*
 * Own kernels for convolutions of images with few channels, which is what a network's first
 * layer sees, one row per instruction set; private to libfl/num and its tests. Patches of 27
 * or 75 numbers are too few for a matrix product to pay for gathering them, and so these
 * read the image where it lies (docs/kernels.md#convolutions).
 *
 * One image a call. Its rows are (w + 2 pad) * c floats: padded images are made by the caller,
 * an image without padding is one already. Weights and their gradient are [kh][kw][c][k], stride
 * is 1 and k a multiple of FL__FIRST_OUTPUTS. Nothing is read or written beyond the operands.
 *
 * Purity: no allocation, no state. Pointers need no alignment, but 64 bytes are faster.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/conv.h"

#define FL__FIRST_OUTPUTS 16

struct fl__first_kern {
    /* y[oh][ow][k]; NaN passes ReLU. */
    void (*forward)(const struct fl_conv *conv, float *y, const float *image, const float *w,
                    const float *bias, bool relu);
    /* g += what this image adds to the gradient of the weights. */
    void (*weights)(const struct fl_conv *conv, float *g, const float *image, const float *dy);
};

#if defined(__x86_64__)
extern const struct fl__first_kern fl__first_avx512;
extern const struct fl__first_kern fl__first_avx2;
#endif
/* For every processor. */
extern const struct fl__first_kern fl__first_plain;

#endif
