/*
 * Residual blocks: "block" … "add" adds the input of the block to the output of the layers between
 * them; "block" … "shortcut" … "add" adds the outputs of two branches that both start from the
 * input of the block (He et al. 2016, equations 1 and 2). "block" and "shortcut" compute nothing,
 * the network links the views (net_graph.c). "add" also computes a following ReLU. Runs on the
 * network's thread.
 */
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/dense.h"

static int view_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    (void)err;
    layer->out = layer->in;
    layer->skip = true;
    return FL_OK;
}

static int add_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    const struct fl__shape *a = &layer->in;
    const struct fl__shape *b = &layer->in2;

    if (a->c != b->c || a->h != b->h || a->w != b->w) {
        return fl_err_set(err, FL_ECONF,
                          "its inputs have the shapes %zux%zux%zu and %zux%zux%zu, expected the "
                          "same; put 'shortcut' and a 'conv CHANNELS 1x1 stride N' before it",
                          b->c, b->h, b->w, a->c, a->h, a->w);
    }
    if (a->flat != b->flat || a->pixels != b->pixels) {
        return fl_err_set(err, FL_ECONF,
                          "one of its inputs is a flattened image and the other is not, expected "
                          "both; put 'flatten' before 'block' or after 'add'");
    }
    layer->out = layer->in;
    if (next != NULL && next->ops == &fl__layer_relu) {
        layer->relu = true;
        next->skip = true;
    }
    return FL_OK;
}

/* y = a + b, then max(y, 0) when `relu`; NaN stays NaN. */
static void add_sum(float *restrict y, const float *restrict a, const float *restrict b, size_t n,
                    bool relu)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] = a[i] + b[i];
    }
    for (i = 0; relu && i < n; i++) {
        y[i] = y[i] < 0.0f ? 0.0f : y[i];
    }
}

/* Numbers whose sum stays in the L1 cache until ReLU reads it. */
#define ADD_RUN ((size_t)1024)

static void add_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                        const struct fl__io *io)
{
    size_t n = fl__shape_count(&layer->out);
    size_t b, i;

    for (b = 0; b < pass->batch; b++) {
        for (i = 0; i < n; i += ADD_RUN) {
            add_sum(io->y + b * io->ldy + i, io->x + b * io->ldx + i, io->x2 + b * io->ldx2 + i,
                    n - i < ADD_RUN ? n - i : ADD_RUN, layer->relu);
        }
    }
}

static void add_hand_on(float *to, size_t ld, const float *dy, size_t lddy, size_t n, size_t batch)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        (void)memcpy(to + b * ld, dy + b * lddy, n * sizeof(*to));
        (void)memset(to + b * ld + n, 0, (ld - n) * sizeof(*to));
    }
}

/* Both inputs have the gradient of the output, before ReLU. */
static void add_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io)
{
    size_t n = fl__shape_count(&layer->out);

    if (layer->relu && !layer->masked) {
        fl_relu_backward(layer->kernels, io->dy, io->ldy, io->y, io->ldy, pass->batch, n);
    }
    if (io->dx != NULL) {
        add_hand_on(io->dx, io->lddx, io->dy, io->ldy, n, pass->batch);
    }
    if (io->dx2 != NULL && io->add_dx2) {
        fl__layer_accumulate(io->dx2, io->dy, io->ldy, n, pass->batch);
    } else if (io->dx2 != NULL) {
        add_hand_on(io->dx2, io->lddx2, io->dy, io->ldy, n, pass->batch);
    }
}

/* The tangent of an input is NULL when it is zero, but not of both. */
static void add_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io, const struct fl__jvp *along)
{
    bool first = along->rx != NULL;
    size_t n = fl__shape_count(&layer->out);
    size_t b;

    for (b = 0; b < pass->batch; b++) {
        const float *from = first ? along->rx + b * io->ldx : along->rx2 + b * io->ldx2;
        float *to = along->ry + b * io->ldy;
        size_t i;

        (void)memcpy(to, from, n * sizeof(*to));
        for (i = 0; first && along->rx2 != NULL && i < n; i++) {
            to[i] += along->rx2[b * io->ldx2 + i];
        }
    }
    if (layer->relu) {
        fl_relu_backward(layer->kernels, along->ry, io->ldy, io->y, io->ldy, pass->batch, n);
    }
}

/* In passes along a direction the mask of ReLU is applied forward too. */
static struct fl__needs add_needs(const struct fl__layer *layer)
{
    return (struct fl__needs){.y = layer->relu && !layer->masked};
}

const struct fl__layer_ops fl__layer_block = {
    .word = "block",
    .usage = "block",
    .branch = FL__BRANCH_OPEN,
    .parse = fl__layer_no_args,
    .shape = view_shape,
};

const struct fl__layer_ops fl__layer_shortcut = {
    .word = "shortcut",
    .usage = "shortcut",
    .branch = FL__BRANCH_SHORTCUT,
    .parse = fl__layer_no_args,
    .shape = view_shape,
};

const struct fl__layer_ops fl__layer_add = {
    .word = "add",
    .usage = "add",
    .branch = FL__BRANCH_CLOSE,
    .parse = fl__layer_no_args,
    .shape = add_shape,
    .needs = add_needs,
    .forward = add_forward,
    .backward = add_backward,
    .forward_jvp = add_forward_jvp,
    .backward_jvp = fl__layer_backward_twice,
};
