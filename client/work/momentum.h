#ifndef FL_CLIENT_WORK_MOMENTUM_H
#define FL_CLIENT_WORK_MOMENTUM_H

/*
 * Momentum over the rounds of a client (docs/algorithms.md#momentum-of-a-client): what it uploads
 * in place of its update. Pure functions.
 */

#include "libfl/model/layout.h"

/*
 * Replace the trainable entries of `delta` by beta kept + (1 - beta) delta, and the norms of the
 * units in `divergence` [units] by those of the result. Local tensors and buffers stay. A unit of
 * `kept` without a trainable entry other than 0 has no momentum yet, and keeps its delta; `kept`
 * NULL: none has.
 */
void fl_momentum_apply(const struct fl_layout *layout, double beta, const float *kept, float *delta,
                       float *divergence);

#endif
