/*
 * "lstm UNITS": an LSTM over the positions of a sequence, whose output is the sequence of its
 * hidden states; "last": the last position of a sequence, a flat output. A sequence has the
 * channels of each position where an image has those of a pixel, row by row. Exported like
 * PyTorch's weight_ih[4 units][in], weight_hh[4 units][units] and the sum of both biases;
 * internally the transposes, each padded to 16 floats (libfl/num/lstm.h). Runs on the network's
 * thread.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/nn/layer.h"
#include "libfl/num/conv.h"
#include "libfl/num/lstm.h"

enum { W_X, W_H, BIAS, N_TENSORS };

#define UNITS_MAX 8192

static size_t lstm_rows(const struct fl__layer *layer, size_t which)
{
    return which == W_X ? layer->in.c : which == W_H ? layer->is.width : 1;
}

static size_t lstm_offset(const struct fl__layer *layer, size_t which)
{
    size_t n = 4 * layer->is.width;

    return layer->offset + (which > W_X ? fl__layer_padded(layer->in.c * n) : 0) +
           (which > W_H ? fl__layer_padded(layer->is.width * n) : 0);
}

static int lstm_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    uint64_t units;

    if (fl_str_to_u64(args, &units) != FL_OK || units == 0 || units > UNITS_MAX) {
        return fl_err_set(err, FL_ECONF, "UNITS must be an integer from 1 to %d", UNITS_MAX);
    }
    layer->is.width = (size_t)units;
    return FL_OK;
}

static struct fl_lstm lstm_of(const struct fl__layer *layer, const float *params)
{
    struct fl_lstm lstm = {
        .in = layer->in.c, .h = layer->is.width, .steps = layer->in.h * layer->in.w};

    if (params != NULL) {
        lstm.w_x = params + lstm_offset(layer, W_X);
        lstm.w_h = params + lstm_offset(layer, W_H);
        lstm.b = params + lstm_offset(layer, BIAS);
    }
    return lstm;
}

static int sequence_need(const struct fl__layer *layer, struct fl_err *err)
{
    if (!layer->in.flat) {
        return FL_OK;
    }
    return fl_err_set(err, FL_ECONF,
                      "needs a sequence, as of 'embedding', but its input is a flat row of %zu "
                      "numbers",
                      layer->in.c);
}

static int lstm_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    const struct fl_lstm lstm = lstm_of(layer, NULL);
    int rv = sequence_need(layer, err);
    size_t evaluation, training;

    (void)next;
    if (rv != FL_OK) {
        return rv;
    }
    layer->out = (struct fl__shape){.c = layer->is.width, .h = lstm.steps, .w = 1};
    evaluation = fl_lstm_state(&lstm, FL__NET_PIECE_MAX, false);
    training = layer->max_batch > 0 ? fl_lstm_scratch(&lstm, layer->max_batch) : 0;
    layer->n_scratch = evaluation > training ? evaluation : training;
    layer->n_jvp = layer->max_batch > 0 ? fl_lstm_jvp_scratch(&lstm, layer->max_batch) : 0;
    layer->n_state = layer->max_batch > 0 ? fl_lstm_state(&lstm, layer->max_batch, true) : 0;
    return FL_OK;
}

static int lstm_params(struct fl__layer *layer, struct fl_layout *layout, size_t index,
                       struct fl_err *err)
{
    static const char *const names[N_TENSORS] = {"weight_ih", "weight_hh", "bias"};
    const struct fl_lstm lstm = lstm_of(layer, NULL);
    char unit[32];
    char tensor[48];
    size_t i;

    layer->tensor = fl_layout_tensors(layout);
    (void)snprintf(unit, sizeof(unit), "lstm%zu", index);
    for (i = 0; i < N_TENSORS; i++) {
        const size_t dims[2] = {4 * lstm.h, lstm_rows(layer, i)};
        int rv;

        (void)snprintf(tensor, sizeof(tensor), "%s.%s", unit, names[i]);
        rv = fl_layout_add(layout, unit, tensor, dims, i == BIAS ? 1 : 2, false, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    layer->macs = 4.0 * (double)lstm.h * (double)(lstm.in + lstm.h) * (double)lstm.steps;
    layer->n_block = lstm_offset(layer, BIAS) - layer->offset + fl__layer_padded(4 * lstm.h);
    return FL_OK;
}

static void lstm_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io)
{
    const struct fl_lstm lstm = lstm_of(layer, pass->params);

    fl_lstm_forward(layer->kernels, &lstm, io->y, io->ldy, io->x, io->ldx, pass->batch,
                    pass->training, pass->training ? layer->state : pass->scratch);
}

struct lstm_updates {
    const struct fl__layer *layer;
    const struct fl__pass *pass;
};

static void lstm_update(void *ctx, int part, const float *grad)
{
    const struct lstm_updates *u = ctx;
    size_t at = lstm_offset(u->layer, (size_t)part);

    u->pass->update(u->pass->ctx, at, lstm_rows(u->layer, (size_t)part) * 4 * u->layer->is.width,
                    u->pass->params + at, grad);
}

static void lstm_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                          const struct fl__io *io)
{
    const struct fl_lstm lstm = lstm_of(layer, pass->params);
    struct lstm_updates updates = {.layer = layer, .pass = pass};
    const struct fl_lstm_backward to = {.batch = pass->batch,
                                        .x = io->x,
                                        .y = io->y,
                                        .dy = io->dy,
                                        .ldx = io->ldx,
                                        .ldy = io->ldy,
                                        .dx = io->dx,
                                        .lddx = io->lddx,
                                        .state = layer->state,
                                        .update = lstm_update,
                                        .ctx = &updates};

    fl_lstm_backward(&lstm, &to, pass->scratch);
}

static struct fl_lstm_jvp lstm_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                   const struct fl__io *io, const struct fl__jvp *along)
{
    return (struct fl_lstm_jvp){.batch = pass->batch,
                                .x = io->x,
                                .rx = along->rx,
                                .y = io->y,
                                .ry = along->ry,
                                .ldx = io->ldx,
                                .ldy = io->ldy,
                                .state = layer->state,
                                .rstate = layer->rstate};
}

static void lstm_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_lstm lstm = lstm_of(layer, pass->params);
    const struct fl_lstm direction = lstm_of(layer, along->params);
    struct fl_lstm_jvp jvp = lstm_jvp(layer, pass, io, along);

    jvp.along = along->params != NULL ? &direction : NULL;
    fl_lstm_forward_jvp(&lstm, &jvp, along->ry);
}

static void lstm_backward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                              const struct fl__io *io, const struct fl__jvp *along)
{
    const struct fl_lstm lstm = lstm_of(layer, pass->params);
    const struct fl_lstm direction = lstm_of(layer, along->params);
    struct fl_lstm_jvp jvp = lstm_jvp(layer, pass, io, along);
    struct lstm_updates updates = {.layer = layer, .pass = pass};
    const struct fl_lstm_streams streams = {.dy = io->dy,
                                            .sy = along->sy,
                                            .dx = io->dx,
                                            .sx = along->sx,
                                            .lddx = io->lddx,
                                            .update = lstm_update,
                                            .ctx = &updates};

    jvp.along = along->params != NULL ? &direction : NULL;
    fl_lstm_backward_jvp(&lstm, &jvp, &streams, pass->scratch);
}

static struct fl__needs lstm_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.x = true, .y = true};
}

/* PyTorch's default, in exported order. */
static void lstm_init(const struct fl__layer *layer, struct fl_rng *rng, float *internal)
{
    double bound = 1.0 / sqrt((double)layer->is.width);
    size_t n = 4 * layer->is.width;
    size_t which, i, j;

    for (which = 0; which < N_TENSORS; which++) {
        for (j = 0; j < n; j++) {
            for (i = 0; i < lstm_rows(layer, which); i++) {
                fl__layer_draw(rng, bound, internal + lstm_offset(layer, which) + i * n + j, 1, 1);
            }
        }
    }
}

/* Transpose between [4 units][rows] and [rows][4 units]. */
static void lstm_move(const struct fl__layer *layer, size_t which, float *to, const float *from,
                      bool import)
{
    size_t rows = lstm_rows(layer, which);
    size_t n = 4 * layer->is.width;

    /* A sample of n planes of `rows` numbers, or of `rows` planes of n. */
    fl_planes_to_pixels(to, 0, from, 0, 1, import ? n : rows, import ? rows : n);
}

static void lstm_import(const struct fl__layer *layer, const struct fl_layout *layout,
                        float *internal, const float *exported)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        lstm_move(layer, i, internal + lstm_offset(layer, i),
                  exported + fl__layer_tensor(layer, layout, i), /* import= */ true);
    }
}

static void lstm_export(const struct fl__layer *layer, const struct fl_layout *layout,
                        float *exported, const float *internal)
{
    size_t i;

    for (i = 0; i < N_TENSORS; i++) {
        lstm_move(layer, i, exported + fl__layer_tensor(layer, layout, i),
                  internal + lstm_offset(layer, i), /* import= */ false);
    }
}

const struct fl__layer_ops fl__layer_lstm = {
    .word = "lstm",
    .usage = "lstm UNITS",
    .parse = lstm_parse,
    .shape = lstm_shape,
    .params = lstm_params,
    .needs = lstm_needs,
    .forward = lstm_forward,
    .backward = lstm_backward,
    .forward_jvp = lstm_forward_jvp,
    .backward_jvp = lstm_backward_jvp,
    .init = lstm_init,
    .import = lstm_import,
    .export = lstm_export,
};

/* --- last --- */

static int last_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    layer->out = (struct fl__shape){.c = layer->in.c, .h = 1, .w = 1, .flat = true, .pixels = 1};
    return sequence_need(layer, err);
}

static size_t last_offset(const struct fl__layer *layer)
{
    return fl__shape_count(&layer->in) - layer->in.c;
}

static void last_take(const struct fl__layer *layer, float *to, size_t ldy, const float *from,
                      size_t ldx, size_t batch)
{
    size_t b;

    for (b = 0; b < batch; b++) {
        (void)memcpy(to + b * ldy, from + b * ldx + last_offset(layer), layer->in.c * sizeof(*to));
    }
}

static void last_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                         const struct fl__io *io)
{
    last_take(layer, io->y, io->ldy, io->x, io->ldx, pass->batch);
}

static void last_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                          const struct fl__io *io)
{
    size_t b;

    for (b = 0; io->dx != NULL && b < pass->batch; b++) {
        (void)memset(io->dx + b * io->lddx, 0, io->lddx * sizeof(float));
        (void)memcpy(io->dx + b * io->lddx + last_offset(layer), io->dy + b * io->ldy,
                     layer->in.c * sizeof(float));
    }
}

static void last_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io, const struct fl__jvp *along)
{
    last_take(layer, along->ry, io->ldy, along->rx, io->ldx, pass->batch);
}

static struct fl__needs last_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.x = false};
}

const struct fl__layer_ops fl__layer_last = {
    .word = "last",
    .usage = "last",
    .parse = fl__layer_no_args,
    .shape = last_shape,
    .needs = last_needs,
    .forward = last_forward,
    .backward = last_backward,
    .forward_jvp = last_forward_jvp,
    .backward_jvp = fl__layer_backward_twice,
};
