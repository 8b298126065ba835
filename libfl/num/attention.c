/*
 * Self-attention (attention.h): one sample after the other, its matrix products by BLAS, one for
 * each head. Training keeps q, k and v, the shares P and the outputs of the heads. No state; runs
 * on the caller's thread.
 */
#include "libfl/num/attention.h"

#include <string.h>

#include "libfl/num/attention_impl.h"
#include "libfl/num/gemm.h"
#include "libfl/num/softmax.h"

size_t fl_attention_state(const struct fl_self_attention *at)
{
    return fl_dense_stride(at->steps * 3 * at->d) + at->heads * at->steps * fl__attention_row(at) +
           FL_DENSE_SLACK + fl_dense_stride(at->steps * at->d);
}

static void attention_rows(float *to, const float *bias, size_t rows, size_t n)
{
    size_t r;

    for (r = 0; r < rows; r++) {
        (void)memcpy(to + r * n, bias, n * sizeof(*to));
    }
}

/* Softmax of the rows of one head; later positions have no share with `causal`. */
static void attention_shares(const struct fl_kernels *kernels, const struct fl_self_attention *at,
                             float *shares, size_t ld)
{
    size_t t;

    for (t = 0; t < at->steps; t++) {
        size_t n = at->causal ? t + 1 : at->steps;
        float *row = shares + t * ld;
        float top;

        (void)fl_softmax(kernels, row, row, n, 1.0, &top);
        (void)memset(row + n, 0, (ld - n) * sizeof(*row));
    }
}

static void attention_sample_forward(const struct fl_kernels *kernels,
                                     const struct fl_self_attention *at,
                                     const struct fl__attention_sample *s, float *y, const float *x)
{
    size_t part = at->d / at->heads;
    size_t n = at->steps;
    size_t h;

    attention_rows(s->qkv, at->b_in, n, 3 * at->d);
    fl_gemm(false, false, n, 3 * at->d, at->d, 1.0f, x, at->d, at->w_in, 3 * at->d, 1.0f, s->qkv,
            3 * at->d);
    for (h = 0; h < at->heads; h++) {
        const float *q = s->qkv + h * part;
        float *shares = s->shares + h * n * s->ld;

        fl_gemm(false, true, n, n, part, fl__attention_scale(at), q, 3 * at->d, q + at->d,
                3 * at->d, 0.0f, shares, s->ld);
        attention_shares(kernels, at, shares, s->ld);
        fl_gemm(false, false, n, part, n, 1.0f, shares, s->ld, q + 2 * at->d, 3 * at->d, 0.0f,
                s->out + h * part, at->d);
    }
    attention_rows(y, at->b_out, n, at->d);
    fl_gemm(false, false, n, at->d, at->d, 1.0f, s->out, at->d, at->w_out, at->d, 1.0f, y, at->d);
}

void fl_attention_forward(const struct fl_kernels *kernels, const struct fl_self_attention *at,
                          float *y, size_t ldy, const float *x, size_t ldx, size_t batch,
                          bool training, float *state)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        const struct fl__attention_sample s =
            fl__attention_sample(at, state + (training ? b * fl_attention_state(at) : 0));

        attention_sample_forward(kernels, at, &s, y + b * ldy, x + b * ldx);
    }
}

/* Scratch: the gradients of the parameters, of qkv, out and the shares of one head. */
struct attention_scratch {
    float *w_in, *b_in, *w_out, *b_out, *qkv, *out, *shares;
};

static struct attention_scratch attention_scratch(const struct fl_self_attention *at, float **end)
{
    size_t d = at->d;
    struct attention_scratch s;

    s.w_in = fl__attention_piece(end, 3 * d * d);
    s.b_in = fl__attention_piece(end, 3 * d);
    s.w_out = fl__attention_piece(end, d * d);
    s.b_out = fl__attention_piece(end, d);
    s.qkv = fl__attention_piece(end, at->steps * 3 * d);
    s.out = fl__attention_piece(end, at->steps * d);
    s.shares = fl__attention_piece(end, at->steps * fl__attention_row(at));
    return s;
}

size_t fl_attention_scratch(const struct fl_self_attention *at)
{
    size_t d = at->d;

    return fl_dense_stride(3 * d * d) + fl_dense_stride(3 * d) + fl_dense_stride(d * d) +
           fl_dense_stride(d) + fl_dense_stride(at->steps * 3 * d) +
           fl_dense_stride(at->steps * d) + fl_dense_stride(at->steps * fl__attention_row(at)) +
           FL_DENSE_SLACK;
}

/* The gradient before softmax: ds = P (dp - sum of dp P), by rows. */
static void attention_shares_back(float *restrict dp, const float *restrict p, size_t n, size_t ld)
{
    size_t t, j;

    for (t = 0; t < n; t++) {
        double sum = 0.0;

        for (j = 0; j < n; j++) {
            sum += (double)dp[t * ld + j] * (double)p[t * ld + j];
        }
        for (j = 0; j < n; j++) {
            dp[t * ld + j] = p[t * ld + j] * (dp[t * ld + j] - (float)sum);
        }
    }
}

/* Adds the gradients of one sample's parameters; scratch->qkv is the gradient of its qkv. */
static void attention_sample_backward(const struct fl_self_attention *at,
                                      const struct fl__attention_sample *s,
                                      const struct attention_scratch *to, const float *x,
                                      const float *dy)
{
    size_t part = at->d / at->heads;
    size_t n = at->steps;
    size_t d = at->d;
    size_t h;

    fl__attention_bias(to->b_out, dy, n, d);
    fl_gemm(true, false, d, d, n, 1.0f, s->out, d, dy, d, 1.0f, to->w_out, d);
    fl_gemm(false, true, n, d, d, 1.0f, dy, d, at->w_out, d, 0.0f, to->out, d);
    for (h = 0; h < at->heads; h++) {
        const float *q = s->qkv + h * part;
        const float *shares = s->shares + h * n * s->ld;
        const float *out = to->out + h * part;
        float *dq = to->qkv + h * part;

        fl_gemm(false, true, n, n, part, 1.0f, out, d, q + 2 * d, 3 * d, 0.0f, to->shares, s->ld);
        fl_gemm(true, false, n, part, n, 1.0f, shares, s->ld, out, d, 0.0f, dq + 2 * d, 3 * d);
        attention_shares_back(to->shares, shares, n, s->ld);
        fl_gemm(false, false, n, part, n, fl__attention_scale(at), to->shares, s->ld, q + d, 3 * d,
                0.0f, dq, 3 * d);
        fl_gemm(true, false, n, part, n, fl__attention_scale(at), to->shares, s->ld, q, 3 * d, 0.0f,
                dq + d, 3 * d);
    }
    fl__attention_bias(to->b_in, to->qkv, n, 3 * d);
    fl_gemm(true, false, d, 3 * d, n, 1.0f, x, d, to->qkv, 3 * d, 1.0f, to->w_in, 3 * d);
}

void fl_attention_backward(const struct fl_self_attention *at,
                           const struct fl_attention_backward *io, float *scratch)
{
    float *end = scratch;
    const struct attention_scratch to = attention_scratch(at, &end);
    size_t n = at->steps * at->d;
    size_t b;

    /* The four gradients lie before qkv. */
    (void)memset(to.w_in, 0, (size_t)(to.qkv - to.w_in) * sizeof(float));
    for (b = 0; b < io->batch; b++) {
        const struct fl__attention_sample s =
            fl__attention_sample(at, io->state + b * fl_attention_state(at));

        attention_sample_backward(at, &s, &to, io->x + b * io->ldx, io->dy + b * io->ldy);
        if (io->dx != NULL) {
            fl_gemm(false, true, at->steps, at->d, 3 * at->d, 1.0f, to.qkv, 3 * at->d, at->w_in,
                    3 * at->d, 0.0f, io->dx + b * io->lddx, at->d);
            (void)memset(io->dx + b * io->lddx + n, 0, (io->lddx - n) * sizeof(float));
        }
    }
    io->update(io->ctx, 0, to.w_in);
    io->update(io->ctx, 1, to.b_in);
    io->update(io->ctx, 2, to.w_out);
    io->update(io->ctx, 3, to.b_out);
}
