#include <string.h>

#include "libfl/num/conv_impl.h"
#include "libfl/num/dense.h"
#include "libfl/num/first_kern.h"

/*
 * Convolution algorithm for images of few channels, as in a network's first layer: special
 * kernels read the image without gathering patches (docs/kernels.md#convolutions). Weights are
 * [kh][kw][c][k], the order of the patches algorithm, which also computes the gradient of the
 * input where it is needed. The scratch holds the gradient and, with padding, one padded image.
 */

/* Above this number of channels a matrix product of patches is faster. */
#define CHANNELS_MAX 4

static bool conv_first_fits(const struct fl_conv *conv)
{
    return conv->kernels->first != NULL && conv->c <= CHANNELS_MAX && conv->stride == 1 &&
           conv->k % FL__FIRST_OUTPUTS == 0;
}

static size_t padded_row(const struct fl_conv *conv)
{
    return (conv->w + 2 * conv->pad) * conv->c;
}

static size_t conv_first_padded_size(const struct fl_conv *conv)
{
    return (conv->h + 2 * conv->pad) * padded_row(conv);
}

/* Offset of the padded image in the scratch, after a gradient. */
static size_t image_offset(const struct fl_conv *conv)
{
    return fl_dense_stride(fl_conv_weights(conv));
}

static size_t conv_first_scratch_size(const struct fl_conv *conv, size_t batch,
                                      enum fl_conv_use use)
{
    size_t own = (use != FL_CONV_FORWARD ? image_offset(conv) : 0) +
                 (conv->pad > 0 ? conv_first_padded_size(conv) : 0);
    size_t patches = use != FL_CONV_FORWARD ? fl__conv_patches.scratch(conv, batch, use) : 0;

    return own > patches ? own : patches;
}

/* Clear the padding frame around an image, which is copied later. */
static void clear_frame(const struct fl_conv *conv, float *padded)
{
    if (conv->pad > 0) {
        (void)memset(padded, 0, conv_first_padded_size(conv) * sizeof(*padded));
    }
}

/* The image as the kernels need it: unchanged, or copied into its padding frame. */
static const float *conv_first_pad_image(const struct fl_conv *conv, float *padded, const float *x)
{
    size_t row = conv->w * conv->c;
    size_t i;

    if (conv->pad == 0) {
        return x;
    }
    for (i = 0; i < conv->h; i++) {
        (void)memcpy(padded + (conv->pad + i) * padded_row(conv) + conv->pad * conv->c, x + i * row,
                     row * sizeof(*x));
    }
    return padded;
}

static void conv_first_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x,
                               size_t ldx, const float *w, const float *bias, size_t batch,
                               bool relu, float *scratch)
{
    size_t b;

    clear_frame(conv, scratch);
    for (b = 0; b < batch; b++) {
        conv->kernels->first->forward(
            conv, y + b * ldy, conv_first_pad_image(conv, scratch, x + b * ldx), w, bias, relu);
    }
}

static void conv_first_add_weights(const struct fl_conv *conv, float *g, const float *x, size_t ldx,
                                   const float *dy, size_t lddy, size_t batch, float *padded)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        conv->kernels->first->weights(conv, g, conv_first_pad_image(conv, padded, x + b * ldx),
                                      dy + b * lddy);
    }
}

static void conv_first_backward(const struct fl_conv *conv, const struct fl_conv_backward *io,
                                float *scratch)
{
    float *padded = scratch + image_offset(conv);

    if (io->dx != NULL) {
        struct fl_conv_backward data = *io;

        data.update = NULL;
        fl__conv_patches.backward(conv, &data, scratch);
    }
    if (io->update == NULL) {
        return;
    }
    (void)memset(scratch, 0, fl_conv_weights(conv) * sizeof(*scratch));
    clear_frame(conv, padded);
    conv_first_add_weights(conv, scratch, io->x, io->ldx, io->dy, io->lddy, io->batch, padded);
    if (io->rx != NULL) {
        conv_first_add_weights(conv, scratch, io->rx, io->ldx, io->sy, io->lddy, io->batch, padded);
    }
    io->update(io->ctx, 0, fl_conv_weights(conv), scratch);
}

const struct fl__conv_algorithm fl__conv_first = {
    .name = "first",
    .fits = conv_first_fits,
    .place = fl__conv_place_patches,
    .scratch = conv_first_scratch_size,
    .forward = conv_first_forward,
    .backward = conv_first_backward,
};
