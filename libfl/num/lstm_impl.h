#ifndef FL_NUM_LSTM_IMPL_H
#define FL_NUM_LSTM_IMPL_H

/* What an LSTM keeps of a pass; private to libfl/num. */

#include "libfl/num/dense.h"
#include "libfl/num/lstm.h"

/*
 * Gates a[batch][kept][4 h], then cells c and tanh(c), each [batch][kept][h]; in the state of
 * tangents the tangent of each.
 */
struct fl__lstm_state {
    float *gates, *cells, *squashed;
    size_t kept, h;
};

static inline struct fl__lstm_state fl__lstm_state(const struct fl_lstm *lstm, size_t batch,
                                                   size_t kept, float *state)
{
    size_t n = fl_dense_stride(batch * kept * lstm->h);

    return (struct fl__lstm_state){.gates = state,
                                   .cells = state + 4 * n,
                                   .squashed = state + 5 * n,
                                   .kept = kept,
                                   .h = lstm->h};
}

/* Place of sample b at position t among the kept ones. */
static inline size_t fl__lstm_at(const struct fl__lstm_state *s, size_t b, size_t t)
{
    return b * s->kept + (s->kept > 1 ? t : 0);
}

#endif
