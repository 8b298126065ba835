/*
 * "bn": batch-normalisation of each channel, fused with a following ReLU. It belongs to the unit of
 * the preceding layer with weights: weight and bias (gamma, beta), and the buffers running_mean and
 * running_var, which training updates and evaluation uses. Internally the four are stored in this
 * order, each padded to 16 floats. Runs on the network's thread; kernels: libfl/num/norm.h.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"

enum { GAMMA, BETA, MEAN, VAR, N_TENSORS };

static size_t offset_of(const struct fl__layer *layer, size_t which)
{
    return layer->offset + which * fl__layer_padded(layer->is.bn.c);
}

static int bn_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    struct fl_bn *bn = &layer->is.bn;

    if (layer->in.flat && layer->in.pixels > 1) {
        return fl_err_set(err, FL_ECONF,
                          "the input was flattened and has no channels; put 'bn' before 'flatten'");
    }
    bn->c = layer->in.c;
    bn->pixels = layer->in.h * layer->in.w;
    layer->out = layer->in;
    if (next != NULL && next->ops == &fl__layer_relu) {
        layer->relu = true;
        next->skip = true;
    }
    layer->n_state = 2 * fl__layer_padded(bn->c);
    layer->n_scratch = 2 * fl__layer_padded(bn->c);
    return FL_OK;
}

static int bn_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                     struct fl_err *err)
{
    static const char *const names[N_TENSORS] = {"weight", "bias", "running_mean", "running_var"};
    char unit[FL_NAME_MAX];
    char tensor[48];
    size_t i;
    int rv;

    if (fl_layout_units(layout) == 0) {
        return fl_err_set(err, FL_ECONF,
                          "needs a preceding layer with weights ('conv' or 'dense'): it is part of "
                          "that layer's unit");
    }
    (void)snprintf(unit, sizeof(unit), "%s",
                   fl_layout_unit(layout, fl_layout_units(layout) - 1)->name);
    layer->tensor = fl_layout_tensors(layout);
    for (i = 0; i < N_TENSORS; i++) {
        (void)snprintf(tensor, sizeof(tensor), "bn%zu.%s", index, names[i]);
        rv = fl_layout_add(layout, unit, tensor, &layer->is.bn.c, 1, i >= MEAN, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    layer->n_block = N_TENSORS * fl__layer_padded(layer->is.bn.c);
    return FL_OK;
}

static void bn_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                       const struct fl__io *io)
{
    const struct fl_bn *bn = &layer->is.bn;
    float *running_mean = pass->params + offset_of(layer, MEAN);
    float *running_var = pass->params + offset_of(layer, VAR);
    const float *mean = running_mean;
    const float *var = running_var;

    if (pass->training) {
        mean = layer->state;
        var = layer->state + fl__layer_padded(bn->c);
        fl_bn_moments(layer->kernels, bn, layer->state, layer->state + fl__layer_padded(bn->c),
                      io->x, io->ldx, pass->batch);
        if (pass->track) {
            fl_bn_track(bn, running_mean, running_var, mean, var, pass->batch * bn->pixels);
        }
    }
    fl_bn_forward(layer->kernels, bn, io->y, io->ldy, io->x, io->ldx, mean, var,
                  pass->params + offset_of(layer, GAMMA), pass->params + offset_of(layer, BETA),
                  pass->batch, layer->relu);
}

static void bn_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                        const struct fl__io *io)
{
    const struct fl_bn *bn = &layer->is.bn;
    float *gamma = pass->params + offset_of(layer, GAMMA);
    float *beta = pass->params + offset_of(layer, BETA);
    float *dgamma = pass->scratch;
    float *dbeta = pass->scratch + fl__layer_padded(bn->c);
    const struct fl_bn_backward to = {.dy = io->dy,
                                      .lddy = io->ldy,
                                      .x = io->x,
                                      .ldx = io->ldx,
                                      .mean = layer->state,
                                      .var = layer->state + fl__layer_padded(bn->c),
                                      .gamma = gamma,
                                      .beta = beta,
                                      .relu = layer->relu && !layer->masked};

    fl_bn_backward_sums(layer->kernels, bn, dgamma, dbeta, &to, pass->batch);
    if (io->dx != NULL) {
        fl_bn_backward_data(layer->kernels, bn, io->dx, io->lddx, &to, dgamma, dbeta, pass->batch);
    }
    pass->update(pass->ctx, offset_of(layer, GAMMA), bn->c, gamma, dgamma);
    pass->update(pass->ctx, offset_of(layer, BETA), bn->c, beta, dbeta);
}

static struct fl_bn_jvp bn_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                               const struct fl__jvp *along)
{
    size_t padded = fl__layer_padded(layer->is.bn.c);
    bool moves = along->params != NULL;

    return (struct fl_bn_jvp){
        .mean = layer->state,
        .var = layer->state + padded,
        .rmean = layer->rstate,
        .slope = layer->rstate + padded,
        .gamma = pass->params + offset_of(layer, GAMMA),
        .rgamma = moves ? along->params + offset_of(layer, GAMMA) : NULL,
        .rbeta = moves ? along->params + offset_of(layer, BETA) : NULL,
    };
}

static void bn_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                           const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_bn *bn = &layer->is.bn;
    const struct fl_bn_jvp at = bn_jvp(layer, pass, along);

    fl_bn_moments_jvp(bn, layer->rstate, layer->rstate + fl__layer_padded(bn->c), along->rx, io->x,
                      io->ldx, at.mean, at.var, pass->batch);
    fl_bn_forward_jvp(bn, along->ry, io->ldy, along->rx, io->x, io->ldx, &at, pass->batch);
    if (layer->relu) {
        fl_relu_backward(layer->kernels, along->ry, io->ldy, io->y, io->ldy, pass->batch,
                         bn->pixels * bn->c);
    }
}

static void bn_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_bn *bn = &layer->is.bn;
    const struct fl_bn_jvp at = bn_jvp(layer, pass, along);
    const struct fl_bn_streams streams = {.x = io->x,
                                          .rx = along->rx,
                                          .dy = io->dy,
                                          .sy = along->sy,
                                          /* dx may be unneeded at the start of a branch */
                                          .dx = io->dx != NULL ? io->dx : along->spare,
                                          .sx = io->dx != NULL ? along->sx : along->spare,
                                          .ldx = io->ldx,
                                          .ldy = io->ldy};
    float *dgamma = pass->scratch;
    float *dbeta = pass->scratch + fl__layer_padded(bn->c);

    if (layer->relu && !layer->masked) {
        fl_relu_backward(layer->kernels, io->dy, io->ldy, io->y, io->ldy, pass->batch,
                         bn->pixels * bn->c);
        fl_relu_backward(layer->kernels, along->sy, io->ldy, io->y, io->ldy, pass->batch,
                         bn->pixels * bn->c);
    }
    fl_bn_backward_jvp(bn, &streams, &at, dgamma, dbeta, pass->batch);
    pass->update(pass->ctx, offset_of(layer, GAMMA), bn->c, pass->params + offset_of(layer, GAMMA),
                 dgamma);
    pass->update(pass->ctx, offset_of(layer, BETA), bn->c, pass->params + offset_of(layer, BETA),
                 dbeta);
}

/* gamma 1, beta 0, mean 0, variance 1: the identity. */
static void bn_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    size_t i;

    (void)rng;
    for (i = 0; i < layer->is.bn.c; i++) {
        internal[offset_of(layer, GAMMA) + i] = 1.0f;
        internal[offset_of(layer, BETA) + i] = 0.0f;
        internal[offset_of(layer, MEAN) + i] = 0.0f;
        internal[offset_of(layer, VAR) + i] = 1.0f;
    }
}

static void bn_import(const struct fl__layer *layer, const struct fl_layout *layout,
                      float *internal, const float *exported)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        (void)memcpy(internal + offset_of(layer, i), exported + fl__layer_tensor(layer, layout, i),
                     layer->is.bn.c * sizeof(*internal));
    }
}

static void bn_export(const struct fl__layer *layer, const struct fl_layout *layout,
                      float *exported, const float *internal)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        (void)memcpy(exported + fl__layer_tensor(layer, layout, i), internal + offset_of(layer, i),
                     layer->is.bn.c * sizeof(*exported));
    }
}

/* y is only read in JVP passes; backward computes the mask of its ReLU from x. */
static struct fl__needs bn_needs(const struct fl__layer *layer)
{
    return (struct fl__needs){.x = true, .y = layer->relu && !layer->masked};
}

const struct fl__layer_ops fl__layer_bn = {
    .word = "bn",
    .usage = "bn",
    .parse = fl__layer_no_args,
    .shape = bn_shape,
    .params = bn_params,
    .needs = bn_needs,
    .forward = bn_forward,
    .backward = bn_backward,
    .forward_jvp = bn_forward_jvp,
    .backward_jvp = bn_backward_jvp,
    .init = bn_init,
    .import = bn_import,
    .export = bn_export,
};
