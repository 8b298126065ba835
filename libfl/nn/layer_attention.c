/*
 * "attention HEADS [causal]": multi-head self-attention over the positions of a sequence, whose
 * channels HEADS divides; the output has the shape of the input. Exported like PyTorch's
 * in_proj_weight[3 d][d], in_proj_bias[3 d], out_proj.weight[d][d] and out_proj.bias[d]; internally
 * with transposed weights, each tensor padded to 16 floats (libfl/num/attention.h). Runs on the
 * network's thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/attention.h"
#include "libfl/num/conv.h"

enum { W_IN, B_IN, W_OUT, B_OUT, N_TENSORS };

#define HEADS_MAX    1024
#define STEPS_MAX    4096
#define CHANNELS_MAX 8192

/* Rows and columns of a tensor in the internal order. */
static size_t attention_inputs(const struct fl__layer *layer, size_t which)
{
    return which == W_IN || which == W_OUT ? layer->in.c : 1;
}

static size_t attention_outputs(const struct fl__layer *layer, size_t which)
{
    return which <= B_IN ? 3 * layer->in.c : layer->in.c;
}

static size_t attention_count(const struct fl__layer *layer, size_t which)
{
    return attention_inputs(layer, which) * attention_outputs(layer, which);
}

static size_t attention_offset(const struct fl__layer *layer, size_t which)
{
    size_t at = layer->offset;
    size_t i;

    for (i = 0; i < which; i++) {
        at += fl__layer_padded(attention_count(layer, i));
    }
    return at;
}

static int attention_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    uint64_t heads;
    char word[16];

    if (!fl__layer_word(&args, word, sizeof(word)) || fl_str_to_u64(word, &heads) != FL_OK ||
        heads == 0 || heads > HEADS_MAX)
    {
        return fl_err_set(err, FL_ECONF, "HEADS must be an integer from 1 to %d", HEADS_MAX);
    }
    layer->is.attention.heads = (size_t)heads;
    layer->is.attention.causal = fl__layer_word(&args, word, sizeof(word));
    if (layer->is.attention.causal &&
        (strcmp(word, "causal") != 0 || fl__layer_word(&args, word, sizeof(word))))
    {
        return fl_err_set(err, FL_ECONF, "'%s' is not 'causal', the last word", word);
    }
    return FL_OK;
}

static struct fl_self_attention attention_of(const struct fl__layer *layer, const float *params)
{
    struct fl_self_attention at = layer->is.attention;

    at.d = layer->in.c;
    at.steps = layer->in.h * layer->in.w;
    if (params != NULL) {
        at.w_in = params + attention_offset(layer, W_IN);
        at.b_in = params + attention_offset(layer, B_IN);
        at.w_out = params + attention_offset(layer, W_OUT);
        at.b_out = params + attention_offset(layer, B_OUT);
    }
    return at;
}

static int attention_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    const struct fl_self_attention at = attention_of(layer, NULL);
    size_t evaluation, training;

    (void)next;
    if (layer->in.flat) {
        return fl_err_set(err, FL_ECONF,
                          "needs a sequence, as of 'embedding', but its input is a flat row of %zu "
                          "numbers",
                          layer->in.c);
    }
    if (at.d % at.heads != 0) {
        return fl_err_set(err, FL_ECONF, "HEADS is %zu, expected a divisor of the %zu channels",
                          at.heads, at.d);
    }
    if (at.steps > STEPS_MAX || at.d > CHANNELS_MAX) {
        return fl_err_set(err, FL_ECONF,
                          "the sequence has %zu positions of %zu channels, expected at most %d of "
                          "%d",
                          at.steps, at.d, STEPS_MAX, CHANNELS_MAX);
    }
    layer->out = layer->in;
    evaluation = fl_attention_state(&at);
    training = layer->max_batch > 0 ? fl_attention_scratch(&at) : 0;
    layer->n_scratch = evaluation > training ? evaluation : training;
    layer->n_jvp = layer->max_batch > 0 ? fl_attention_jvp_scratch(&at) : 0;
    layer->n_state = layer->max_batch * fl_attention_state(&at);
    return FL_OK;
}

static int attention_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                            struct fl_err *err)
{
    static const char *const names[N_TENSORS] = {"in_proj_weight", "in_proj_bias",
                                                 "out_proj.weight", "out_proj.bias"};
    double steps = (double)(layer->in.h * layer->in.w);
    char unit[32];
    char tensor[64];
    size_t i;

    layer->tensor = fl_layout_tensors(layout);
    (void)snprintf(unit, sizeof(unit), "attention%zu", index);
    for (i = 0; i < N_TENSORS; i++) {
        const size_t dims[2] = {attention_outputs(layer, i), layer->in.c};
        int rv;

        (void)snprintf(tensor, sizeof(tensor), "%s.%s", unit, names[i]);
        rv = fl_layout_add(layout, unit, tensor, dims, i == W_IN || i == W_OUT ? 2 : 1, false, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    layer->n_block = attention_offset(layer, N_TENSORS) - layer->offset;
    layer->macs = steps * (double)layer->in.c * (4.0 * (double)layer->in.c + 2.0 * steps);
    return FL_OK;
}

static void attention_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io)
{
    const struct fl_self_attention at = attention_of(layer, pass->params);

    fl_attention_forward(layer->kernels, &at, io->y, io->ldy, io->x, io->ldx, pass->batch,
                         pass->training, pass->training ? layer->state : pass->scratch);
}

struct attention_updates {
    const struct fl__layer *layer;
    const struct fl__pass *pass;
};

static void attention_update(void *ctx, int part, const float *grad)
{
    const struct attention_updates *u = ctx;
    size_t at = attention_offset(u->layer, (size_t)part);

    u->pass->update(u->pass->ctx, at, attention_count(u->layer, (size_t)part), u->pass->params + at,
                    grad);
}

static void attention_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                               const struct fl__io *io)
{
    const struct fl_self_attention at = attention_of(layer, pass->params);
    struct attention_updates updates = {.layer = layer, .pass = pass};
    const struct fl_attention_backward to = {.batch = pass->batch,
                                             .x = io->x,
                                             .dy = io->dy,
                                             .ldx = io->ldx,
                                             .ldy = io->ldy,
                                             .dx = io->dx,
                                             .lddx = io->lddx,
                                             .state = layer->state,
                                             .update = attention_update,
                                             .ctx = &updates};

    fl_attention_backward(&at, &to, pass->scratch);
}

static struct fl_attention_jvp attention_jvp(const struct fl__layer *layer,
                                             const struct fl__pass *pass, const struct fl__io *io,
                                             const struct fl__jvp *along)
{
    return (struct fl_attention_jvp){.batch = pass->batch,
                                     .x = io->x,
                                     .rx = along->rx,
                                     .ldx = io->ldx,
                                     .state = layer->state,
                                     .rstate = layer->rstate};
}

static void attention_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                  const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_self_attention at = attention_of(layer, pass->params);
    const struct fl_self_attention direction = attention_of(layer, along->params);
    struct fl_attention_jvp jvp = attention_jvp(layer, pass, io, along);

    jvp.along = along->params != NULL ? &direction : NULL;
    fl_attention_forward_jvp(&at, &jvp, along->ry, io->ldy);
}

static void attention_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                   const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_self_attention at = attention_of(layer, pass->params);
    const struct fl_self_attention direction = attention_of(layer, along->params);
    struct fl_attention_jvp jvp = attention_jvp(layer, pass, io, along);
    struct attention_updates updates = {.layer = layer, .pass = pass};
    const struct fl_attention_streams streams = {.dy = io->dy,
                                                 .sy = along->sy,
                                                 .ldy = io->ldy,
                                                 .dx = io->dx,
                                                 .sx = along->sx,
                                                 .lddx = io->lddx,
                                                 .update = attention_update,
                                                 .ctx = &updates};

    jvp.along = along->params != NULL ? &direction : NULL;
    fl_attention_backward_jvp(&at, &jvp, &streams, pass->scratch);
}

static struct fl__needs attention_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.x = true};
}

/* Uniform in +-1 / sqrt(d) in exported order, as the other layers with weights. */
static void attention_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    double bound = 1.0 / sqrt((double)layer->in.c);
    size_t which, i, j;

    for (which = 0; which < N_TENSORS; which++) {
        size_t n = attention_outputs(layer, which);

        for (j = 0; j < n; j++) {
            for (i = 0; i < attention_inputs(layer, which); i++) {
                fl__layer_draw(rng, bound, internal + attention_offset(layer, which) + i * n + j, 1,
                               1);
            }
        }
    }
}

/* Transpose between [outputs][inputs] and [inputs][outputs]. */
static void attention_move(const struct fl__layer *layer, size_t which, float *to,
                           const float *from, bool import)
{
    size_t rows = attention_inputs(layer, which);
    size_t n = attention_outputs(layer, which);

    /* A sample of n planes of `rows` numbers, or of `rows` planes of n. */
    fl_planes_to_pixels(to, 0, from, 0, 1, import ? n : rows, import ? rows : n);
}

static void attention_import(const struct fl__layer *layer, const struct fl_layout *layout,
                             float *internal, const float *exported)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        attention_move(layer, i, internal + attention_offset(layer, i),
                       exported + fl__layer_tensor(layer, layout, i), /* import= */ true);
    }
}

static void attention_export(const struct fl__layer *layer, const struct fl_layout *layout,
                             float *exported, const float *internal)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        attention_move(layer, i, exported + fl__layer_tensor(layer, layout, i),
                       internal + attention_offset(layer, i), /* import= */ false);
    }
}

const struct fl__layer_ops fl__layer_attention = {
    .word = "attention",
    .usage = "attention HEADS [causal]",
    .parse = attention_parse,
    .shape = attention_shape,
    .params = attention_params,
    .needs = attention_needs,
    .forward = attention_forward,
    .backward = attention_backward,
    .forward_jvp = attention_forward_jvp,
    .backward_jvp = attention_backward_jvp,
    .init = attention_init,
    .import = attention_import,
    .export = attention_export,
};
