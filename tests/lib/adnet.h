#ifndef FL_TESTS_ADNET_H
#define FL_TESTS_ADNET_H

/*
 * The networks of refnet.h with automatic differentiation written out: every product and sum goes
 * on a tape in double, with its derivative along a direction, and a sweep back over the tape gives
 * gradients and their derivatives along that direction. No formula of a layer's derivative is in
 * here, and no code of libfl/nn or libfl/num. The oracle of fl_net_pass_jvp().
 *
 * ReLU has the derivative 0 at 0, the first of several maxima of a window counts.
 */

#include "tests/lib/refnet.h"

struct ad_job {
    const struct ref_net *net;
    const double *params; /* exported order */
    const float *x;
    const int32_t *y;
    const float *target; /* [batch][classes]; NULL: y */
    size_t batch;
    struct fl_rng *rng;  /* that dropout draws from; moved on. NULL without dropout */
    const float *jvp_x;  /* [batch][inputs], or NULL */
    const double *along; /* exported order, or NULL */
    double loss, slope;  /* as in struct fl_net_direction */
};

struct ad_result {
    double loss, slope;  /* means over the batch */
    size_t n_zeros;      /* numbers that ReLU got as exactly 0 */
    double nearest_bend; /* how far along the direction the nearest side change of a ReLU is */
};

/* grad[count]: gradient of the objective by the parameters, 0 for buffers. */
struct ad_result ad_gradient(const struct ad_job *job, size_t count, double *grad);

#endif
