#ifndef FL_NN_LOSS_H
#define FL_NN_LOSS_H

/* The losses of a batch; private to libfl/nn. */

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

/* What is compared with the outputs: class numbers, or values. */
enum fl__loss {
    FL__LOSS_CE,  /* softmax cross-entropy with a class number */
    FL__LOSS_MSE, /* (z - t)^2 */
    FL__LOSS_MAE, /* |z - t|; its derivative is 0 where z = t */
    FL__LOSS_BCE  /* cross-entropy of sigmoid(z) with t in [0, 1], for each output by itself */
};

/* A batch with values to be predicted; the loss of a sample is the mean over its outputs. */
struct fl__value_loss {
    enum fl__loss loss; /* not CE */
    const float *z;
    size_t ld;
    const float *table; /* [rows][width]: the values of all samples of a set */
    const int32_t *y;   /* the row of each sample */
    size_t batch, width;
    float scale; /* of the gradient */
    /* Of a JVP pass: the tangent of z and the factor of the directional derivative; NULL: none. */
    const float *rz;
    float slope;
};
/*
 * Returns the sum of the losses, in double. With `dz` not NULL: the gradient times `scale`, zero in
 * the columns width..ld. With rz as fl__softmax_ce_jvp(): dz and sz are the derivatives of scale L
 * + slope dL along rz by z and by rz, and the sum of dL is in *ret_slope. With `ret_correct` not
 * NULL: of BCE the number of samples all of whose outputs are on the side of their value (z > 0
 * where t > 0.5), else 0.
 */
double fl__loss_of_values(const struct fl__value_loss *in, float *dz, float *sz, double *ret_slope,
                          size_t *ret_correct);

#endif
