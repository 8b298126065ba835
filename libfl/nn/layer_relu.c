#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"

/* max(x, 0). Fused into a directly preceding layer with weights (skip). */

static int relu_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    (void)err;
    layer->out = layer->in;
    return FL_OK;
}

static void relu_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io)
{
    size_t n = fl__shape_count(&layer->in);
    size_t b;
    size_t j;

    for (b = 0; b < pass->batch; b++) {
        for (j = 0; j < n; j++) {
            float v = io->x[b * io->ldx + j];

            io->y[b * io->ldy + j] = v < 0.0f ? 0.0f : v;
        }
    }
}

static void relu_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                          const struct fl__io *io)
{
    size_t n = fl__shape_count(&layer->in);
    size_t b;
    size_t j;

    if (io->dx == NULL) {
        return;
    }
    for (b = 0; b < pass->batch; b++) {
        for (j = 0; j < io->lddx; j++) {
            io->dx[b * io->lddx + j] =
                j < n && io->y[b * io->ldy + j] > 0.0f ? io->dy[b * io->ldy + j] : 0.0f;
        }
    }
}

static void relu_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io, const struct fl__jvp *along)
{
    size_t n = fl__shape_count(&layer->in);
    size_t b;

    for (b = 0; b < pass->batch; b++) {
        (void)memcpy(along->ry + b * io->ldy, along->rx + b * io->ldx, n * sizeof(float));
    }
    fl_relu_backward(layer->kernels, along->ry, io->ldy, io->y, io->ldy, pass->batch, n);
}

static struct fl__needs relu_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.y = true};
}

const struct fl__layer_ops fl__layer_relu = {
    .word = "relu",
    .usage = "relu",
    .parse = fl__layer_no_args,
    .shape = relu_shape,
    .needs = relu_needs,
    .forward = relu_forward,
    .backward = relu_backward,
    .forward_jvp = relu_forward_jvp,
    .backward_jvp = fl__layer_backward_twice,
};
