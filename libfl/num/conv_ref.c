#include <string.h>

#include "libfl/num/conv.h"

/* The definitions, loop by loop: what the fast forms are compared with. */

/* The input pixel under position (i, j) of the window of output pixel (oy, ox), or -1: padding. */
static ptrdiff_t pixel_under(const struct fl_conv *conv, size_t oy, size_t ox, size_t i, size_t j)
{
    ptrdiff_t row = (ptrdiff_t)(oy * conv->stride + i) - (ptrdiff_t)conv->pad;
    ptrdiff_t col = (ptrdiff_t)(ox * conv->stride + j) - (ptrdiff_t)conv->pad;

    if (row < 0 || col < 0 || row >= (ptrdiff_t)conv->h || col >= (ptrdiff_t)conv->w) {
        return -1;
    }
    return row * (ptrdiff_t)conv->w + col;
}

/* Number q of x, y and w that meet in product `at` of the whole convolution of one sample. */
struct term {
    size_t x, y, w;
};

/* Walks the products of one sample; false at the end. Padding is left out. */
static bool next_term(const struct fl_conv *conv, size_t *at, struct term *ret)
{
    size_t total = conv->oh * conv->ow * conv->kh * conv->kw * conv->c * conv->k;

    while (*at < total) {
        size_t q = *at;
        size_t k = q % conv->k;
        size_t c = q / conv->k % conv->c;
        size_t j = q / conv->k / conv->c % conv->kw;
        size_t i = q / conv->k / conv->c / conv->kw % conv->kh;
        size_t out = q / conv->k / conv->c / conv->kw / conv->kh;
        ptrdiff_t pixel = pixel_under(conv, out / conv->ow, out % conv->ow, i, j);

        (*at)++;
        if (pixel >= 0) {
            *ret = (struct term){.x = (size_t)pixel * conv->c + c,
                                 .y = out * conv->k + k,
                                 .w = ((i * conv->kw + j) * conv->c + c) * conv->k + k};
            return true;
        }
    }
    return false;
}

void fl_conv_forward_ref(const struct fl_conv *conv, float *y, size_t ldy, const float *x,
                         size_t ldx, const float *w, const float *bias, size_t batch, bool relu)
{
    size_t n = conv->oh * conv->ow * conv->k;
    size_t b, q;

    for (b = 0; b < batch; b++) {
        for (q = 0; q < n; q++) {
            double sum = (double)bias[q % conv->k];
            size_t out = q / conv->k;
            size_t i, j, c;

            for (i = 0; i < conv->kh; i++) {
                for (j = 0; j < conv->kw; j++) {
                    ptrdiff_t pixel = pixel_under(conv, out / conv->ow, out % conv->ow, i, j);

                    for (c = 0; pixel >= 0 && c < conv->c; c++) {
                        size_t at = ((i * conv->kw + j) * conv->c + c) * conv->k + q % conv->k;

                        sum += (double)x[b * ldx + (size_t)pixel * conv->c + c] * (double)w[at];
                    }
                }
            }
            y[b * ldy + q] = relu && sum < 0.0 ? 0.0f : (float)sum;
        }
    }
}

void fl_conv_backward_data_ref(const struct fl_conv *conv, float *dx, size_t lddx, const float *dy,
                               size_t lddy, const float *w, size_t batch)
{
    size_t n = conv->h * conv->w * conv->c;
    size_t b, q;

    for (b = 0; b < batch; b++) {
        for (q = 0; q < lddx; q++) {
            double sum = 0.0;
            struct term t;
            size_t at = 0;

            while (q < n && next_term(conv, &at, &t)) {
                sum += t.x == q ? (double)dy[b * lddy + t.y] * (double)w[t.w] : 0.0;
            }
            dx[b * lddx + q] = (float)sum;
        }
    }
}

void fl_conv_backward_weights_ref(const struct fl_conv *conv, float *dw, const float *x, size_t ldx,
                                  const float *dy, size_t lddy, size_t batch)
{
    size_t b, q;

    for (q = 0; q < fl_conv_weights(conv); q++) {
        double sum = 0.0;

        for (b = 0; b < batch; b++) {
            struct term t;
            size_t at = 0;

            while (next_term(conv, &at, &t)) {
                sum += t.w == q ? (double)dy[b * lddy + t.y] * (double)x[b * ldx + t.x] : 0.0;
            }
        }
        dw[q] = (float)sum;
    }
}
