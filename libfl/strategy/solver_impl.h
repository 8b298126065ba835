#ifndef FL_STRATEGY_SOLVER_IMPL_H
#define FL_STRATEGY_SOLVER_IMPL_H

/* The SGD update that all solvers end in: they differ in the gradient they give it. */

#include "libfl/strategy/solver.h"

/* Floats that a solver works on at a time, on the stack: a quarter of a core's first cache. */
#define FL__SOLVER_CHUNK 2048

struct fl__sgd {
    struct fl_net *net;
    float learning_rate, momentum, weight_decay;
    float *velocity; /* internal order; NULL without momentum */
};

FL_MUST_CHECK int fl__sgd_init(struct fl__sgd *sgd, const struct fl_solver_setup *setup,
                               struct fl_err *err);
void fl__sgd_done(struct fl__sgd *sgd);
/* One range of the model: params[n] at `offset` of the internal block. */
void fl__sgd_update(const struct fl__sgd *sgd, size_t offset, size_t n, float *params,
                    const float *grad);

#endif
