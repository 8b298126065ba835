#include "libfl/num/conv.h"

#include "libfl/num/conv_impl.h"
#include "libfl/num/pixel_kern.h"

/* Fastest first; the last one supports every shape. */
static const struct fl__conv_algorithm *const algorithms[] = {
    &fl__conv_depthwise, &fl__conv_groups, &fl__conv_first, &fl__conv_wino, &fl__conv_patches};
#define N_ALGORITHMS (sizeof(algorithms) / sizeof(algorithms[0]))

void fl_conv_plan(struct fl_conv *conv, const struct fl_kernels *kernels)
{
    size_t i = 0;

    conv->oh = (conv->h + 2 * conv->pad - conv->kh) / conv->stride + 1;
    conv->ow = (conv->w + 2 * conv->pad - conv->kw) / conv->stride + 1;
    conv->kernels = kernels;
    conv->groups = conv->groups > 0 ? conv->groups : 1;
    while (i + 1 < N_ALGORITHMS && !algorithms[i]->fits(conv)) {
        i++;
    }
    conv->algorithm = algorithms[i];
}

const char *fl_conv_algorithm(const struct fl_conv *conv)
{
    return conv->algorithm->name;
}

size_t fl_conv_weights(const struct fl_conv *conv)
{
    return conv->kh * conv->kw * (conv->c / conv->groups) * conv->k;
}

size_t fl_conv_place(const struct fl_conv *conv, size_t i)
{
    return conv->algorithm->place(conv, i);
}

size_t fl_conv_scratch(const struct fl_conv *conv, size_t batch, enum fl_conv_use use)
{
    return conv->algorithm->scratch(conv, batch, use);
}

void fl_conv_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                     const float *w, const float *bias, size_t batch, bool relu, float *scratch)
{
    conv->algorithm->forward(conv, y, ldy, x, ldx, w, bias, batch, relu, scratch);
}

void fl_conv_backward(const struct fl_conv *conv, const struct fl_conv_backward *io, float *scratch)
{
    conv->algorithm->backward(conv, io, scratch);
}

void fl_conv_backward_bias(const struct fl_conv *conv, float *db, float *dy, size_t lddy,
                           const float *y, size_t ldy, size_t batch)
{
    const struct fl__pixel_map map = {
        .c = conv->k, .pixels = conv->oh * conv->ow, .dy = dy, .lddy = lddy, .y = y, .ldy = ldy};

    fl__pixel_bias_sums(conv->kernels->pixel, db, &map, batch);
}

void fl_planes_to_pixels(float *restrict y, size_t ldy, const float *restrict x, size_t ldx,
                         size_t batch, size_t c, size_t pixels)
{
    size_t b, p, i;

    for (b = 0; b < batch; b++) {
        for (p = 0; p < pixels; p++) {
            for (i = 0; i < c; i++) {
                y[b * ldy + p * c + i] = x[b * ldx + i * pixels + p];
            }
        }
    }
}
