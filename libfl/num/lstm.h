#ifndef FL_NUM_LSTM_H
#define FL_NUM_LSTM_H

/*
 * Long short-term memory (Hochreiter and Schmidhuber 1997) in PyTorch's form: from h = c = 0, at
 * each of `steps` positions
 *
 *     a = x W_x + h W_h + b,  i, f, o = sigmoid, g = tanh of its parts
 *     c = f c + i g,  h = o tanh(c)
 *
 *     x[batch][steps][in]  stride ldx floats per sample; dx as x
 *     y[batch][steps][h]   all h, stride ldy; dy as y
 *     w_x[in][4 h], w_h[h][4 h], b[4 h]  parts in the order i, f, g, o
 *
 * Purity: no allocation, no state.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/num/kernels.h"

struct fl_lstm {
    size_t in, h, steps;
    const float *w_x, *w_h, *b;
};

/*
 * Floats of a pass's gates and cells: of the state of `batch` samples that backward reads
 * (training), or of the scratch of an evaluation.
 */
size_t fl_lstm_state(const struct fl_lstm *lstm, size_t batch, bool training);
/* Floats of the scratch of backward. */
size_t fl_lstm_scratch(const struct fl_lstm *lstm, size_t batch);

void fl_lstm_forward(const struct fl_kernels *kernels, const struct fl_lstm *lstm, float *y,
                     size_t ldy, const float *x, size_t ldx, size_t batch, bool training,
                     float *state);

struct fl_lstm_backward {
    size_t batch;
    const float *x, *y;
    float *dy; /* is overwritten */
    size_t ldx, ldy;
    float *dx; /* completely overwritten up to its stride; NULL: not needed */
    size_t lddx;
    float *state; /* of forward; is overwritten */
    /* Called with dw_x, dw_h and db (part 0, 1, 2), when dx is complete. */
    void (*update)(void *ctx, int part, const float *grad);
    void *ctx;
};
void fl_lstm_backward(const struct fl_lstm *lstm, const struct fl_lstm_backward *io,
                      float *scratch);

/* A pass along a direction (JVP); forward was called before in training. */
struct fl_lstm_jvp {
    size_t batch;
    const struct fl_lstm *along; /* the direction of the parameters; NULL: zero */
    const float *x, *rx;         /* rx: the tangent of x; NULL: zero */
    const float *y, *ry;         /* of backward; ry: the tangent of y */
    size_t ldx, ldy;
    float *state, *rstate; /* of forward, and as many floats; backward overwrites both */
};
void fl_lstm_forward_jvp(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp, float *ry);

struct fl_lstm_streams {
    float *dy, *sy; /* the adjoints of y and ry; are overwritten */
    float *dx, *sx; /* those of x and rx, completely overwritten up to lddx; NULL: not needed */
    size_t lddx;
    void (*update)(void *ctx, int part, const float *grad); /* as of fl_lstm_backward() */
    void *ctx;
};
/* Floats of the scratch of the backward pass. */
size_t fl_lstm_jvp_scratch(const struct fl_lstm *lstm, size_t batch);
void fl_lstm_backward_jvp(const struct fl_lstm *lstm, const struct fl_lstm_jvp *jvp,
                          const struct fl_lstm_streams *io, float *scratch);

#endif
