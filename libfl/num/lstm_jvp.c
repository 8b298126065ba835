/*
 * Directional derivatives (JVP) of an LSTM (R-operator; Pearlmutter 1994), in the notation of
 * lstm.h: with R the derivative along the direction and c' the cell of the position before,
 *
 *     Ra = Rx W_x + x V_x + Rh W_h + h V_h + v
 *     Ri = i (1 - i) Ra, as f and o;  Rg = (1 - g^2) Ra
 *     Rc = Rf c' + f Rc' + Ri g + i Rg;  Rs = (1 - s^2) Rc with s = tanh(c);  Rh = Ro s + o Rs
 *
 * The backward pass has two streams, s of the tangents and d of the values (libfl/nn/net_jvp.c).
 * The state of the tangents keeps R of the gates, of c and of s. No state; runs on the caller's
 * thread.
 */
#include <string.h>

#include "libfl/num/gemm.h"
#include "libfl/num/lstm_impl.h"

/* The products and sums of Ra that need no h, of all positions of sample b. */
static void lstm_jvp_inputs(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp, size_t b,
                            float *ra)
{
    size_t n = 4 * lstm->h;
    size_t t;

    (void)memset(ra, 0, lstm->steps * n * sizeof(*ra));
    for (t = 0; jvp->along != NULL && t < lstm->steps; t++) {
        (void)memcpy(ra + t * n, jvp->along->b, n * sizeof(*ra));
    }
    if (jvp->along != NULL) {
        fl_gemm(false, false, lstm->steps, n, lstm->in, 1.0f, jvp->x + b * jvp->ldx, lstm->in,
                jvp->along->w_x, n, 1.0f, ra, n);
    }
    if (jvp->rx != NULL) {
        fl_gemm(false, false, lstm->steps, n, lstm->in, 1.0f, jvp->rx + b * jvp->ldx, lstm->in,
                lstm->w_x, n, 1.0f, ra, n);
    }
}

/* One position of one sample on its way forward or backward; `before` at the first: NULL. */
struct lstm_jvp_place {
    float *a, *ra; /* gates and their tangents; backward: the adjoints of the sums */
    const float *s;
    float *rs;
    const float *before, *rbefore; /* the cells of the position before */
    float *rc;
};

static struct lstm_jvp_place lstm_jvp_place(const struct fl__lstm_state *s,
                                            const struct fl__lstm_state *r, size_t b, size_t t)
{
    size_t at = fl__lstm_at(s, b, t);
    size_t last = t > 0 ? fl__lstm_at(s, b, t - 1) : 0;

    return (struct lstm_jvp_place){.a = s->gates + at * 4 * s->h,
                                   .ra = r->gates + at * 4 * s->h,
                                   .s = s->squashed + at * s->h,
                                   .rs = r->squashed + at * s->h,
                                   .before = t > 0 ? s->cells + last * s->h : NULL,
                                   .rbefore = t > 0 ? r->cells + last * s->h : NULL,
                                   .rc = r->cells + at * s->h};
}

/* From Ra to Rh of one position; the gates' tangents take the place of Ra. */
static void lstm_jvp_position(const struct lstm_jvp_place *at, float *ry, size_t h)
{
    const float *a = at->a;
    float *ra = at->ra;
    size_t j;

    for (j = 0; j < h; j++) {
        float i = a[j];
        float f = a[h + j];
        float g = a[2 * h + j];
        float o = a[3 * h + j];
        float rc;

        ra[j] *= i * (1.0f - i);
        ra[h + j] *= f * (1.0f - f);
        ra[2 * h + j] *= 1.0f - g * g;
        ra[3 * h + j] *= o * (1.0f - o);
        rc = ra[j] * g + i * ra[2 * h + j];
        if (at->before != NULL) {
            rc += ra[h + j] * at->before[j] + f * at->rbefore[j];
        }
        at->rc[j] = rc;
        at->rs[j] = (1.0f - at->s[j] * at->s[j]) * rc;
        ry[j] = ra[3 * h + j] * at->s[j] + o * at->rs[j];
    }
}

/* The products with h of the position before, of the whole batch. */
static void lstm_jvp_hidden(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp,
                            const float *ry, size_t t, float *ra)
{
    size_t n = 4 * lstm->h;
    size_t at = (t - 1) * lstm->h;

    fl_gemm(false, false, jvp->batch, n, lstm->h, 1.0f, ry + at, jvp->ldy, lstm->w_h, n, 1.0f, ra,
            lstm->steps * n);
    if (jvp->along != NULL) {
        fl_gemm(false, false, jvp->batch, n, lstm->h, 1.0f, jvp->y + at, jvp->ldy, jvp->along->w_h,
                n, 1.0f, ra, lstm->steps * n);
    }
}

void fl_lstm_forward_jvp(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp, float *ry)
{
    const struct fl__lstm_state s = fl__lstm_state(lstm, jvp->batch, lstm->steps, jvp->state);
    const struct fl__lstm_state r = fl__lstm_state(lstm, jvp->batch, lstm->steps, jvp->rstate);
    size_t h = lstm->h;
    size_t b, t;

    for (b = 0; b < jvp->batch; b++) {
        lstm_jvp_inputs(lstm, jvp, b, r.gates + fl__lstm_at(&r, b, 0) * 4 * h);
    }
    for (t = 0; t < lstm->steps; t++) {
        if (t > 0) {
            lstm_jvp_hidden(lstm, jvp, ry, t, r.gates + t * 4 * h);
        }
        for (b = 0; b < jvp->batch; b++) {
            const struct lstm_jvp_place at = lstm_jvp_place(&s, &r, b, t);

            lstm_jvp_position(&at, ry + b * jvp->ldy + t * h, h);
        }
    }
}

/* Scratch: dc and sc [batch][h], then the largest gradient. */
size_t fl_lstm_jvp_scratch(const struct fl_lstm *lstm, size_t batch)
{
    size_t most = lstm->in > lstm->h ? lstm->in : lstm->h;

    return 2 * fl_dense_stride(batch * lstm->h) + fl_dense_stride(most * 4 * lstm->h) +
           FL_DENSE_SLACK;
}

/*
 * A gate v = f(a) with rv = f'(a) Ra, whose adjoints are d and s: those of a and Ra take the places
 * of v and rv. `slope` is f'(a), `bend` is f''(a) / f'(a).
 */
static void lstm_jvp_gate(float *v, float *rv, float d, float s, float slope, float bend)
{
    *v = d * slope + s * bend * *rv;
    *rv = s * slope;
}

/* One position backward: dh and sh are the adjoints of h and Rh, dc and sc those of c and Rc. */
static void lstm_jvp_position_back(const struct lstm_jvp_place *at, const float *dh,
                                   const float *sh, float *dc, float *sc, size_t h)
{
    float *a = at->a;
    float *ra = at->ra;
    size_t j;

    for (j = 0; j < h; j++) {
        float i = a[j], f = a[h + j], g = a[2 * h + j], o = a[3 * h + j];
        float ri = ra[j], rf = ra[h + j], rg = ra[2 * h + j], ro = ra[3 * h + j];
        float s = at->s[j];
        float bell = 1.0f - s * s;
        float c = at->before != NULL ? at->before[j] : 0.0f;
        float rc = at->before != NULL ? at->rbefore[j] : 0.0f;
        float to_rc = sc[j] + sh[j] * o * bell;
        float to_c = dc[j] + (dh[j] * o + sh[j] * (ro - 2.0f * o * s * at->rc[j])) * bell;

        lstm_jvp_gate(&a[j], &ra[j], to_c * g + to_rc * rg, to_rc * g, i * (1.0f - i),
                      1.0f - 2.0f * i);
        lstm_jvp_gate(&a[h + j], &ra[h + j], to_c * c + to_rc * rc, to_rc * c, f * (1.0f - f),
                      1.0f - 2.0f * f);
        lstm_jvp_gate(&a[2 * h + j], &ra[2 * h + j], to_c * i + to_rc * ri, to_rc * i, 1.0f - g * g,
                      -2.0f * g);
        lstm_jvp_gate(&a[3 * h + j], &ra[3 * h + j], dh[j] * s + sh[j] * at->rs[j], sh[j] * s,
                      o * (1.0f - o), 1.0f - 2.0f * o);
        dc[j] = to_c * f + to_rc * rf;
        sc[j] = to_rc * f;
    }
}

/* The adjoints of h and Rh of the position before t, from those of the sums. */
static void lstm_jvp_hidden_back(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp,
                                 const struct fl_lstm_streams *io, const float *da, const float *sa,
                                 size_t t)
{
    size_t n = 4 * lstm->h;
    size_t at = (t - 1) * lstm->h;
    size_t ld = lstm->steps * n;

    fl_gemm(false, true, jvp->batch, lstm->h, n, 1.0f, sa, ld, lstm->w_h, n, 1.0f, io->sy + at,
            jvp->ldy);
    fl_gemm(false, true, jvp->batch, lstm->h, n, 1.0f, da, ld, lstm->w_h, n, 1.0f, io->dy + at,
            jvp->ldy);
    if (jvp->along != NULL) {
        fl_gemm(false, true, jvp->batch, lstm->h, n, 1.0f, sa, ld, jvp->along->w_h, n, 1.0f,
                io->dy + at, jvp->ldy);
    }
}

/* The adjoints of x and Rx of sample b. */
static void lstm_jvp_inputs_back(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp,
                                 const struct fl_lstm_streams *io, const float *da, const float *sa,
                                 size_t b)
{
    size_t n = 4 * lstm->h;
    size_t used = lstm->steps * lstm->in;
    float *dx = io->dx + b * io->lddx;
    float *sx = io->sx + b * io->lddx;

    fl_gemm(false, true, lstm->steps, lstm->in, n, 1.0f, sa, n, lstm->w_x, n, 0.0f, sx, lstm->in);
    fl_gemm(false, true, lstm->steps, lstm->in, n, 1.0f, da, n, lstm->w_x, n, 0.0f, dx, lstm->in);
    if (jvp->along != NULL) {
        fl_gemm(false, true, lstm->steps, lstm->in, n, 1.0f, sa, n, jvp->along->w_x, n, 1.0f, dx,
                lstm->in);
    }
    (void)memset(sx + used, 0, (io->lddx - used) * sizeof(*sx));
    (void)memset(dx + used, 0, (io->lddx - used) * sizeof(*dx));
}

/*
 * Adds values^T d + tangents^T s to a gradient, of one sample; both begin `skip` positions before
 * d and s, and the tangents are NULL where they are zero.
 */
static void lstm_jvp_product(const struct fl_lstm *lstm, float *grad, size_t rows,
                             const float *values, const float *tangents, const float *da,
                             const float *sa, size_t skip)
{
    size_t n = 4 * lstm->h;
    size_t steps = lstm->steps - skip;

    fl_gemm(true, false, rows, n, steps, 1.0f, values, rows, da + skip * n, n, 1.0f, grad, n);
    if (tangents != NULL) {
        fl_gemm(true, false, rows, n, steps, 1.0f, tangents, rows, sa + skip * n, n, 1.0f, grad, n);
    }
}

static void lstm_jvp_weights(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp,
                             const struct fl_lstm_streams *io, const float *da, const float *sa,
                             float *grad)
{
    size_t n = 4 * lstm->h;
    size_t each = lstm->steps * n;
    size_t b, t, j;

    (void)memset(grad, 0, lstm->in * n * sizeof(*grad));
    for (b = 0; b < jvp->batch; b++) {
        lstm_jvp_product(lstm, grad, lstm->in, jvp->x + b * jvp->ldx,
                         jvp->rx != NULL ? jvp->rx + b * jvp->ldx : NULL, da + b * each,
                         sa + b * each, 0);
    }
    io->update(io->ctx, 0, grad);
    (void)memset(grad, 0, lstm->h * n * sizeof(*grad));
    for (b = 0; lstm->steps > 1 && b < jvp->batch; b++) {
        lstm_jvp_product(lstm, grad, lstm->h, jvp->y + b * jvp->ldy, jvp->ry + b * jvp->ldy,
                         da + b * each, sa + b * each, 1);
    }
    io->update(io->ctx, 1, grad);
    (void)memset(grad, 0, n * sizeof(*grad));
    for (t = 0; t < jvp->batch * lstm->steps; t++) {
        for (j = 0; j < n; j++) {
            grad[j] += da[t * n + j];
        }
    }
    io->update(io->ctx, 2, grad);
}

void fl_lstm_backward_jvp(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp,
                          const struct fl_lstm_streams *io, float *scratch)
{
    const struct fl__lstm_state s = fl__lstm_state(lstm, jvp->batch, lstm->steps, jvp->state);
    const struct fl__lstm_state r = fl__lstm_state(lstm, jvp->batch, lstm->steps, jvp->rstate);
    size_t h = lstm->h;
    size_t n = fl_dense_stride(jvp->batch * h);
    float *dc = scratch;
    float *sc = scratch + n;
    size_t b, t;

    (void)memset(dc, 0, 2 * n * sizeof(*dc));
    for (t = lstm->steps; t-- > 0;) {
        for (b = 0; b < jvp->batch; b++) {
            const struct lstm_jvp_place at = lstm_jvp_place(&s, &r, b, t);
            size_t y = b * jvp->ldy + t * h;

            lstm_jvp_position_back(&at, io->dy + y, io->sy + y, dc + b * h, sc + b * h, h);
        }
        if (t > 0) {
            lstm_jvp_hidden_back(lstm, jvp, io, s.gates + t * 4 * h, r.gates + t * 4 * h, t);
        }
    }
    for (b = 0; io->dx != NULL && b < jvp->batch; b++) {
        size_t at = fl__lstm_at(&s, b, 0) * 4 * h;

        lstm_jvp_inputs_back(lstm, jvp, io, s.gates + at, r.gates + at, b);
    }
    lstm_jvp_weights(lstm, jvp, io, s.gates, r.gates, scratch + 2 * n);
}
