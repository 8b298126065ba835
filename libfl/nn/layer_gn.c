/*
 * "gn GROUPS": group normalisation of each sample; "ln": layer normalisation of the channels of
 * each pixel, or of a flat row, as PyTorch's LayerNorm of the last dimension. Both fused with a
 * following ReLU, and both belong to the unit of the preceding layer with weights, if there is one:
 * weight and bias (gamma, beta), internally in this order, each padded to 16 floats. Runs on the
 * network's thread; kernels: libfl/num/group_norm.h.
 */
#include <stdio.h>
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"
#include "libfl/num/group_norm.h"

enum { GAMMA, BETA, N_TENSORS };

static size_t gn_offset(const struct fl__layer *layer, size_t which)
{
    return layer->offset + which * fl__layer_padded(layer->is.gn.c);
}

static int gn_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    uint64_t groups;

    if (fl_str_to_u64(args, &groups) != FL_OK || groups == 0 || groups > FL_GN_GROUPS_MAX) {
        return fl_err_set(err, FL_ECONF, "GROUPS must be an integer from 1 to %d",
                          FL_GN_GROUPS_MAX);
    }
    layer->is.gn.groups = (size_t)groups;
    return FL_OK;
}

/* Sizes of either kind, whose rows, pixels and groups are set. */
static int gn_sizes(struct fl__layer *layer, struct fl__layer *next)
{
    const struct fl_gn *gn = &layer->is.gn;
    size_t most =
        layer->max_batch > FL__NET_PIECE_MAX ? layer->max_batch : (size_t)FL__NET_PIECE_MAX;
    size_t moments = 2 * fl__layer_padded(most * gn->rows * gn->groups);
    size_t training = 4 * fl__layer_padded(gn->c) + 2 * fl__layer_padded(gn->c);

    layer->out = layer->in;
    if (next != NULL && next->ops == &fl__layer_relu) {
        layer->relu = true;
        next->skip = true;
    }
    layer->n_state = moments;
    /* An evaluation has its moments in the scratch. */
    layer->n_scratch = training > moments ? training : moments;
    return FL_OK;
}

static int gn_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    struct fl_gn *gn = &layer->is.gn;

    if (layer->in.flat && layer->in.pixels > 1) {
        return fl_err_set(err, FL_ECONF,
                          "the input was flattened and has no channels; put 'gn' before 'flatten'");
    }
    if (layer->in.c % gn->groups != 0) {
        return fl_err_set(err, FL_ECONF, "GROUPS is %zu, expected a divisor of the %zu channels",
                          gn->groups, layer->in.c);
    }
    gn->c = layer->in.c;
    gn->pixels = layer->in.h * layer->in.w;
    gn->rows = 1;
    return gn_sizes(layer, next);
}

static int ln_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    struct fl_gn *gn = &layer->is.gn;

    if (layer->in.flat && layer->in.pixels > 1) {
        return fl_err_set(err, FL_ECONF,
                          "the input was flattened and has no channels; put 'ln' before 'flatten'");
    }
    gn->c = layer->in.c;
    gn->pixels = 1;
    gn->rows = layer->in.h * layer->in.w;
    gn->groups = 1;
    return gn_sizes(layer, next);
}

static int gn_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                     struct fl_err *err)
{
    static const char *const names[N_TENSORS] = {"weight", "bias"};
    size_t units = fl_layout_units(layout);
    char unit[FL_NAME_MAX];
    char tensor[48];
    size_t i;
    int rv;

    if (units > 0) {
        (void)snprintf(unit, sizeof(unit), "%s", fl_layout_unit(layout, units - 1)->name);
    } else {
        (void)snprintf(unit, sizeof(unit), "%s%zu", layer->ops->word, index);
    }
    layer->tensor = fl_layout_tensors(layout);
    for (i = 0; i < N_TENSORS; i++) {
        (void)snprintf(tensor, sizeof(tensor), "%s%zu.%s", layer->ops->word, index, names[i]);
        rv = fl_layout_add(layout, unit, tensor, &layer->is.gn.c, 1, false, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    layer->n_block = N_TENSORS * fl__layer_padded(layer->is.gn.c);
    return FL_OK;
}

/* The moments of a pass: mean, then inv. */
static float *gn_moments(const struct fl__layer *layer, const struct fl__pass *pass)
{
    return pass->training ? layer->state : pass->scratch;
}

static void gn_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                       const struct fl__io *io)
{
    float *mean = gn_moments(layer, pass);

    fl_gn_forward(layer->kernels, &layer->is.gn, io->y, io->ldy, mean, mean + layer->n_state / 2,
                  io->x, io->ldx, pass->params + gn_offset(layer, GAMMA),
                  pass->params + gn_offset(layer, BETA), pass->batch, layer->relu);
}

/* The scratch of a backward pass: totals of group_norm.h, then the gradients. */
static float *gn_gradient(const struct fl__layer *layer, const struct fl__pass *pass, size_t which)
{
    return pass->scratch + (4 + which) * fl__layer_padded(layer->is.gn.c);
}

static void gn_update(const struct fl__layer *layer, const struct fl__pass *pass)
{
    size_t which;

    for (which = 0; which < N_TENSORS; which++) {
        size_t at = gn_offset(layer, which);

        pass->update(pass->ctx, at, layer->is.gn.c, pass->params + at,
                     gn_gradient(layer, pass, which));
    }
}

static void gn_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                        const struct fl__io *io)
{
    const struct fl_gn_backward to = {.dy = io->dy,
                                      .lddy = io->ldy,
                                      .x = io->x,
                                      .ldx = io->ldx,
                                      .mean = layer->state,
                                      .inv = layer->state + layer->n_state / 2,
                                      .gamma = pass->params + gn_offset(layer, GAMMA),
                                      .beta = pass->params + gn_offset(layer, BETA),
                                      .dx = io->dx,
                                      .lddx = io->lddx,
                                      .relu = layer->relu && !layer->masked};

    fl_gn_backward(layer->kernels, &layer->is.gn, gn_gradient(layer, pass, GAMMA),
                   gn_gradient(layer, pass, BETA), &to, pass->batch, pass->scratch);
    gn_update(layer, pass);
}

static struct fl_gn_jvp gn_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                               const struct fl__io *io, const struct fl__jvp *along)
{
    bool moves = along->params != NULL;

    return (struct fl_gn_jvp){
        .x = io->x,
        .rx = along->rx,
        .ldx = io->ldx,
        .mean = layer->state,
        .inv = layer->state + layer->n_state / 2,
        .gamma = pass->params + gn_offset(layer, GAMMA),
        .rgamma = moves ? along->params + gn_offset(layer, GAMMA) : NULL,
        .rbeta = moves ? along->params + gn_offset(layer, BETA) : NULL,
    };
}

static void gn_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                           const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_gn_jvp at = gn_jvp(layer, pass, io, along);

    fl_gn_forward_jvp(&layer->is.gn, along->ry, io->ldy, &at, pass->batch);
    if (layer->relu) {
        fl_relu_backward(layer->kernels, along->ry, io->ldy, io->y, io->ldy, pass->batch,
                         fl__shape_count(&layer->out));
    }
}

static void gn_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_gn_jvp at = gn_jvp(layer, pass, io, along);
    const struct fl_gn_streams streams = {
        .dy = io->dy, .sy = along->sy, .ldy = io->ldy, .dx = io->dx, .sx = along->sx};
    size_t n = fl__shape_count(&layer->out);

    if (layer->relu && !layer->masked) {
        fl_relu_backward(layer->kernels, io->dy, io->ldy, io->y, io->ldy, pass->batch, n);
        fl_relu_backward(layer->kernels, along->sy, io->ldy, io->y, io->ldy, pass->batch, n);
    }
    fl_gn_backward_jvp(&layer->is.gn, &streams, &at, gn_gradient(layer, pass, GAMMA),
                       gn_gradient(layer, pass, BETA), pass->batch, pass->scratch);
    gn_update(layer, pass);
}

/* gamma 1, beta 0. */
static void gn_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    size_t i;

    (void)rng;
    for (i = 0; i < layer->is.gn.c; i++) {
        internal[gn_offset(layer, GAMMA) + i] = 1.0f;
        internal[gn_offset(layer, BETA) + i] = 0.0f;
    }
}

static void gn_import(const struct fl__layer *layer, const struct fl_layout *layout,
                      float *internal, const float *exported)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        (void)memcpy(internal + gn_offset(layer, i), exported + fl__layer_tensor(layer, layout, i),
                     layer->is.gn.c * sizeof(*internal));
    }
}

static void gn_export(const struct fl__layer *layer, const struct fl_layout *layout,
                      float *exported, const float *internal)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        (void)memcpy(exported + fl__layer_tensor(layer, layout, i), internal + gn_offset(layer, i),
                     layer->is.gn.c * sizeof(*exported));
    }
}

/* y is only read in JVP passes; backward computes the mask of its ReLU from x. */
static struct fl__needs gn_needs(const struct fl__layer *layer)
{
    return (struct fl__needs){.x = true, .y = layer->relu && !layer->masked};
}

const struct fl__layer_ops fl__layer_gn = {
    .word = "gn",
    .usage = "gn GROUPS",
    .parse = gn_parse,
    .shape = gn_shape,
    .params = gn_params,
    .needs = gn_needs,
    .forward = gn_forward,
    .backward = gn_backward,
    .forward_jvp = gn_forward_jvp,
    .backward_jvp = gn_backward_jvp,
    .init = gn_init,
    .import = gn_import,
    .export = gn_export,
};

const struct fl__layer_ops fl__layer_ln = {
    .word = "ln",
    .usage = "ln",
    .parse = fl__layer_no_args,
    .shape = ln_shape,
    .params = gn_params,
    .needs = gn_needs,
    .forward = gn_forward,
    .backward = gn_backward,
    .forward_jvp = gn_forward_jvp,
    .backward_jvp = gn_backward_jvp,
    .init = gn_init,
    .import = gn_import,
    .export = gn_export,
};
