/*
 * "dense WIDTH": y = x W + b. Exported as in PyTorch, weight[out][in] and bias[out]; internally
 * W[in][out] (small-n layers: W[out][in]), padded to 16 floats, then b, so that the update of a row
 * block is one contiguous range and the kernels run along the longer side
 * (docs/kernels.md#dense-layers). Runs on the network's thread; kernels: libfl/num/dense.h.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"

/*
 * Limit of the width: above every supported model, small enough to keep products far from
 * overflow.
 */
#define WIDTH_MAX (UINT64_C(1) << 20)

static int dense_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    uint64_t width;

    if (fl_str_to_u64(args, &width) != FL_OK || width == 0 || width > WIDTH_MAX) {
        return fl_err_set(err, FL_ECONF, "WIDTH must be an integer from 1 to %llu",
                          (unsigned long long)WIDTH_MAX);
    }
    layer->is.width = (size_t)width;
    return FL_OK;
}

static int dense_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    if (!layer->in.flat) {
        return fl_err_set(err, FL_ECONF,
                          "needs a flat input, but its input is %zux%zux%zu; put 'flatten' before "
                          "it",
                          layer->in.c, layer->in.h, layer->in.w);
    }
    layer->out =
        (struct fl__shape){.c = layer->is.width, .h = 1, .w = 1, .flat = true, .pixels = 1};
    if (next != NULL && next->ops == &fl__layer_relu) {
        layer->relu = true;
        next->skip = true;
    }
    layer->n_scratch = fl_dense_scratch(layer->in.c, layer->is.width);
    layer->n_jvp = 2 * fl_dense_stride(layer->n_scratch);
    return FL_OK;
}

static size_t dense_bias_offset(const struct fl__layer *layer)
{
    return layer->offset + fl__layer_padded(layer->in.c * layer->is.width);
}

static int dense_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                        struct fl_err *err)
{
    const size_t dims[2] = {layer->is.width, layer->in.c};
    char unit[32];
    char tensor[48];
    int rv;

    layer->tensor = fl_layout_tensors(layout);
    (void)snprintf(unit, sizeof(unit), "fc%zu", index);
    (void)snprintf(tensor, sizeof(tensor), "fc%zu.weight", index);
    rv = fl_layout_add(layout, unit, tensor, dims, 2, false, err);
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(tensor, sizeof(tensor), "fc%zu.bias", index);
    rv = fl_layout_add(layout, unit, tensor, dims, 1, false, err);
    if (rv != FL_OK) {
        return rv;
    }
    layer->macs = (double)layer->in.c * (double)layer->is.width;
    layer->n_block =
        fl__layer_padded(layer->in.c * layer->is.width) + fl__layer_padded(layer->is.width);
    return FL_OK;
}

static void dense_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                          const struct fl__io *io)
{
    fl_dense_forward(layer->kernels, io->y, io->ldy, io->x, io->ldx, pass->params + layer->offset,
                     pass->params + dense_bias_offset(layer), pass->batch, layer->in.c,
                     layer->is.width, layer->relu);
}

struct weights_update {
    const struct fl__pass *pass;
    size_t offset;
};

static void dense_update_weights(void *ctx, size_t offset, size_t n, const float *grad)
{
    const struct weights_update *u = ctx;
    size_t at = u->offset + offset;

    u->pass->update(u->pass->ctx, at, n, u->pass->params + at, grad);
}

/* Also masks dy with ReLU. */
static void dense_update_bias(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io)
{
    size_t at = dense_bias_offset(layer);

    fl_dense_backward_bias(layer->kernels, pass->scratch, io->dy, io->ldy,
                           layer->relu ? io->y : NULL, io->ldy, pass->batch, layer->is.width);
    pass->update(pass->ctx, at, layer->is.width, pass->params + at, pass->scratch);
}

static void dense_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                           const struct fl__io *io)
{
    struct weights_update u = {.pass = pass, .offset = layer->offset};
    size_t in = layer->in.c;
    size_t out = layer->is.width;

    dense_update_bias(layer, pass, io);
    /* Before the update: the gradient of the input uses the old weights. */
    if (io->dx != NULL) {
        fl_dense_backward_data(layer->kernels, io->dx, io->lddx, io->dy, io->ldy,
                               pass->params + layer->offset, pass->batch, in, out);
    }
    fl_dense_backward_weights(layer->kernels, io->x, io->ldx, io->dy, io->ldy, pass->batch, in, out,
                              pass->scratch, dense_update_weights, &u);
}

/* ry = rx W + x V + rb where y > 0. */
static void dense_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io, const struct fl__jvp *along)
{
    size_t in = layer->in.c;
    size_t out = layer->is.width;
    bool both = along->rx != NULL && along->params != NULL;

    if (along->params != NULL) {
        fl_dense_forward(layer->kernels, along->ry, io->ldy, io->x, io->ldx,
                         along->params + layer->offset, along->params + dense_bias_offset(layer),
                         pass->batch, in, out, false);
    }
    if (along->rx != NULL) {
        fl_dense_forward(layer->kernels, both ? along->spare : along->ry, io->ldy, along->rx,
                         io->ldx, pass->params + layer->offset, along->zeros, pass->batch, in, out,
                         false);
    }
    if (both) {
        fl__layer_accumulate(along->ry, along->spare, io->ldy, out, pass->batch);
    }
    if (layer->relu) {
        fl_relu_backward(layer->kernels, along->ry, io->ldy, io->y, io->ldy, pass->batch, out);
    }
}

/* dx = dy W^T + sy V^T, sx = sy W^T, dW = x^T dy + rx^T sy; see net.h. */
static void dense_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                               const struct fl__io *io, const struct fl__jvp *along)
{
    struct weights_update u = {.pass = pass, .offset = layer->offset};
    const float *w = pass->params + layer->offset;
    size_t in = layer->in.c;
    size_t out = layer->is.width;

    dense_update_bias(layer, pass, io);
    if (layer->relu) {
        fl_relu_backward(layer->kernels, along->sy, io->ldy, io->y, io->ldy, pass->batch, out);
    }
    if (io->dx != NULL) {
        fl_dense_backward_data(layer->kernels, io->dx, io->lddx, io->dy, io->ldy, w, pass->batch,
                               in, out);
        fl_dense_backward_data(layer->kernels, along->sx, io->lddx, along->sy, io->ldy, w,
                               pass->batch, in, out);
    }
    if (io->dx != NULL && along->params != NULL) {
        fl_dense_backward_data(layer->kernels, along->spare, io->lddx, along->sy, io->ldy,
                               along->params + layer->offset, pass->batch, in, out);
        fl__layer_accumulate(io->dx, along->spare, io->lddx, in, pass->batch);
    }
    fl_dense_backward_weights_jvp(layer->kernels, io->x, along->rx, io->ldx, io->dy, along->sy,
                                  io->ldy, pass->batch, in, out, pass->scratch,
                                  dense_update_weights, &u);
}

/* Strides in W between neighbouring inputs and between neighbouring outputs. */
struct dense_strides {
    size_t in, out;
};

static struct dense_strides dense_strides(const struct fl__layer *layer)
{
    return fl_dense_small_n(layer->in.c, layer->is.width)
               ? (struct dense_strides){.in = 1, .out = layer->in.c}
               : (struct dense_strides){.in = layer->is.width, .out = 1};
}

/*
 * Internal index of input `i` of the exported order: after a flattened image the exported order
 * is channel by channel, the internal one pixel by pixel.
 */
static size_t input_of(const struct fl__layer *layer, size_t i)
{
    size_t pixels = layer->in.pixels;

    return i % pixels * (layer->in.c / pixels) + i / pixels;
}

/* PyTorch's default for linear layers, in exported order. */
static void dense_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    const struct dense_strides step = dense_strides(layer);
    float *w = internal + layer->offset;
    double bound = 1.0 / sqrt((double)layer->in.c);
    size_t out = layer->is.width;
    size_t i;
    size_t j;

    for (j = 0; j < out; j++) {
        for (i = 0; i < layer->in.c; i++) {
            fl__layer_draw(rng, bound, w + input_of(layer, i) * step.in + j * step.out, 1, 1);
        }
    }
    fl__layer_draw(rng, bound, internal + dense_bias_offset(layer), out, 1);
}

/* Side of the squares in which matrices are transposed, so that both sides stay in cache. */
#define TILE 32

/* Convert the exported weight[out][in] to W (import), or back. */
static void move_weights(const struct fl__layer *layer, float *to, const float *from, bool import)
{
    const struct dense_strides step = dense_strides(layer);
    size_t in = layer->in.c;
    size_t out = layer->is.width;
    size_t i0, j0, i, j;

    for (j0 = 0; j0 < out; j0 += TILE) {
        for (i0 = 0; i0 < in; i0 += TILE) {
            for (i = i0; i < in && i < i0 + TILE; i++) {
                size_t row = input_of(layer, i) * step.in;

                for (j = j0; j < out && j < j0 + TILE; j++) {
                    size_t inside = row + j * step.out;
                    size_t exported = j * in + i;

                    to[import ? inside : exported] = from[import ? exported : inside];
                }
            }
        }
    }
}

static void dense_import(const struct fl__layer *layer, const struct fl_layout *layout,
                         float *internal, const float *exported)
{
    move_weights(layer, internal + layer->offset, exported + fl__layer_tensor(layer, layout, 0),
                 /* import= */ true);
    (void)memcpy(internal + dense_bias_offset(layer), exported + fl__layer_tensor(layer, layout, 1),
                 layer->is.width * sizeof(*internal));
}

static void dense_export(const struct fl__layer *layer, const struct fl_layout *layout,
                         float *exported, const float *internal)
{
    move_weights(layer, exported + fl__layer_tensor(layer, layout, 0), internal + layer->offset,
                 /* import= */ false);
    (void)memcpy(exported + fl__layer_tensor(layer, layout, 1), internal + dense_bias_offset(layer),
                 layer->is.width * sizeof(*exported));
}

static struct fl__needs dense_needs(const struct fl__layer *layer)
{
    return (struct fl__needs){.x = true, .y = layer->relu};
}

const struct fl__layer_ops fl__layer_dense = {
    .word = "dense",
    .usage = "dense WIDTH",
    .parse = dense_parse,
    .shape = dense_shape,
    .params = dense_params,
    .needs = dense_needs,
    .forward = dense_forward,
    .backward = dense_backward,
    .forward_jvp = dense_forward_jvp,
    .backward_jvp = dense_backward_jvp,
    .init = dense_init,
    .import = dense_import,
    .export = dense_export,
};
