/*
 * "sigmoid", "tanh" and "gelu": activation functions of each number (libfl/num/act.h). Backward
 * computes the derivative from y, of GELU from x. Runs on the network's thread.
 */
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/act.h"

/* Numbers whose derivatives are computed at a time. */
#define ACT_RUN ((size_t)256)

static enum fl_act act_of(const struct fl__layer *layer)
{
    if (layer->ops == &fl__layer_sigmoid) {
        return FL_ACT_SIGMOID;
    }
    return layer->ops == &fl__layer_tanh ? FL_ACT_TANH : FL_ACT_GELU;
}

static int act_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    (void)err;
    layer->out = layer->in;
    return FL_OK;
}

static void act_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                        const struct fl__io *io)
{
    size_t b;

    for (b = 0; b < pass->batch; b++) {
        fl_act_forward(layer->kernels, act_of(layer), io->y + b * io->ldy, io->x + b * io->ldx,
                       fl__shape_count(&layer->in));
    }
}

/* to = from * the derivative at x. */
static void act_multiply(const struct fl__layer *layer, const struct fl__io *io, size_t b,
                         float *to, const float *from)
{
    size_t n = fl__shape_count(&layer->in);
    float slope[ACT_RUN];
    size_t i, j;

    for (i = 0; i < n; i += ACT_RUN) {
        size_t run = n - i < ACT_RUN ? n - i : ACT_RUN;

        fl_act_slope(layer->kernels, act_of(layer), slope, io->x + b * io->ldx + i,
                     io->y + b * io->ldy + i, run);
        for (j = 0; j < run; j++) {
            to[i + j] = from[i + j] * slope[j];
        }
    }
}

static void act_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io)
{
    size_t n = fl__shape_count(&layer->in);
    size_t b;

    for (b = 0; io->dx != NULL && b < pass->batch; b++) {
        act_multiply(layer, io, b, io->dx + b * io->lddx, io->dy + b * io->ldy);
        (void)memset(io->dx + b * io->lddx + n, 0, (io->lddx - n) * sizeof(float));
    }
}

static void act_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io, const struct fl__jvp *along)
{
    size_t b;

    for (b = 0; b < pass->batch; b++) {
        act_multiply(layer, io, b, along->ry + b * io->ldy, along->rx + b * io->ldx);
    }
}

/* sx = f'(x) sy, dx = f'(x) dy + f''(x) rx sy. */
static void act_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io, const struct fl__jvp *along)
{
    bool gelu = act_of(layer) == FL_ACT_GELU;
    size_t n = fl__shape_count(&layer->in);
    float bend[ACT_RUN];
    size_t b, i, j;

    if (io->dx == NULL) {
        return;
    }
    fl__layer_backward_twice(layer, pass, io, along);
    for (b = 0; b < pass->batch; b++) {
        const float *at = gelu ? io->x + b * io->ldx : io->y + b * io->ldy;
        const float *move = gelu ? along->rx + b * io->ldx : along->ry + b * io->ldy;

        for (i = 0; i < n; i += ACT_RUN) {
            size_t run = n - i < ACT_RUN ? n - i : ACT_RUN;

            fl_act_bend(act_of(layer), bend, at + i, move + i, run);
            for (j = 0; j < run; j++) {
                io->dx[b * io->lddx + i + j] += bend[j] * along->sy[b * io->ldy + i + j];
            }
        }
    }
}

static struct fl__needs act_needs(const struct fl__layer *layer)
{
    bool gelu = act_of(layer) == FL_ACT_GELU;

    return (struct fl__needs){.x = gelu, .y = !gelu};
}

#define ACT_LAYER(name)                             \
    const struct fl__layer_ops fl__layer_##name = { \
        .word = #name,                              \
        .usage = #name,                             \
        .parse = fl__layer_no_args,                 \
        .shape = act_shape,                         \
        .needs = act_needs,                         \
        .forward = act_forward,                     \
        .backward = act_backward,                   \
        .forward_jvp = act_forward_jvp,             \
        .backward_jvp = act_backward_jvp,           \
    }

ACT_LAYER(sigmoid);
ACT_LAYER(tanh);
ACT_LAYER(gelu);
