#ifndef FL_TESTS_ADNET_H
#define FL_TESTS_ADNET_H

/*
 * The networks of refnet.h with automatic differentiation: every product and sum is recorded on a
 * tape in double, with its directional derivative, and a reverse pass gives the gradients and their
 * directional derivatives. Contains no formula for the derivative of a layer, and no code of
 * libfl/nn or libfl/num. The oracle of fl_net_pass_jvp().
 *
 * ReLU has the derivative 0 at 0; of several maxima in a window the first is used.
 */

#include "tests/lib/refnet.h"

struct ad_job {
    const struct ref_net *net;
    const double *params; /* exported order */
    const float *x;
    const int32_t *y;
    const float *target; /* [batch][classes]; NULL: y */
    size_t batch;
    struct fl_rng *rng;  /* random stream of dropout; advanced. NULL without dropout */
    const float *jvp_x;  /* [batch][inputs], or NULL */
    const double *along; /* exported order, or NULL */
    double loss, slope;  /* as in struct fl_net_direction */
};

struct ad_result {
    double loss, slope; /* means over the batch */
    size_t n_zeros;     /* inputs of ReLU that are exactly 0 */
    double
        nearest_bend; /* distance along the direction to the nearest sign change of a ReLU input */
};

/* grad[count]: gradient of the objective by the parameters, 0 for buffers. */
struct ad_result ad_gradient(const struct ad_job *job, size_t count, double *grad);

#endif
