/*
 * LSTM (lstm.h): matrix products by BLAS, one of x for all positions of a sample and one of h for
 * each position of the batch; gates in loops along the hidden units. Training keeps the gates and
 * cells of all positions, an evaluation those of one. No state; runs on the caller's thread.
 */
#include "libfl/num/lstm.h"

#include <string.h>

#include "libfl/num/dense.h"
#include "libfl/num/gemm.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/lstm_impl.h"
#include "libfl/num/pixel_kern.h"

/* Positions that are kept. */
static size_t lstm_kept(const struct fl_lstm *lstm, bool training)
{
    return training ? lstm->steps : 1;
}

size_t fl_lstm_state(const struct fl_lstm *lstm, size_t batch, bool training)
{
    return 6 * fl_dense_stride(batch * lstm_kept(lstm, training) * lstm->h) + FL_DENSE_SLACK;
}

/* a = b + x W_x of the positions [from, from + n) of sample b. */
static void lstm_inputs(const struct fl_lstm *lstm, float *a, const float *x, size_t n)
{
    size_t p;

    for (p = 0; p < n; p++) {
        (void)memcpy(a + p * 4 * lstm->h, lstm->b, 4 * lstm->h * sizeof(*a));
    }
    fl_gemm(false, false, n, 4 * lstm->h, lstm->in, 1.0f, x, lstm->in, lstm->w_x, 4 * lstm->h, 1.0f,
            a, 4 * lstm->h);
}

/* c = f c + i g with the c of the position before, NULL at the first. */
static void lstm_cell(float *restrict c, const float *restrict before, const float *restrict a,
                      size_t h)
{
    size_t j;

    for (j = 0; j < h; j++) {
        c[j] = a[j] * a[2 * h + j];
    }
    for (j = 0; before != NULL && j < h; j++) {
        c[j] += a[h + j] * before[j];
    }
}

static void lstm_output(float *restrict y, const float *restrict squashed, const float *restrict o,
                        size_t h)
{
    size_t j;

    for (j = 0; j < h; j++) {
        y[j] = o[j] * squashed[j];
    }
}

/* One position of one sample, whose gates have their sums. */
static void lstm_position(const struct fl_kernels *kernels, const struct fl__lstm_state *s,
                          size_t b, size_t t, float *y)
{
    size_t h = s->h;
    size_t at = fl__lstm_at(s, b, t);
    float *a = s->gates + at * 4 * h;
    float *c = s->cells + at * h;
    const float *before = t == 0 ? NULL : s->cells + fl__lstm_at(s, b, t - 1) * h;

    kernels->pixel->sigmoid(a, a, 2 * h);
    kernels->pixel->tanh(a + 2 * h, a + 2 * h, h);
    kernels->pixel->sigmoid(a + 3 * h, a + 3 * h, h);
    if (before == c) {
        /* An evaluation has one cell: through the other array. */
        lstm_cell(s->squashed + at * h, before, a, h);
        (void)memcpy(c, s->squashed + at * h, h * sizeof(*c));
    } else {
        lstm_cell(c, before, a, h);
    }
    kernels->pixel->tanh(s->squashed + at * h, c, h);
    lstm_output(y, s->squashed + at * h, a + 3 * h, h);
}

void fl_lstm_forward(const struct fl_kernels *kernels, const struct fl_lstm *lstm, float *y,
                     size_t ldy, const float *x, size_t ldx, size_t batch, bool training,
                     float *state)
{
    const struct fl__lstm_state s = fl__lstm_state(lstm, batch, lstm_kept(lstm, training), state);
    size_t h = lstm->h;
    size_t b, t;

    for (b = 0; s.kept > 1 && b < batch; b++) {
        lstm_inputs(lstm, s.gates + fl__lstm_at(&s, b, 0) * 4 * h, x + b * ldx, lstm->steps);
    }
    for (t = 0; t < lstm->steps; t++) {
        for (b = 0; s.kept == 1 && b < batch; b++) {
            lstm_inputs(lstm, s.gates + b * 4 * h, x + b * ldx + t * lstm->in, 1);
        }
        if (t > 0) {
            fl_gemm(false, false, batch, 4 * h, h, 1.0f, y + (t - 1) * h, ldy, lstm->w_h, 4 * h,
                    1.0f, s.gates + fl__lstm_at(&s, 0, t) * 4 * h, s.kept * 4 * h);
        }
        for (b = 0; b < batch; b++) {
            lstm_position(kernels, &s, b, t, y + b * ldy + t * h);
        }
    }
}

/* Scratch: dc[batch][h], then the largest gradient. */
size_t fl_lstm_scratch(const struct fl_lstm *lstm, size_t batch)
{
    size_t most = lstm->in > lstm->h ? lstm->in : lstm->h;

    return fl_dense_stride(batch * lstm->h) + fl_dense_stride(most * 4 * lstm->h) + FL_DENSE_SLACK;
}

/* The gradient of the sums of one position, over its gates, and dc of the position before. */
static void lstm_position_back(float *restrict a, float *restrict dc, const float *restrict dy,
                               const float *restrict squashed, const float *restrict before,
                               size_t h)
{
    size_t j;

    for (j = 0; j < h; j++) {
        float i = a[j];
        float f = a[h + j];
        float g = a[2 * h + j];
        float o = a[3 * h + j];
        float d = dc[j] + dy[j] * o * (1.0f - squashed[j] * squashed[j]);

        a[j] = d * g * i * (1.0f - i);
        a[h + j] = before != NULL ? d * before[j] * f * (1.0f - f) : 0.0f;
        a[2 * h + j] = d * i * (1.0f - g * g);
        a[3 * h + j] = dy[j] * squashed[j] * o * (1.0f - o);
        dc[j] = d * f;
    }
}

static void lstm_bias(float *restrict db, const float *restrict da, size_t n)
{
    size_t j;

    for (j = 0; j < n; j++) {
        db[j] += da[j];
    }
}

/* The gradients of the parameters, from those of the sums. */
static void lstm_weights(const struct fl_lstm *lstm, const struct fl_lstm_backward *io,
                         const float *da, float *grad)
{
    size_t n = 4 * lstm->h;
    size_t b, t;

    (void)memset(grad, 0, lstm->in * n * sizeof(*grad));
    for (b = 0; b < io->batch; b++) {
        fl_gemm(true, false, lstm->in, n, lstm->steps, 1.0f, io->x + b * io->ldx, lstm->in,
                da + b * lstm->steps * n, n, 1.0f, grad, n);
    }
    io->update(io->ctx, 0, grad);
    (void)memset(grad, 0, lstm->h * n * sizeof(*grad));
    for (b = 0; lstm->steps > 1 && b < io->batch; b++) {
        fl_gemm(true, false, lstm->h, n, lstm->steps - 1, 1.0f, io->y + b * io->ldy, lstm->h,
                da + (b * lstm->steps + 1) * n, n, 1.0f, grad, n);
    }
    io->update(io->ctx, 1, grad);
    (void)memset(grad, 0, n * sizeof(*grad));
    for (t = 0; t < io->batch * lstm->steps; t++) {
        lstm_bias(grad, da + t * n, n);
    }
    io->update(io->ctx, 2, grad);
}

void fl_lstm_backward(const struct fl_lstm *lstm, const struct fl_lstm_backward *io, float *scratch)
{
    const struct fl__lstm_state s = fl__lstm_state(lstm, io->batch, lstm->steps, io->state);
    size_t h = lstm->h;
    float *dc = scratch;
    size_t b, t;

    (void)memset(dc, 0, io->batch * h * sizeof(*dc));
    for (t = lstm->steps; t-- > 0;) {
        for (b = 0; b < io->batch; b++) {
            size_t at = fl__lstm_at(&s, b, t);

            lstm_position_back(s.gates + at * 4 * h, dc + b * h, io->dy + b * io->ldy + t * h,
                               s.squashed + at * h,
                               t > 0 ? s.cells + fl__lstm_at(&s, b, t - 1) * h : NULL, h);
        }
        if (t > 0) {
            fl_gemm(false, true, io->batch, h, 4 * h, 1.0f, s.gates + fl__lstm_at(&s, 0, t) * 4 * h,
                    s.kept * 4 * h, lstm->w_h, 4 * h, 1.0f, io->dy + (t - 1) * h, io->ldy);
        }
    }
    for (b = 0; io->dx != NULL && b < io->batch; b++) {
        size_t n = lstm->steps * lstm->in;

        fl_gemm(false, true, lstm->steps, lstm->in, 4 * h, 1.0f,
                s.gates + fl__lstm_at(&s, b, 0) * 4 * h, 4 * h, lstm->w_x, 4 * h, 0.0f,
                io->dx + b * io->lddx, lstm->in);
        (void)memset(io->dx + b * io->lddx + n, 0, (io->lddx - n) * sizeof(float));
    }
    lstm_weights(lstm, io, s.gates, scratch + fl_dense_stride(io->batch * h));
}
