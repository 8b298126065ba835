/*
 * Dense layers (dense.h): chooses between the small-batch kernels and OpenBLAS, and computes dW
 * in blocks for the update hook. No state; runs on the caller's thread.
 */
#include "libfl/num/dense.h"

#include <string.h>

#include "libfl/num/dense_kern.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/pixel_kern.h"
#include "libfl/num/vec.h"

/* Floats of one block of dW: 24 KB, which leaves room for its parameters in a 32 KB L1 cache. */
#define BLOCK_FLOATS 6144
/*
 * Limits of a block of dW of small-n layers, in outputs and inputs, so that it fits into a
 * cache.
 */
#define SMALL_N_BLOCK  6
#define SMALL_N_INPUTS 4096

size_t fl_dense_stride(size_t n)
{
    return (n + 15) / 16 * 16;
}

bool fl_dense_small_n(size_t in, size_t out)
{
    return out <= FL__DENSE_SMALL_N && in <= SMALL_N_INPUTS && in % 16 == 0;
}

/*
 * Rows of dW in one block: for [in][out] a multiple of the rows that a kernel computes at once;
 * for small-n layers rows of [out][in], half of them when there are many.
 */
static size_t block_rows(size_t in, size_t out)
{
    size_t rows = BLOCK_FLOATS / out / FL__DENSE_DW_ROWS * FL__DENSE_DW_ROWS;

    if (fl_dense_small_n(in, out)) {
        return out > SMALL_N_BLOCK ? (out + 1) / 2 : out;
    }
    return rows > 0 ? rows : FL__DENSE_DW_ROWS;
}

/* The kernels for this layer and batch; NULL: BLAS (docs/kernels.md#dense-layers). */
static const struct fl__dense_kern *kern_for(const struct fl_kernels *kernels, bool small_n,
                                             size_t batch)
{
    const struct fl__dense_kern *kern = kernels->dense;

    return kern != NULL && (small_n || batch < kern->batch_below) ? kern : NULL;
}

size_t fl_dense_scratch(size_t in, size_t out)
{
    return block_rows(in, out) * (fl_dense_small_n(in, out) ? in : out) + FL_DENSE_SLACK;
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
    bool small_n = fl_dense_small_n(in, out);
    const struct fl__dense_kern *kern = kern_for(kernels, small_n, batch);

    if (small_n && kern != NULL) {
        kern->forward_small_n(y, ldy, x, ldx, w, bias, batch, in, out, relu);
    } else if (kern != NULL) {
        kern->forward(y, ldy, x, ldx, w, bias, batch, in, out, relu);
    } else {
        fl_gemm(false, small_n, batch, out, in, 1.0f, x, ldx, w, small_n ? in : out, 0.0f, y, ldy);
        fl_dense_add_bias(kernels, y, ldy, bias, batch, out, relu);
    }
}

void fl_dense_backward_data(const struct fl_kernels *kernels, float *dx, size_t lddx,
                            const float *dy, size_t lddy, const float *w, size_t batch, size_t in,
                            size_t out)
{
    bool small_n = fl_dense_small_n(in, out);
    const struct fl__dense_kern *kern = kern_for(kernels, small_n, batch);
    size_t b;

    if (small_n && kern != NULL) {
        kern->forward(dx, lddx, dy, lddy, w, NULL, batch, out, in, false);
    } else if (kern != NULL && kern->backward_data != NULL) {
        kern->backward_data(dx, lddx, dy, lddy, w, batch, in, out);
    } else {
        fl_gemm(false, !small_n, batch, in, out, 1.0f, dy, lddy, w, small_n ? in : out, 0.0f, dx,
                lddx);
    }
    for (b = 0; b < batch && in < lddx; b++) {
        (void)memset(dx + b * lddx + in, 0, (lddx - in) * sizeof(*dx));
    }
}

/* A product a^T b of two matrices with a row per sample, plus that of `also`, unless NULL. */
struct product {
    const float *a, *b;
    size_t lda, ldb;
    size_t batch, rows, cols; /* rows of the product: columns of a */
    const float *also_a, *also_b;
};

/* Compute n rows of a^T b, starting at `row`, into `g`. */
static void dense_rows_of(const struct fl__dense_kern *kern, float *g, const struct product *p,
                          const float *a, const float *b, size_t row, size_t n)
{
    if (kern != NULL) {
        kern->weights(g, a + row, p->lda, b, p->ldb, p->batch, n, p->cols);
    } else {
        fl_gemm(true, false, n, p->cols, p->batch, 1.0f, a + row, p->lda, b, p->ldb, 0.0f, g,
                p->cols);
    }
}

void fl_dense_backward_weights(const struct fl_kernels *kernels, const float *x, size_t ldx,
                               const float *dy, size_t lddy, size_t batch, size_t in, size_t out,
                               float *scratch, fl_dense_update_cb update, void *ctx)
{
    fl_dense_backward_weights_jvp(kernels, x, NULL, ldx, dy, NULL, lddy, batch, in, out, scratch,
                                  update, ctx);
}

void fl_dense_backward_weights_jvp(const struct fl_kernels *kernels, const float *x,
                                   const float *rx, size_t ldx, const float *dy, const float *sy,
                                   size_t lddy, size_t batch, size_t in, size_t out, float *scratch,
                                   fl_dense_update_cb update, void *ctx)
{
    bool small_n = fl_dense_small_n(in, out);
    const struct fl__dense_kern *kern = kern_for(kernels, small_n, batch);
    struct product p = {x, dy, ldx, lddy, batch, in, out, rx, sy};
    size_t rows = block_rows(in, out);
    float *second = scratch + fl_dense_stride(fl_dense_scratch(in, out));
    size_t i;

    if (small_n) {
        p = (struct product){dy, x, lddy, ldx, batch, out, in, sy, rx};
    }
    for (i = 0; i < p.rows; i += rows) {
        size_t n = p.rows - i < rows ? p.rows - i : rows;

        dense_rows_of(kern, scratch, &p, p.a, p.b, i, n);
        if (rx != NULL) {
            dense_rows_of(kern, second, &p, p.also_a, p.also_b, i, n);
            fl_vec_axpy(scratch, 1.0f, second, n * p.cols);
        }
        update(ctx, i * p.cols, n * p.cols, scratch);
    }
}

void fl_dense_backward_bias(const struct fl_kernels *kernels, float *db, float *dy, size_t lddy,
                            const float *y, size_t ldy, size_t batch, size_t out)
{
    const struct fl__pixel_map map = {
        .c = fl_dense_stride(out), .pixels = 1, .dy = dy, .lddy = lddy, .y = y, .ldy = ldy};

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
