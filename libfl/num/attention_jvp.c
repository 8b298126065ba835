/*
 * Directional derivatives (JVP) of self-attention (R-operator; Pearlmutter 1994), in the notation
 * of attention.h: with R the derivative along the direction, and S the scores before softmax,
 *
 *     RS = (Rq k^T + q Rk^T) / sqrt(d / heads),  RP = P (RS - sum of P RS) by rows
 *     Ro = RP v + P Rv,  Ry = Ro W_out + o V_out + v_out
 *
 * Backward with U and D the adjoints of RP and P: of RS it is P (U - sum of P U), of S
 *
 *     P (D - sum of P D) + RP (U - sum of P U) - P (sum of RP U)
 *
 * One sample after the other; the state of the tangents keeps those of q, k, v, P and o. No state;
 * runs on the caller's thread.
 */
#include <string.h>

#include "libfl/num/attention_impl.h"
#include "libfl/num/gemm.h"

/* to[rows][n] += from[rows][in] w[in][n]. */
static void attention_jvp_linear(float *to, size_t rows, size_t n, size_t in, const float *from,
                                 const float *w)
{
    fl_gemm(false, false, rows, n, in, 1.0f, from, in, w, n, 1.0f, to, n);
}

/* The rows of `to` become the direction of a bias, or zero. */
static void attention_jvp_rows(float *to, const float *bias, size_t rows, size_t n)
{
    size_t r;

    (void)memset(to, 0, rows * n * sizeof(*to));
    for (r = 0; bias != NULL && r < rows; r++) {
        (void)memcpy(to + r * n, bias, n * sizeof(*to));
    }
}

/* RP from RS, over it. */
static void attention_jvp_shares(float *restrict r, const float *restrict p, size_t n, size_t ld)
{
    size_t t, j;

    for (t = 0; t < n; t++) {
        double sum = 0.0;

        for (j = 0; j < n; j++) {
            sum += (double)r[t * ld + j] * (double)p[t * ld + j];
        }
        for (j = 0; j < n; j++) {
            r[t * ld + j] = p[t * ld + j] * (r[t * ld + j] - (float)sum);
        }
    }
}

static void attention_jvp_heads(const struct fl_self_attention *at,
                                const struct fl__attention_sample *s,
                                const struct fl__attention_sample *r)
{
    size_t part = at->d / at->heads;
    float scale = fl__attention_scale(at);
    size_t n = at->steps;
    size_t d = at->d;
    size_t h;

    for (h = 0; h < at->heads; h++) {
        const float *q = s->qkv + h * part;
        const float *rq = r->qkv + h * part;
        const float *shares = s->shares + h * n * s->ld;
        float *rshares = r->shares + h * n * s->ld;
        float *rout = r->out + h * part;

        fl_gemm(false, true, n, n, part, scale, rq, 3 * d, q + d, 3 * d, 0.0f, rshares, s->ld);
        fl_gemm(false, true, n, n, part, scale, q, 3 * d, rq + d, 3 * d, 1.0f, rshares, s->ld);
        attention_jvp_shares(rshares, shares, n, s->ld);
        fl_gemm(false, false, n, part, n, 1.0f, rshares, s->ld, q + 2 * d, 3 * d, 0.0f, rout, d);
        fl_gemm(false, false, n, part, n, 1.0f, shares, s->ld, rq + 2 * d, 3 * d, 1.0f, rout, d);
    }
}

void fl_attention_forward_jvp(const struct fl_self_attention *at,
                              const struct fl_attention_jvp *jvp, float *ry, size_t ldy)
{
    const struct fl_self_attention *along = jvp->along;
    size_t n = at->steps;
    size_t d = at->d;
    size_t b;

    for (b = 0; b < jvp->batch; b++) {
        size_t place = b * fl_attention_state(at);
        const struct fl__attention_sample s = fl__attention_sample(at, jvp->state + place);
        const struct fl__attention_sample r = fl__attention_sample(at, jvp->rstate + place);

        attention_jvp_rows(r.qkv, along != NULL ? along->b_in : NULL, n, 3 * d);
        attention_jvp_rows(ry + b * ldy, along != NULL ? along->b_out : NULL, n, d);
        if (jvp->rx != NULL) {
            attention_jvp_linear(r.qkv, n, 3 * d, d, jvp->rx + b * jvp->ldx, at->w_in);
        }
        if (along != NULL) {
            attention_jvp_linear(r.qkv, n, 3 * d, d, jvp->x + b * jvp->ldx, along->w_in);
        }
        attention_jvp_heads(at, &s, &r);
        attention_jvp_linear(ry + b * ldy, n, d, d, r.out, at->w_out);
        if (along != NULL) {
            attention_jvp_linear(ry + b * ldy, n, d, d, s.out, along->w_out);
        }
    }
}

/*
 * Scratch: the gradients of the parameters, then the adjoints of qkv, out and the shares of one
 * head, each with that of the tangent behind it.
 */
struct attention_jvp_scratch {
    float *w_in, *b_in, *w_out, *b_out;
    float *dqkv, *sqkv, *dout, *sout, *dshares, *sshares;
};

static struct attention_jvp_scratch attention_jvp_scratch(const struct fl_self_attention *at,
                                                          float **end)
{
    size_t d = at->d;
    size_t shares = at->steps * fl__attention_row(at);
    struct attention_jvp_scratch s;

    s.w_in = fl__attention_piece(end, 3 * d * d);
    s.b_in = fl__attention_piece(end, 3 * d);
    s.w_out = fl__attention_piece(end, d * d);
    s.b_out = fl__attention_piece(end, d);
    s.dqkv = fl__attention_piece(end, at->steps * 3 * d);
    s.sqkv = fl__attention_piece(end, at->steps * 3 * d);
    s.dout = fl__attention_piece(end, at->steps * d);
    s.sout = fl__attention_piece(end, at->steps * d);
    s.dshares = fl__attention_piece(end, shares);
    s.sshares = fl__attention_piece(end, shares);
    return s;
}

size_t fl_attention_jvp_scratch(const struct fl_self_attention *at)
{
    size_t d = at->d;

    return fl_dense_stride(3 * d * d) + fl_dense_stride(3 * d) + fl_dense_stride(d * d) +
           fl_dense_stride(d) + 2 * fl_dense_stride(at->steps * 3 * d) +
           2 * fl_dense_stride(at->steps * d) +
           2 * fl_dense_stride(at->steps * fl__attention_row(at)) + FL_DENSE_SLACK;
}

/* The adjoints of S and RS from those of P (to) and RP (u), over them; r is RP. */
static void attention_jvp_shares_back(float *restrict to, float *restrict u,
                                      const float *restrict p, const float *restrict r, size_t n,
                                      size_t ld)
{
    size_t t, j;

    for (t = 0; t < n; t++) {
        double pd = 0.0;
        double pu = 0.0;
        double ru = 0.0;

        for (j = t * ld; j < t * ld + n; j++) {
            pd += (double)p[j] * (double)to[j];
            pu += (double)p[j] * (double)u[j];
            ru += (double)r[j] * (double)u[j];
        }
        for (j = t * ld; j < t * ld + n; j++) {
            float centred = u[j] - (float)pu;

            to[j] = p[j] * (to[j] - (float)pd - (float)ru) + r[j] * centred;
            u[j] = p[j] * centred;
        }
    }
}

/* The adjoints of qkv and its tangent from those of the outputs of the heads. */
static void attention_jvp_heads_back(const struct fl_self_attention *at,
                                     const struct fl__attention_sample *s,
                                     const struct fl__attention_sample *r,
                                     const struct attention_jvp_scratch *to)
{
    size_t part = at->d / at->heads;
    float scale = fl__attention_scale(at);
    size_t n = at->steps;
    size_t d = at->d;
    size_t w = 3 * d; /* a row of qkv */
    size_t h;

    for (h = 0; h < at->heads; h++) {
        const float *q = s->qkv + h * part, *rq = r->qkv + h * part;
        const float *p = s->shares + h * n * s->ld, *rp = r->shares + h * n * s->ld;
        const float *dout = to->dout + h * part, *sout = to->sout + h * part;
        float *dq = to->dqkv + h * part, *sq = to->sqkv + h * part;

        fl_gemm(false, true, n, n, part, 1.0f, sout, d, q + 2 * d, w, 0.0f, to->sshares, s->ld);
        fl_gemm(false, true, n, n, part, 1.0f, dout, d, q + 2 * d, w, 0.0f, to->dshares, s->ld);
        fl_gemm(false, true, n, n, part, 1.0f, sout, d, rq + 2 * d, w, 1.0f, to->dshares, s->ld);
        fl_gemm(true, false, n, part, n, 1.0f, p, s->ld, sout, d, 0.0f, sq + 2 * d, w);
        fl_gemm(true, false, n, part, n, 1.0f, p, s->ld, dout, d, 0.0f, dq + 2 * d, w);
        fl_gemm(true, false, n, part, n, 1.0f, rp, s->ld, sout, d, 1.0f, dq + 2 * d, w);
        attention_jvp_shares_back(to->dshares, to->sshares, p, rp, n, s->ld);
        fl_gemm(false, false, n, part, n, scale, to->sshares, s->ld, q + d, w, 0.0f, sq, w);
        fl_gemm(false, false, n, part, n, scale, to->dshares, s->ld, q + d, w, 0.0f, dq, w);
        fl_gemm(false, false, n, part, n, scale, to->sshares, s->ld, rq + d, w, 1.0f, dq, w);
        fl_gemm(true, false, n, part, n, scale, to->sshares, s->ld, q, w, 0.0f, sq + d, w);
        fl_gemm(true, false, n, part, n, scale, to->dshares, s->ld, q, w, 0.0f, dq + d, w);
        fl_gemm(true, false, n, part, n, scale, to->sshares, s->ld, rq, w, 1.0f, dq + d, w);
    }
}

/* Of sample b: adds the gradients of its parameters; leaves the adjoints of qkv in `to`. */
static void attention_jvp_sample_back(const struct fl_self_attention *at,
                                      const struct fl_attention_jvp *jvp,
                                      const struct fl_attention_streams *io,
                                      const struct attention_jvp_scratch *to, size_t b)
{
    size_t place = b * fl_attention_state(at);
    const struct fl__attention_sample s = fl__attention_sample(at, jvp->state + place);
    const struct fl__attention_sample r = fl__attention_sample(at, jvp->rstate + place);
    const float *dy = io->dy + b * io->ldy;
    const float *sy = io->sy + b * io->ldy;
    size_t n = at->steps;
    size_t d = at->d;

    fl__attention_bias(to->b_out, dy, n, d);
    fl_gemm(true, false, d, d, n, 1.0f, s.out, d, dy, d, 1.0f, to->w_out, d);
    fl_gemm(true, false, d, d, n, 1.0f, r.out, d, sy, d, 1.0f, to->w_out, d);
    fl_gemm(false, true, n, d, d, 1.0f, sy, d, at->w_out, d, 0.0f, to->sout, d);
    fl_gemm(false, true, n, d, d, 1.0f, dy, d, at->w_out, d, 0.0f, to->dout, d);
    if (jvp->along != NULL) {
        fl_gemm(false, true, n, d, d, 1.0f, sy, d, jvp->along->w_out, d, 1.0f, to->dout, d);
    }
    attention_jvp_heads_back(at, &s, &r, to);
    fl__attention_bias(to->b_in, to->dqkv, n, 3 * d);
    fl_gemm(true, false, d, 3 * d, n, 1.0f, jvp->x + b * jvp->ldx, d, to->dqkv, 3 * d, 1.0f,
            to->w_in, 3 * d);
    if (jvp->rx != NULL) {
        fl_gemm(true, false, d, 3 * d, n, 1.0f, jvp->rx + b * jvp->ldx, d, to->sqkv, 3 * d, 1.0f,
                to->w_in, 3 * d);
    }
}

/* The adjoints of x and Rx of sample b. */
static void attention_jvp_inputs_back(const struct fl_self_attention *at,
                                      const struct fl_attention_jvp *jvp,
                                      const struct fl_attention_streams *io,
                                      const struct attention_jvp_scratch *to, size_t b)
{
    size_t used = at->steps * at->d;
    float *dx = io->dx + b * io->lddx;
    float *sx = io->sx + b * io->lddx;
    size_t n = at->steps;
    size_t d = at->d;

    fl_gemm(false, true, n, d, 3 * d, 1.0f, to->sqkv, 3 * d, at->w_in, 3 * d, 0.0f, sx, d);
    fl_gemm(false, true, n, d, 3 * d, 1.0f, to->dqkv, 3 * d, at->w_in, 3 * d, 0.0f, dx, d);
    if (jvp->along != NULL) {
        fl_gemm(false, true, n, d, 3 * d, 1.0f, to->sqkv, 3 * d, jvp->along->w_in, 3 * d, 1.0f, dx,
                d);
    }
    (void)memset(sx + used, 0, (io->lddx - used) * sizeof(*sx));
    (void)memset(dx + used, 0, (io->lddx - used) * sizeof(*dx));
}

void fl_attention_backward_jvp(const struct fl_self_attention *at,
                               const struct fl_attention_jvp *jvp,
                               const struct fl_attention_streams *io, float *scratch)
{
    float *end = scratch;
    const struct attention_jvp_scratch to = attention_jvp_scratch(at, &end);
    size_t b;

    /* The four gradients lie before dqkv. */
    (void)memset(to.w_in, 0, (size_t)(to.dqkv - to.w_in) * sizeof(float));
    for (b = 0; b < jvp->batch; b++) {
        attention_jvp_sample_back(at, jvp, io, &to, b);
        if (io->dx != NULL) {
            attention_jvp_inputs_back(at, jvp, io, &to, b);
        }
    }
    io->update(io->ctx, 0, to.w_in);
    io->update(io->ctx, 1, to.b_in);
    io->update(io->ctx, 2, to.w_out);
    io->update(io->ctx, 3, to.b_out);
}
