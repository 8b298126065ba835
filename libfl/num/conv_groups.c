/*
 * Grouped convolution: output channels of a group read the input channels of that group alone. Two
 * algorithms: "depthwise" for one channel in and out of each group, a row of pixels at a time;
 * "groups" for every other shape, patches of one group and OpenBLAS, as in conv_patches.c. Weights
 * are [kh][kw][k], and [group][kh][kw][c / groups][k / groups]. No state; runs on the caller's
 * thread.
 */
#include <stdint.h>
#include <string.h>

#include "libfl/num/conv_impl.h"
#include "libfl/num/gemm.h"
#include "libfl/num/pixel_kern.h"

static size_t groups_c(const struct fl_conv *conv)
{
    return conv->c / conv->groups;
}

static size_t groups_k(const struct fl_conv *conv)
{
    return conv->k / conv->groups;
}

/* Offset of a window's position in x; SIZE_MAX outside of the image. */
static size_t groups_at(const struct fl_conv *conv, size_t pixel, size_t tap)
{
    size_t y = pixel / conv->ow * conv->stride + tap / conv->kw;
    size_t x = pixel % conv->ow * conv->stride + tap % conv->kw;

    if (y < conv->pad || x < conv->pad || y >= conv->h + conv->pad || x >= conv->w + conv->pad) {
        return SIZE_MAX;
    }
    return ((y - conv->pad) * conv->w + x - conv->pad) * conv->c;
}

/* --- every shape --- */

static bool groups_fits(const struct fl_conv *conv)
{
    return conv->groups > 1;
}

static size_t groups_patch(const struct fl_conv *conv)
{
    return conv->kh * conv->kw * groups_c(conv);
}

static size_t groups_place(const struct fl_conv *conv, size_t i)
{
    size_t area = conv->kh * conv->kw;
    size_t out = i / area / groups_c(conv);
    size_t row = i % area * groups_c(conv) + i / area % groups_c(conv);

    return (out / groups_k(conv) * groups_patch(conv) + row) * groups_k(conv) +
           out % groups_k(conv);
}

/* A gradient of the weights, then the patches of one group of one image. */
static size_t groups_scratch(const struct fl_conv *conv, size_t batch, enum fl_conv_use use)
{
    (void)batch;
    return (use != FL_CONV_FORWARD ? fl_dense_stride(fl_conv_weights(conv)) : 0) +
           conv->oh * conv->ow * groups_patch(conv) + FL_DENSE_SLACK;
}

static void groups_gather(const struct fl_conv *conv, float *patches, const float *x)
{
    size_t n = groups_c(conv);
    size_t p, t;

    for (p = 0; p < conv->oh * conv->ow; p++) {
        for (t = 0; t < conv->kh * conv->kw; t++) {
            size_t at = groups_at(conv, p, t);

            if (at == SIZE_MAX) {
                (void)memset(patches, 0, n * sizeof(*patches));
            } else {
                (void)memcpy(patches, x + at, n * sizeof(*patches));
            }
            patches += n;
        }
    }
}

/* The adjoint of groups_gather(). */
static void groups_scatter(const struct fl_conv *conv, float *dx, const float *patches)
{
    size_t n = groups_c(conv);
    size_t p, t, j;

    for (p = 0; p < conv->oh * conv->ow; p++) {
        for (t = 0; t < conv->kh * conv->kw; t++) {
            size_t at = groups_at(conv, p, t);

            for (j = 0; at != SIZE_MAX && j < n; j++) {
                dx[at + j] += patches[j];
            }
            patches += n;
        }
    }
}

static void groups_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x,
                           size_t ldx, const float *w, const float *bias, size_t batch, bool relu,
                           float *scratch)
{
    size_t pixels = conv->oh * conv->ow;
    size_t patch = groups_patch(conv);
    size_t n = groups_k(conv);
    size_t b, g;

    for (b = 0; b < batch; b++) {
        for (g = 0; g < conv->groups; g++) {
            groups_gather(conv, scratch, x + b * ldx + g * groups_c(conv));
            fl_gemm(false, false, pixels, n, patch, 1.0f, scratch, patch, w + g * patch * n, n,
                    0.0f, y + b * ldy + g * n, conv->k);
        }
        fl_dense_add_bias(conv->kernels, y + b * ldy, conv->k, bias, pixels, conv->k, relu);
    }
}

static void groups_backward_data(const struct fl_conv *conv, const struct fl_conv_backward *io,
                                 float *patches)
{
    size_t patch = groups_patch(conv);
    size_t n = groups_k(conv);
    size_t b, g;

    for (b = 0; b < io->batch; b++) {
        (void)memset(io->dx + b * io->lddx, 0, io->lddx * sizeof(float));
        for (g = 0; g < conv->groups; g++) {
            fl_gemm(false, true, conv->oh * conv->ow, patch, n, 1.0f, io->dy + b * io->lddy + g * n,
                    conv->k, io->w + g * patch * n, n, 0.0f, patches, patch);
            groups_scatter(conv, io->dx + b * io->lddx + g * groups_c(conv), patches);
        }
    }
}

/* dw += of one pair of x and dy. */
static void groups_backward_weights(const struct fl_conv *conv, float *dw, const float *x,
                                    size_t ldx, const float *dy, size_t lddy, size_t batch,
                                    float *patches)
{
    size_t patch = groups_patch(conv);
    size_t n = groups_k(conv);
    size_t b, g;

    for (b = 0; b < batch; b++) {
        for (g = 0; g < conv->groups; g++) {
            groups_gather(conv, patches, x + b * ldx + g * groups_c(conv));
            fl_gemm(true, false, patch, n, conv->oh * conv->ow, 1.0f, patches, patch,
                    dy + b * lddy + g * n, conv->k, 1.0f, dw + g * patch * n, n);
        }
    }
}

static void groups_backward(const struct fl_conv *conv, const struct fl_conv_backward *io,
                            float *scratch)
{
    float *patches = scratch + fl_dense_stride(fl_conv_weights(conv));

    if (io->dx != NULL) {
        groups_backward_data(conv, io, patches);
    }
    if (io->update == NULL) {
        return;
    }
    (void)memset(scratch, 0, fl_conv_weights(conv) * sizeof(*scratch));
    groups_backward_weights(conv, scratch, io->x, io->ldx, io->dy, io->lddy, io->batch, patches);
    if (io->rx != NULL) {
        groups_backward_weights(conv, scratch, io->rx, io->ldx, io->sy, io->lddy, io->batch,
                                patches);
    }
    io->update(io->ctx, 0, fl_conv_weights(conv), scratch);
}

/* --- one channel in and out of each group --- */

static bool depthwise_fits(const struct fl_conv *conv)
{
    return conv->groups > 1 && conv->groups == conv->c && conv->c == conv->k;
}

static size_t depthwise_place(const struct fl_conv *conv, size_t i)
{
    size_t area = conv->kh * conv->kw;

    return i % area * conv->k + i / area;
}

static size_t depthwise_scratch(const struct fl_conv *conv, size_t batch, enum fl_conv_use use)
{
    (void)batch;
    return use != FL_CONV_FORWARD ? fl_dense_stride(fl_conv_weights(conv)) : FL_DENSE_SLACK;
}

/* Adjacent pixels of a row of the output, and what a position of the window reads for them. */
struct depthwise_run {
    size_t out, in; /* offsets of the first pixel in y and x */
    size_t n;       /* pixels; 0: the position is outside of the image for the whole row */
};

static struct depthwise_run depthwise_run(const struct fl_conv *conv, size_t oy, size_t tap)
{
    size_t y = oy * conv->stride + tap / conv->kw;
    size_t kx = tap % conv->kw;
    size_t first = kx < conv->pad ? (conv->pad - kx + conv->stride - 1) / conv->stride : 0;
    size_t end =
        conv->w + conv->pad > kx ? (conv->w + conv->pad - kx + conv->stride - 1) / conv->stride : 0;
    struct depthwise_run run = {.n = 0};

    end = end < conv->ow ? end : conv->ow;
    if (y < conv->pad || y >= conv->h + conv->pad || first >= end) {
        return run;
    }
    run.out = (oy * conv->ow + first) * conv->k;
    run.in = ((y - conv->pad) * conv->w + first * conv->stride + kx - conv->pad) * conv->c;
    run.n = end - first;
    return run;
}

static void depthwise_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x,
                              size_t ldx, const float *w, const float *bias, size_t batch,
                              bool relu, float *scratch)
{
    const struct fl__pixel_steps steps = {.to = conv->k, .a = conv->stride * conv->c, .b = 0};
    size_t pixels = conv->oh * conv->ow;
    size_t b, oy, t;

    (void)scratch;
    for (b = 0; b < batch; b++) {
        (void)memset(y + b * ldy, 0, pixels * conv->k * sizeof(*y));
        for (oy = 0; oy < conv->oh; oy++) {
            for (t = 0; t < conv->kh * conv->kw; t++) {
                const struct depthwise_run run = depthwise_run(conv, oy, t);

                conv->kernels->pixel->accumulate(y + b * ldy + run.out, x + b * ldx + run.in,
                                                 w + t * conv->k, &steps, run.n, conv->k);
            }
        }
        fl_dense_add_bias(conv->kernels, y + b * ldy, conv->k, bias, pixels, conv->k, relu);
    }
}

static void depthwise_backward_data(const struct fl_conv *conv, const struct fl_conv_backward *io)
{
    const struct fl__pixel_steps steps = {.to = conv->stride * conv->c, .a = conv->k, .b = 0};
    size_t b, oy, t;

    for (b = 0; b < io->batch; b++) {
        float *dx = io->dx + b * io->lddx;

        (void)memset(dx, 0, io->lddx * sizeof(*dx));
        for (oy = 0; oy < conv->oh; oy++) {
            for (t = 0; t < conv->kh * conv->kw; t++) {
                const struct depthwise_run run = depthwise_run(conv, oy, t);

                conv->kernels->pixel->accumulate(dx + run.in, io->dy + b * io->lddy + run.out,
                                                 io->w + t * conv->k, &steps, run.n, conv->k);
            }
        }
    }
}

static void depthwise_backward_weights(const struct fl_conv *conv, float *dw, const float *x,
                                       size_t ldx, const float *dy, size_t lddy, size_t batch)
{
    const struct fl__pixel_steps steps = {.to = 0, .a = conv->stride * conv->c, .b = conv->k};
    size_t b, oy, t;

    for (b = 0; b < batch; b++) {
        for (oy = 0; oy < conv->oh; oy++) {
            for (t = 0; t < conv->kh * conv->kw; t++) {
                const struct depthwise_run run = depthwise_run(conv, oy, t);

                conv->kernels->pixel->accumulate(dw + t * conv->k, x + b * ldx + run.in,
                                                 dy + b * lddy + run.out, &steps, run.n, conv->k);
            }
        }
    }
}

static void depthwise_backward(const struct fl_conv *conv, const struct fl_conv_backward *io,
                               float *scratch)
{
    if (io->dx != NULL) {
        depthwise_backward_data(conv, io);
    }
    if (io->update == NULL) {
        return;
    }
    (void)memset(scratch, 0, fl_conv_weights(conv) * sizeof(*scratch));
    depthwise_backward_weights(conv, scratch, io->x, io->ldx, io->dy, io->lddy, io->batch);
    if (io->rx != NULL) {
        depthwise_backward_weights(conv, scratch, io->rx, io->ldx, io->sy, io->lddy, io->batch);
    }
    io->update(io->ctx, 0, fl_conv_weights(conv), scratch);
}

const struct fl__conv_algorithm fl__conv_groups = {
    .name = "groups",
    .fits = groups_fits,
    .place = groups_place,
    .scratch = groups_scratch,
    .forward = groups_forward,
    .backward = groups_backward,
};

const struct fl__conv_algorithm fl__conv_depthwise = {
    .name = "depthwise",
    .fits = depthwise_fits,
    .place = depthwise_place,
    .scratch = depthwise_scratch,
    .forward = depthwise_forward,
    .backward = depthwise_backward,
};
