#include "libfl/num/conv.h"

#include <string.h>

#include "libfl/num/conv_impl.h"

/* Channels whose sums are held at once. */
#define CHUNK 64

/* Fastest first; the last takes every shape. */
static const struct fl__conv_way *const ways[] = {&fl__conv_first, &fl__conv_wino,
                                                  &fl__conv_patches};
#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

void fl_conv_plan(struct fl_conv *conv, const struct fl_kernels *kernels)
{
    size_t i = 0;

    conv->oh = (conv->h + 2 * conv->pad - conv->kh) / conv->stride + 1;
    conv->ow = (conv->w + 2 * conv->pad - conv->kw) / conv->stride + 1;
    conv->kernels = kernels;
    while (i + 1 < N_WAYS && !ways[i]->fits(conv)) {
        i++;
    }
    conv->way = ways[i];
}

const char *fl_conv_way(const struct fl_conv *conv)
{
    return conv->way->name;
}

size_t fl_conv_weights(const struct fl_conv *conv)
{
    return conv->kh * conv->kw * conv->c * conv->k;
}

size_t fl_conv_place(const struct fl_conv *conv, size_t i)
{
    return conv->way->place(conv, i);
}

size_t fl_conv_scratch(const struct fl_conv *conv, size_t batch, bool backward)
{
    return conv->way->scratch(conv, batch, backward);
}

void fl_conv_forward(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                     const float *w, const float *bias, size_t batch, bool relu, float *scratch)
{
    conv->way->forward(conv, y, ldy, x, ldx, w, bias, batch, relu, scratch);
}

void fl_conv_backward(const struct fl_conv *conv, const struct fl_conv_backward *io, float *scratch)
{
    conv->way->backward(conv, io, scratch);
}

void fl_conv_backward_bias(const struct fl_conv *conv, float *db, const float *dy, size_t lddy,
                           size_t batch)
{
    size_t pixels = conv->oh * conv->ow;
    size_t k0, b, p, j;

    (void)memset(db, 0, conv->k * sizeof(*db));
    for (k0 = 0; k0 < conv->k; k0 += CHUNK) {
        size_t n = conv->k - k0 < CHUNK ? conv->k - k0 : CHUNK;

        for (b = 0; b < batch; b++) {
            const float *from = dy + b * lddy + k0;
            float sum[CHUNK] = {0};

            for (p = 0; p < pixels; p++) {
                for (j = 0; j < n; j++) {
                    sum[j] += from[p * conv->k + j];
                }
            }
            for (j = 0; j < n; j++) {
                db[k0 + j] += sum[j];
            }
        }
    }
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
