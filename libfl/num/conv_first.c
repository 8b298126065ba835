#include <string.h>

#include "libfl/num/conv_impl.h"
#include "libfl/num/dense.h"
#include "libfl/num/first_kern.h"

/*
 * Images of few channels, as a network's first layer has them: own kernels read the image where
 * it lies (docs/kernels.md#convolutions). Weights lie as [kh][kw][c][k], the order of the patches,
 * which also make the gradient of the input where anybody asks for it. The scratch holds the
 * gradient and, where there is padding, one padded image.
 */

/* From here on patches are long enough for a matrix product. */
#define CHANNELS_MAX 4

static bool fits(const struct fl_conv *conv)
{
    return conv->kernels->first != NULL && conv->c <= CHANNELS_MAX && conv->stride == 1 &&
           conv->k % FL__FIRST_OUTPUTS == 0;
}

static size_t padded_row(const struct fl_conv *conv)
{
    return (conv->w + 2 * conv->pad) * conv->c;
}

static size_t padded_size(const struct fl_conv *conv)
{
    return (conv->h + 2 * conv->pad) * padded_row(conv);
}

/* Where the padded image lies in the scratch, behind a gradient. */
static size_t image_offset(const struct fl_conv *conv)
{
    return fl_dense_stride(fl_conv_weights(conv));
}

static size_t scratch_size(const struct fl_conv *conv, size_t batch, enum fl_conv_use use)
{
    size_t own =
        (use != FL_CONV_FORWARD ? image_offset(conv) : 0) + (conv->pad > 0 ? padded_size(conv) : 0);
    size_t patches = use != FL_CONV_FORWARD ? fl__conv_patches.scratch(conv, batch, use) : 0;

    return own > patches ? own : patches;
}

/* A frame of zeros around an image that is still to come. */
static void clear_frame(const struct fl_conv *conv, float *padded)
{
    if (conv->pad > 0) {
        (void)memset(padded, 0, padded_size(conv) * sizeof(*padded));
    }
}

/* The image as the kernels want it: itself, or copied into its frame. */
static const float *framed(const struct fl_conv *conv, float *padded, const float *x)
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

static void forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                    const float *w, const float *bias, size_t batch, bool relu, float *scratch)
{
    size_t b;

    clear_frame(conv, scratch);
    for (b = 0; b < batch; b++) {
        conv->kernels->first->forward(conv, y + b * ldy, framed(conv, scratch, x + b * ldx), w,
                                      bias, relu);
    }
}

static void add_weights(const struct fl_conv *conv, float *g, const float *x, size_t ldx,
                        const float *dy, size_t lddy, size_t batch, float *padded)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        conv->kernels->first->weights(conv, g, framed(conv, padded, x + b * ldx), dy + b * lddy);
    }
}

static void backward(const struct fl_conv *conv, const struct fl_conv_backward *io, float *scratch)
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
    add_weights(conv, scratch, io->x, io->ldx, io->dy, io->lddy, io->batch, padded);
    if (io->rx != NULL) {
        add_weights(conv, scratch, io->rx, io->ldx, io->sy, io->lddy, io->batch, padded);
    }
    io->update(io->ctx, 0, fl_conv_weights(conv), scratch);
}

const struct fl__conv_way fl__conv_first = {
    .name = "first",
    .fits = fits,
    .place = fl__conv_place_patches,
    .scratch = scratch_size,
    .forward = forward,
    .backward = backward,
};
