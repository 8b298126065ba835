#ifndef FL_NN_LOSS_H
#define FL_NN_LOSS_H

/* Softmax cross-entropy on the logits of a batch; private to libfl/nn. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/num/kernels.h"

/* Rows have the stride `ld`, at least fl_softmax_stride(classes). */

/*
 * Returns the sum of the losses, in double. With `dz` not NULL: dz = (softmax(z) - onehot(y)) *
 * scale, and zero in the columns classes..ld. With `ret_correct` not NULL: the number of samples
 * with the largest logit at y (the lowest index wins a tie; a sample with NaN is wrong).
 */
double fl__softmax_ce(const struct fl_kernels *kernels, const float *z, size_t ld, const int32_t *y,
                      size_t batch, size_t classes, float scale, float *dz, size_t *ret_correct);
/*
 * fl__softmax_ce() with soft targets, a distribution of classes per sample,
 * target[batch][classes]: the loss of a sample is -sum of t_c log softmax(z)_c, linear in t, dz
 * = (softmax(z) sum(t) - t) * scale. A target with a single 1 gives the bits of
 * fl__softmax_ce().
 */
double fl__softmax_ce_soft(const struct fl_kernels *kernels, const float *z, size_t ld,
                           const float *target, size_t batch, size_t classes, float scale,
                           float *dz);

/*
 * The objective of a JVP pass, per sample loss * L_target + slope * dL_y, with dL_y the
 * directional derivative of the cross-entropy with label y along rz, the tangent of z. `target`
 * NULL: L_y replaces L_target. dz and sz are the objective's derivatives by z and by rz, zero in
 * the columns classes..ld. Returns the sum of L_target, and of dL_y in *ret_slope.
 */
struct fl__ce_jvp {
    const float *z, *rz;
    size_t ld;
    const int32_t *y;
    const float *target; /* [batch][classes] */
    size_t batch, classes;
    float loss, slope;
};
double fl__softmax_ce_jvp(const struct fl_kernels *kernels, const struct fl__ce_jvp *in, float *dz,
                          float *sz, double *ret_slope);

#endif
