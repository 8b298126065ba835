#include "libfl/num/dense.h"

#include <string.h>

#include "libfl/num/gemm.h"

/* Floats of one block of dW: 24 KB, which leaves room for its parameters in a 32 KB cache. */
#define BLOCK_FLOATS 6144

size_t fl_dense_stride(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* Rows of dW in one block. */
static size_t block_rows(size_t out)
{
    return out < BLOCK_FLOATS ? BLOCK_FLOATS / out : 1;
}

size_t fl_dense_scratch(size_t out)
{
    return block_rows(out) * out + FL_DENSE_SLACK;
}

static void add_bias(float *y, size_t ldy, const float *bias, size_t batch, size_t out, bool relu)
{
    size_t b;
    size_t j;

    for (b = 0; b < batch; b++) {
        float *restrict row = y + b * ldy;

        if (relu) {
            for (j = 0; j < out; j++) {
                float z = row[j] + bias[j];

                /* NaN passes: a diverged network must not look healthy. */
                row[j] = z < 0.0f ? 0.0f : z;
            }
        } else {
            for (j = 0; j < out; j++) {
                row[j] += bias[j];
            }
        }
    }
}

void fl_dense_forward(float *y, size_t ldy, const float *x, size_t ldx, const float *w,
                      const float *bias, size_t batch, size_t in, size_t out, bool relu)
{
    fl_gemm(false, false, batch, out, in, 1.0f, x, ldx, w, out, 0.0f, y, ldy);
    add_bias(y, ldy, bias, batch, out, relu);
}

void fl_dense_backward_data(float *dx, size_t lddx, const float *dy, size_t lddy, const float *w,
                            size_t batch, size_t in, size_t out)
{
    size_t b;

    fl_gemm(false, true, batch, in, out, 1.0f, dy, lddy, w, out, 0.0f, dx, lddx);
    for (b = 0; b < batch && in < lddx; b++) {
        (void)memset(dx + b * lddx + in, 0, (lddx - in) * sizeof(*dx));
    }
}

void fl_dense_backward_weights(const float *x, size_t ldx, const float *dy, size_t lddy,
                               size_t batch, size_t in, size_t out, float *scratch,
                               fl_dense_update_cb update, void *ctx)
{
    size_t rows = block_rows(out);
    size_t i;

    for (i = 0; i < in; i += rows) {
        size_t n = in - i < rows ? in - i : rows;

        fl_gemm(true, false, n, out, batch, 1.0f, x + i, ldx, dy, lddy, 0.0f, scratch, out);
        update(ctx, i * out, n * out, scratch);
    }
}

void fl_dense_backward_bias(float *restrict db, const float *restrict dy, size_t lddy, size_t batch,
                            size_t out)
{
    size_t b;
    size_t j;

    (void)memset(db, 0, out * sizeof(*db));
    for (b = 0; b < batch; b++) {
        for (j = 0; j < out; j++) {
            db[j] += dy[b * lddy + j];
        }
    }
}

void fl_relu_backward(float *restrict dy, size_t lddy, const float *restrict y, size_t ldy,
                      size_t batch, size_t n)
{
    size_t b;
    size_t j;

    for (b = 0; b < batch; b++) {
        for (j = 0; j < n; j++) {
            dy[b * lddy + j] = y[b * ldy + j] > 0.0f ? dy[b * lddy + j] : 0.0f;
        }
    }
}
