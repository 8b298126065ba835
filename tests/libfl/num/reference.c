#include <stddef.h>

#include "tests/libfl/num/reference.h"

/* --- convolutions --- */

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

void conv_forward_ref(const struct fl_conv *conv, float *y, size_t ldy, const float *x, size_t ldx,
                      const float *w, const float *bias, size_t batch, bool relu)
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

/* The gradient of channel c of pixel `pixel`: the sum over all windows that contain it. */
static double input_sum(const struct fl_conv *conv, ptrdiff_t pixel, size_t c, const float *dy,
                        const float *w)
{
    double sum = 0.0;
    size_t out, place, k;

    for (out = 0; out < conv->oh * conv->ow; out++) {
        for (place = 0; place < conv->kh * conv->kw; place++) {
            if (pixel_under(conv, out / conv->ow, out % conv->ow, place / conv->kw,
                            place % conv->kw) != pixel) {
                continue;
            }
            for (k = 0; k < conv->k; k++) {
                sum +=
                    (double)dy[out * conv->k + k] * (double)w[(place * conv->c + c) * conv->k + k];
            }
        }
    }
    return sum;
}

void conv_backward_data_ref(const struct fl_conv *conv, float *dx, size_t lddx, const float *dy,
                            size_t lddy, const float *w, size_t batch)
{
    size_t n = conv->h * conv->w * conv->c;
    size_t b, q;

    for (b = 0; b < batch; b++) {
        for (q = 0; q < lddx; q++) {
            dx[b * lddx + q] = q < n ? (float)input_sum(conv, (ptrdiff_t)(q / conv->c), q % conv->c,
                                                        dy + b * lddy, w)
                                     : 0.0f;
        }
    }
}

void conv_backward_weights_ref(const struct fl_conv *conv, float *dw, const float *x, size_t ldx,
                               const float *dy, size_t lddy, size_t batch)
{
    size_t q, b, out;

    for (q = 0; q < fl_conv_weights(conv); q++) {
        size_t k = q % conv->k;
        size_t c = q / conv->k % conv->c;
        size_t place = q / conv->k / conv->c;
        double sum = 0.0;

        for (out = 0; out < conv->oh * conv->ow; out++) {
            ptrdiff_t pixel = pixel_under(conv, out / conv->ow, out % conv->ow, place / conv->kw,
                                          place % conv->kw);

            for (b = 0; b < batch && pixel >= 0; b++) {
                sum += (double)dy[b * lddy + out * conv->k + k] *
                       (double)x[b * ldx + (size_t)pixel * conv->c + c];
            }
        }
        dw[q] = (float)sum;
    }
}

/* --- products --- */

void gemm_ref(bool trans_a, bool trans_b, size_t m, size_t n, size_t k, float alpha, const float *a,
              size_t lda, const float *b, size_t ldb, float beta, float *c, size_t ldc)
{
    size_t i;
    size_t j;
    size_t p;

    for (i = 0; i < m; i++) {
        for (j = 0; j < n; j++) {
            double sum = 0.0;

            for (p = 0; p < k; p++) {
                sum += (double)(trans_a ? a[p * lda + i] : a[i * lda + p]) *
                       (double)(trans_b ? b[j * ldb + p] : b[p * ldb + j]);
            }
            sum *= (double)alpha;
            if (beta < 0.0f || beta > 0.0f) {
                sum += (double)beta * (double)c[i * ldc + j];
            }
            c[i * ldc + j] = (float)sum;
        }
    }
}
