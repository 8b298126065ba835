#include "libfl/num/dense.h"

#include <string.h>

#include "libfl/num/dense_kern.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"
#include "libfl/num/vec.h"

/* Floats of one block of dW: 24 KB, which leaves room for its parameters in a 32 KB cache. */
#define BLOCK_FLOATS 6144

size_t fl_dense_stride(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* Rows of dW in one block, a multiple of what a kernel makes at once. */
static size_t block_rows(size_t out)
{
    size_t rows = BLOCK_FLOATS / out / FL__DENSE_DW_ROWS * FL__DENSE_DW_ROWS;

    return rows > 0 ? rows : FL__DENSE_DW_ROWS;
}

/* The kernels for this batch, or NULL for BLAS (docs/kernels.md#dense-layers). */
static const struct fl__dense_kern *kern_for(const struct fl_kernels *kernels, size_t batch)
{
    const struct fl__dense_kern *kern = kernels->dense;

    return kern != NULL && batch < kern->batch_below ? kern : NULL;
}

size_t fl_dense_scratch(size_t out)
{
    return block_rows(out) * out + FL_DENSE_SLACK;
}

void fl_dense_add_bias(const struct fl_kernels *kernels, float *y, size_t ldy, const float *bias,
                       size_t batch, size_t out, bool relu)
{
    kernels->pixel->bias(y, ldy, bias, batch, out, relu);
}

void fl_dense_forward(const struct fl_kernels *kernels, float *y, size_t ldy, const float *x,
                      size_t ldx, const float *w, const float *bias, size_t batch, size_t in,
                      size_t out, bool relu)
{
    const struct fl__dense_kern *kern = kern_for(kernels, batch);

    if (kern != NULL) {
        kern->forward(y, ldy, x, ldx, w, bias, batch, in, out, relu);
        return;
    }
    fl_gemm(false, false, batch, out, in, 1.0f, x, ldx, w, out, 0.0f, y, ldy);
    fl_dense_add_bias(kernels, y, ldy, bias, batch, out, relu);
}

void fl_dense_backward_data(const struct fl_kernels *kernels, float *dx, size_t lddx,
                            const float *dy, size_t lddy, const float *w, size_t batch, size_t in,
                            size_t out)
{
    const struct fl__dense_kern *kern = kern_for(kernels, batch);
    size_t b;

    if (kern != NULL && kern->backward_data != NULL) {
        kern->backward_data(dx, lddx, dy, lddy, w, batch, in, out);
    } else {
        fl_gemm(false, true, batch, in, out, 1.0f, dy, lddy, w, out, 0.0f, dx, lddx);
    }
    for (b = 0; b < batch && in < lddx; b++) {
        (void)memset(dx + b * lddx + in, 0, (lddx - in) * sizeof(*dx));
    }
}

/* n rows of dW = x^T dy into `g`. */
static void weights_of(const struct fl__dense_kern *kern, float *g, const float *x, size_t ldx,
                       const float *dy, size_t lddy, size_t batch, size_t n, size_t out)
{
    if (kern != NULL) {
        kern->weights(g, x, ldx, dy, lddy, batch, n, out);
    } else {
        fl_gemm(true, false, n, out, batch, 1.0f, x, ldx, dy, lddy, 0.0f, g, out);
    }
}

void fl_dense_backward_weights(const struct fl_kernels *kernels, const float *x, size_t ldx,
                               const float *dy, size_t lddy, size_t batch, size_t in, size_t out,
                               float *scratch, fl_dense_update_cb update, void *ctx)
{
    fl_dense_backward_weights_along(kernels, x, NULL, ldx, dy, NULL, lddy, batch, in, out, scratch,
                                    update, ctx);
}

void fl_dense_backward_weights_along(const struct fl_kernels *kernels, const float *x,
                                     const float *rx, size_t ldx, const float *dy, const float *sy,
                                     size_t lddy, size_t batch, size_t in, size_t out,
                                     float *scratch, fl_dense_update_cb update, void *ctx)
{
    const struct fl__dense_kern *kern = kern_for(kernels, batch);
    size_t rows = block_rows(out);
    float *second = scratch + fl_dense_stride(fl_dense_scratch(out));
    size_t i;

    for (i = 0; i < in; i += rows) {
        size_t n = in - i < rows ? in - i : rows;

        weights_of(kern, scratch, x + i, ldx, dy, lddy, batch, n, out);
        if (rx != NULL) {
            weights_of(kern, second, rx + i, ldx, sy, lddy, batch, n, out);
            fl_vec_axpy(scratch, 1.0f, second, n * out);
        }
        update(ctx, i * out, n * out, scratch);
    }
}

void fl_dense_backward_bias(const struct fl_kernels *kernels, float *db, float *dy, size_t lddy,
                            const float *y, size_t ldy, size_t batch, size_t out)
{
    const struct fl__pixel_map map = {
        .c = out, .pixels = 1, .dy = dy, .lddy = lddy, .y = y, .ldy = ldy};

    fl__pixel_bias_sums(kernels->pixel, db, &map, batch);
}

void fl_relu_backward(const struct fl_kernels *kernels, float *dy, size_t lddy, const float *y,
                      size_t ldy, size_t batch, size_t n)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        kernels->pixel->mask(dy + b * lddy, y + b * ldy, n);
    }
}
