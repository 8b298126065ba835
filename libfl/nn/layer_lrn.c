#include "libfl/nn/layer.h"

/* "lrn": local response normalisation across channels, with fixed constants (libfl/num/norm.h). */

static int lrn_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    layer->out = layer->in;
    layer->n_scratch = fl_lrn_scratch(layer->in.c);
    layer->n_jvp = fl_lrn_scratch_jvp(layer->in.c);
    return fl__layer_need_image(layer, err);
}

static void lrn_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                        const struct fl__io *io)
{
    fl_lrn_forward(io->y, io->ldy, io->x, io->ldx, layer->in.c, layer->in.h * layer->in.w,
                   pass->batch, pass->scratch);
}

static void lrn_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io)
{
    if (io->dx != NULL) {
        fl_lrn_backward(io->dx, io->lddx, io->dy, io->ldy, io->x, io->ldx, layer->in.c,
                        layer->in.h * layer->in.w, pass->batch, pass->scratch);
    }
}

static void lrn_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io, const struct fl__jvp *along)
{
    fl_lrn_forward_jvp(along->ry, io->ldy, along->rx, io->x, io->ldx, layer->in.c,
                       layer->in.h * layer->in.w, pass->batch, pass->scratch);
}

static void lrn_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io, const struct fl__jvp *along)
{
    size_t pixels = layer->in.h * layer->in.w;

    if (io->dx != NULL) {
        fl_lrn_backward(along->sx, io->lddx, along->sy, io->ldy, io->x, io->ldx, layer->in.c,
                        pixels, pass->batch, pass->scratch);
        fl_lrn_backward_jvp(io->dx, io->lddx, io->dy, along->sy, io->ldy, along->rx, io->x, io->ldx,
                            layer->in.c, pixels, pass->batch, pass->scratch);
    }
}

static struct fl__needs lrn_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.x = true};
}

const struct fl__layer_ops fl__layer_lrn = {
    .word = "lrn",
    .usage = "lrn",
    .parse = fl__layer_no_args,
    .shape = lrn_shape,
    .needs = lrn_needs,
    .forward = lrn_forward,
    .backward = lrn_backward,
    .forward_jvp = lrn_forward_jvp,
    .backward_jvp = lrn_backward_jvp,
};
