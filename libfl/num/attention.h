#ifndef FL_NUM_ATTENTION_H
#define FL_NUM_ATTENTION_H

/*
 * Multi-head self-attention (Vaswani et al. 2017, section 3.2), as PyTorch's MultiheadAttention of
 * a sequence with itself: with q, k, v = x W_in + b_in in `heads` parts of d / heads channels each,
 *
 *     P = softmax(q k^T / sqrt(d / heads)) by rows,  o = P v,  y = (o of all heads) W_out + b_out
 *
 *     x[batch][steps][d]  stride ldx floats per sample; y, dy, dx as x
 *     w_in[d][3 d] (q, k, v), b_in[3 d], w_out[d][d], b_out[d]
 *
 * With `causal` a position attends to itself and earlier ones. Purity: no allocation, no state.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/kernels.h"

struct fl_self_attention {
    size_t d, steps, heads; /* heads is a divisor of d */
    bool causal;
    const float *w_in, *b_in, *w_out, *b_out;
};

/* Floats of the state of a sample: of all samples in training, of one in an evaluation. */
size_t fl_attention_state(const struct fl_self_attention *at);
/* Floats of the scratch of backward. */
size_t fl_attention_scratch(const struct fl_self_attention *at);

/* `state`: of `batch` samples when `training`, else of one. */
void fl_attention_forward(const struct fl_kernels *kernels, const struct fl_self_attention *at,
                          float *y, size_t ldy, const float *x, size_t ldx, size_t batch,
                          bool training, float *state);

struct fl_attention_backward {
    size_t batch;
    const float *x, *dy;
    size_t ldx, ldy;
    float *dx; /* completely overwritten up to its stride; NULL: not needed */
    size_t lddx;
    float *state; /* of forward; only read */
    /* Called with the gradients of w_in, b_in, w_out and b_out (part 0 to 3), when dx is complete.
     */
    void (*update)(void *ctx, int part, const float *grad);
    void *ctx;
};
void fl_attention_backward(const struct fl_self_attention *at,
                           const struct fl_attention_backward *io, float *scratch);

/* A pass along a direction (JVP); forward was called before in training. */
struct fl_attention_jvp {
    size_t batch;
    const struct fl_self_attention *along; /* the direction of the parameters; NULL: zero */
    const float *x, *rx;                   /* rx: the tangent of x; NULL: zero */
    size_t ldx;
    float *state, *rstate; /* of forward, only read; and as many floats */
};
void fl_attention_forward_jvp(const struct fl_self_attention *at,
                              const struct fl_attention_jvp *jvp, float *ry, size_t ldy);

struct fl_attention_streams {
    const float *dy, *sy; /* the adjoints of y and of its tangent ry */
    size_t ldy;
    float *dx, *sx; /* those of x and rx, completely overwritten up to lddx; NULL: not needed */
    size_t lddx;
    void (*update)(void *ctx, int part, const float *grad); /* as of fl_attention_backward() */
    void *ctx;
};
/* Floats of the scratch of the backward pass. */
size_t fl_attention_jvp_scratch(const struct fl_self_attention *at);
void fl_attention_backward_jvp(const struct fl_self_attention *at,
                               const struct fl_attention_jvp *jvp,
                               const struct fl_attention_streams *io, float *scratch);

#endif
