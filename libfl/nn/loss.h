#ifndef FL_NN_LOSS_H
#define FL_NN_LOSS_H

/* Softmax cross-entropy on the logits of a batch; private to libfl/nn. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/num/kernels.h"

/* A batch; rows of z have the stride `ld`, at least fl_softmax_stride(classes). */
struct fl__ce {
    const float *z;
    size_t ld;
    const int32_t *y;
    const float *target; /* [batch][classes], a distribution per sample; NULL: the labels y */
    size_t batch, classes;
    float scale; /* of the gradient */
};

/*
 * Returns the sum of the losses, in double. With `dz` not NULL: dz = (softmax(z) - onehot(y)) *
 * scale, and zero in the columns classes..ld. With `ret_correct` not NULL: the number of samples
 * with the largest logit at y (the lowest index wins a tie; a sample with NaN is wrong).
 *
 * With targets the loss of a sample is -sum of t_c log softmax(z)_c, linear in t, and dz =
 * (softmax(z) sum(t) - t) * scale; a target with a single 1 gives the bits of its label. `dz` is
 * not NULL and `ret_correct` is NULL then.
 */
double fl__softmax_ce(const struct fl_kernels *kernels, const struct fl__ce *in, float *dz,
                      size_t *ret_correct);

/*
 * The objective of a JVP pass, per sample ce.scale * L + slope * dL_y, with L the loss of `ce` and
 * dL_y the directional derivative of the cross-entropy with label y along rz, the tangent of z. dz
 * and sz are the objective's derivatives by z and by rz, zero in the columns classes..ld. Returns
 * the sum of L, and of dL_y in *ret_slope.
 */
struct fl__ce_jvp {
    struct fl__ce ce; /* y is set, with targets too */
    const float *rz;
    float slope;
};
double fl__softmax_ce_jvp(const struct fl_kernels *kernels, const struct fl__ce_jvp *in, float *dz,
                          float *sz, double *ret_slope);

#endif
