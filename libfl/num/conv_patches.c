/*
 * Convolution algorithm for every shape: patches are gathered into a matrix (im2col) and
 * OpenBLAS multiplies (docs/kernels.md#convolutions). Weights are [kh][kw][c][k], so that one
 * patch row times the weights is one pixel of y. The scratch holds the gradient and the patches
 * of a few images. No state; runs on the caller's thread.
 */
#include <string.h>

#include "libfl/num/conv_impl.h"
#include "libfl/num/dense.h"
#include "libfl/num/gemm.h"

/*
 * Minimum rows of one product: a single map of 8x8 has too few rows for BLAS to reach its speed,
 * but patches of whole batches do not fit into the L2 cache (docs/kernels.md#convolutions).
 */
#define MIN_ROWS 256

static bool conv_patches_fits(const struct fl_conv *conv)
{
    (void)conv;
    return true;
}

static size_t patch_size(const struct fl_conv *conv)
{
    return conv->kh * conv->kw * conv->c;
}

size_t fl__conv_place_patches(const struct fl_conv *conv, size_t i)
{
    size_t area = conv->kh * conv->kw;

    return (i % area * conv->c + i / area % conv->c) * conv->k + i / area / conv->c;
}

/* Number of images whose patches are gathered together. */
static size_t block_images(const struct fl_conv *conv)
{
    size_t pixels = conv->oh * conv->ow;

    return pixels >= MIN_ROWS ? 1 : (MIN_ROWS + pixels - 1) / pixels;
}

/* Offset of the patches in the scratch, after a gradient. */
static size_t patches_offset(const struct fl_conv *conv)
{
    return fl_dense_stride(fl_conv_weights(conv));
}

static size_t conv_patches_scratch_size(const struct fl_conv *conv, size_t batch,
                                        enum fl_conv_use use)
{
    (void)batch;
    return (use != FL_CONV_FORWARD ? patches_offset(conv) : 0) +
           block_images(conv) * conv->oh * conv->ow * patch_size(conv) + FL_DENSE_SLACK;
}

/* The part of a window inside the image, along one side. */
struct span {
    size_t from; /* first position on the image */
    size_t skip; /* positions of the window before the image */
    size_t n;    /* positions on the image */
};

static struct span span_of(size_t at, size_t size, size_t stride, size_t pad, size_t side)
{
    size_t begin = at * stride; /* in the padded image */
    size_t end = begin + size < pad + side ? begin + size : pad + side;
    size_t start = begin > pad ? begin : pad;

    return (struct span){
        .from = start - pad, .skip = start - begin, .n = end > start ? end - start : 0};
}

/*
 * Gather one patch row per output pixel; each kernel row in it is one run of pixels of the
 * image.
 */
static void conv_patches_gather(const struct fl_conv *conv, float *patches, const float *x)
{
    size_t run = conv->kw * conv->c;
    size_t oy, ox, i;

    for (oy = 0; oy < conv->oh; oy++) {
        struct span v = span_of(oy, conv->kh, conv->stride, conv->pad, conv->h);

        for (ox = 0; ox < conv->ow; ox++) {
            struct span u = span_of(ox, conv->kw, conv->stride, conv->pad, conv->w);

            if (v.n < conv->kh || u.n < conv->kw) {
                (void)memset(patches, 0, patch_size(conv) * sizeof(*patches));
            }
            for (i = 0; i < v.n; i++) {
                const float *from = x + ((v.from + i) * conv->w + u.from) * conv->c;

                (void)memcpy(patches + (v.skip + i) * run + u.skip * conv->c, from,
                             u.n * conv->c * sizeof(*patches));
            }
            patches += patch_size(conv);
        }
    }
}

/* The adjoint of conv_patches_gather(): adds every patch to the pixels it was gathered from. */
static void conv_patches_scatter(const struct fl_conv *conv, float *restrict dx,
                                 const float *restrict patches)
{
    size_t run = conv->kw * conv->c;
    size_t oy, ox, i, j;

    for (oy = 0; oy < conv->oh; oy++) {
        struct span v = span_of(oy, conv->kh, conv->stride, conv->pad, conv->h);

        for (ox = 0; ox < conv->ow; ox++) {
            struct span u = span_of(ox, conv->kw, conv->stride, conv->pad, conv->w);

            for (i = 0; i < v.n; i++) {
                float *to = dx + ((v.from + i) * conv->w + u.from) * conv->c;
                const float *from = patches + (v.skip + i) * run + u.skip * conv->c;

                for (j = 0; j < u.n * conv->c; j++) {
                    to[j] += from[j];
                }
            }
            patches += patch_size(conv);
        }
    }
}

/*
 * Number of images per product: a block, or one when padding after the samples prevents treating
 * rows as one matrix with stride `ld`.
 */
static size_t conv_patches_joined(const struct fl_conv *conv, size_t ld, size_t images)
{
    return ld == conv->oh * conv->ow * conv->k ? images : 1;
}

static void conv_patches_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x,
                                 size_t ldx, const float *w, const float *bias, size_t batch,
                                 bool relu, float *scratch)
{
    size_t pixels = conv->oh * conv->ow;
    size_t patch = patch_size(conv);
    size_t block = conv_patches_joined(conv, ldy, block_images(conv));
    size_t b, i;

    for (b = 0; b < batch; b += block) {
        size_t n = batch - b < block ? batch - b : block;

        for (i = 0; i < n; i++) {
            conv_patches_gather(conv, scratch + i * pixels * patch, x + (b + i) * ldx);
        }
        fl_gemm(false, false, n * pixels, conv->k, patch, 1.0f, scratch, patch, w, conv->k, 0.0f,
                y + b * ldy, conv->k);
        /* While the block is in the cache. */
        fl_dense_add_bias(conv->kernels, y + b * ldy, conv->k, bias, n * pixels, conv->k, relu);
    }
}

static void conv_patches_backward_data(const struct fl_conv *conv, float *dx, size_t lddx,
                                       const float *dy, size_t lddy, const float *w, size_t batch,
                                       float *scratch)
{
    size_t pixels = conv->oh * conv->ow;
    size_t patch = patch_size(conv);
    size_t block = conv_patches_joined(conv, lddy, block_images(conv));
    size_t b, i;

    for (b = 0; b < batch; b += block) {
        size_t n = batch - b < block ? batch - b : block;

        fl_gemm(false, true, n * pixels, patch, conv->k, 1.0f, dy + b * lddy, conv->k, w, conv->k,
                0.0f, scratch, patch);
        for (i = 0; i < n; i++) {
            (void)memset(dx + (b + i) * lddx, 0, lddx * sizeof(*dx));
            conv_patches_scatter(conv, dx + (b + i) * lddx, scratch + i * pixels * patch);
        }
    }
}

static void backward_weights(const struct fl_conv *conv, float *dw, const float *x, size_t ldx,
                             const float *dy, size_t lddy, size_t batch, bool add, float *scratch)
{
    size_t pixels = conv->oh * conv->ow;
    size_t patch = patch_size(conv);
    size_t block = conv_patches_joined(conv, lddy, block_images(conv));
    size_t b, i;

    if (batch == 0 && !add) { /* no product would set it */
        (void)memset(dw, 0, fl_conv_weights(conv) * sizeof(*dw));
    }
    for (b = 0; b < batch; b += block) {
        size_t n = batch - b < block ? batch - b : block;

        for (i = 0; i < n; i++) {
            conv_patches_gather(conv, scratch + i * pixels * patch, x + (b + i) * ldx);
        }
        fl_gemm(true, false, patch, conv->k, n * pixels, 1.0f, scratch, patch, dy + b * lddy,
                conv->k, b == 0 && !add ? 0.0f : 1.0f, dw, conv->k);
    }
}

static void conv_patches_backward(const struct fl_conv *conv, const struct fl_conv_backward *io,
                                  float *scratch)
{
    float *patches = scratch + patches_offset(conv);

    if (io->dx != NULL) {
        conv_patches_backward_data(conv, io->dx, io->lddx, io->dy, io->lddy, io->w, io->batch,
                                   patches);
    }
    if (io->update == NULL) {
        return;
    }
    backward_weights(conv, scratch, io->x, io->ldx, io->dy, io->lddy, io->batch, /* add= */ false,
                     patches);
    if (io->rx != NULL) {
        backward_weights(conv, scratch, io->rx, io->ldx, io->sy, io->lddy, io->batch,
                         /* add= */ true, patches);
    }
    io->update(io->ctx, 0, fl_conv_weights(conv), scratch);
}

const struct fl__conv_algorithm fl__conv_patches = {
    .name = "patches",
    .fits = conv_patches_fits,
    .place = fl__conv_place_patches,
    .scratch = conv_patches_scratch_size,
    .forward = conv_patches_forward,
    .backward = conv_patches_backward,
};
