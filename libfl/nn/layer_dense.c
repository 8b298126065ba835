#include <math.h>
#include <stdio.h>

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"

/*
 * "dense WIDTH": y = x W + b. Exported as PyTorch has it, weight[out][in] and bias[out];
 * inside W[in][out], padded to 16 floats, then b, so that the update of a row block is one
 * contiguous range and the kernels run along the outputs (KERNELS 2).
 */

/* Wider layers than any model here, small enough that products stay far from overflow. */
#define WIDTH_MAX (UINT64_C(1) << 20)

static int dense_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    uint64_t width;

    if (fl_str_to_u64(args, &width) != FL_OK || width == 0 || width > WIDTH_MAX) {
        return fl_err_set(err, FL_ECONF, "WIDTH is a whole number from 1 to %llu",
                          (unsigned long long)WIDTH_MAX);
    }
    layer->arg = (size_t)width;
    return FL_OK;
}

static int dense_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    if (!layer->in.flat) {
        return fl_err_set(err, FL_ECONF,
                          "needs a flat input, this one is %zux%zux%zu; put 'flatten' before it",
                          layer->in.c, layer->in.h, layer->in.w);
    }
    layer->out = (struct fl__shape){.c = layer->arg, .h = 1, .w = 1, .flat = true};
    if (next != NULL && next->ops == &fl__layer_relu) {
        layer->relu = true;
        next->skip = true;
    }
    return FL_OK;
}

static size_t bias_offset(const struct fl__layer *layer)
{
    return layer->offset + (layer->in.c * layer->arg + 15) / 16 * 16;
}

static int dense_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                        struct fl_err *err)
{
    const size_t dims[2] = {layer->arg, layer->in.c};
    char unit[32];
    char tensor[48];
    int rv;

    (void)snprintf(unit, sizeof(unit), "fc%zu", index);
    (void)snprintf(tensor, sizeof(tensor), "fc%zu.weight", index);
    rv = fl_layout_add(layout, unit, tensor, dims, 2, false, err);
    if (rv == FL_OK) {
        (void)snprintf(tensor, sizeof(tensor), "fc%zu.bias", index);
        rv = fl_layout_add(layout, unit, tensor, dims, 1, false, err);
    }
    layer->unit = rv == FL_OK ? fl_layout_units(layout) - 1 : 0;
    layer->n_block = (layer->in.c * layer->arg + 15) / 16 * 16 + (layer->arg + 15) / 16 * 16;
    layer->n_scratch = fl_dense_scratch(layer->arg);
    return rv;
}

static void dense_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                          const struct fl__io *io)
{
    fl_dense_forward(io->y, io->ldy, io->x, io->ldx, pass->params + layer->offset,
                     pass->params + bias_offset(layer), pass->batch, layer->in.c, layer->arg,
                     layer->relu);
}

struct weights_update {
    const struct fl__pass *pass;
    size_t offset;
};

static void update_weights(void *ctx, size_t offset, size_t n, const float *grad)
{
    const struct weights_update *u = ctx;
    size_t at = u->offset + offset;

    u->pass->update(u->pass->ctx, at, n, u->pass->params + at, grad);
}

static void dense_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                           const struct fl__io *io)
{
    struct weights_update u = {.pass = pass, .offset = layer->offset};
    size_t in = layer->in.c;
    size_t out = layer->arg;
    size_t at = bias_offset(layer);

    if (layer->relu) {
        fl_relu_backward(io->dy, io->ldy, io->y, io->ldy, pass->batch, out);
    }
    /* Before the update: the gradient of the input belongs to the old weights. */
    if (io->dx != NULL) {
        fl_dense_backward_data(io->dx, io->lddx, io->dy, io->ldy, pass->params + layer->offset,
                               pass->batch, in, out);
    }
    fl_dense_backward_weights(io->x, io->ldx, io->dy, io->ldy, pass->batch, in, out, pass->scratch,
                              update_weights, &u);
    fl_dense_backward_bias(pass->scratch, io->dy, io->ldy, pass->batch, out);
    pass->update(pass->ctx, at, out, pass->params + at, pass->scratch);
}

/* PyTorch's default for linear layers (ALGORITHMS 10), in exported order. */
static void dense_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    float *w = internal + layer->offset;
    float *bias = internal + bias_offset(layer);
    double bound = 1.0 / sqrt((double)layer->in.c);
    size_t i;
    size_t j;

    for (j = 0; j < layer->arg; j++) {
        for (i = 0; i < layer->in.c; i++) {
            w[i * layer->arg + j] = (float)((2.0 * fl_rng_unit(rng) - 1.0) * bound);
        }
    }
    for (j = 0; j < layer->arg; j++) {
        bias[j] = (float)((2.0 * fl_rng_unit(rng) - 1.0) * bound);
    }
}

/* Side of the square in which a transposition works, so that both sides stay in cache. */
#define TILE 32

/* b[c][r] = a[r][c] */
static void transpose(float *b, const float *a, size_t rows, size_t cols)
{
    size_t r0, c0, r, c;

    for (r0 = 0; r0 < rows; r0 += TILE) {
        for (c0 = 0; c0 < cols; c0 += TILE) {
            for (r = r0; r < rows && r < r0 + TILE; r++) {
                for (c = c0; c < cols && c < c0 + TILE; c++) {
                    b[c * rows + r] = a[r * cols + c];
                }
            }
        }
    }
}

static void dense_import(const struct fl__layer *layer, const struct fl_layout *layout,
                         float *internal, const float *exported)
{
    const float *from = exported + fl_layout_unit(layout, layer->unit)->offset;
    size_t n = layer->in.c * layer->arg;
    size_t i;

    transpose(internal + layer->offset, from, layer->arg, layer->in.c);
    for (i = 0; i < layer->arg; i++) {
        internal[bias_offset(layer) + i] = from[n + i];
    }
}

static void dense_export(const struct fl__layer *layer, const struct fl_layout *layout,
                         float *exported, const float *internal)
{
    float *to = exported + fl_layout_unit(layout, layer->unit)->offset;
    size_t n = layer->in.c * layer->arg;
    size_t i;

    transpose(to, internal + layer->offset, layer->in.c, layer->arg);
    for (i = 0; i < layer->arg; i++) {
        to[n + i] = internal[bias_offset(layer) + i];
    }
}

const struct fl__layer_ops fl__layer_dense = {
    .word = "dense",
    .usage = "dense WIDTH",
    .parse = dense_parse,
    .shape = dense_shape,
    .params = dense_params,
    .forward = dense_forward,
    .backward = dense_backward,
    .init = dense_init,
    .import = dense_import,
    .export = dense_export,
};
