#include <math.h>
#include <string.h>

#include "libfl/nn/layer.h"

/*
 * "dropout RATE": in training each number becomes zero with that probability and is scaled by 1 /
 * (1 - RATE) otherwise (inverted dropout); evaluation skips the layer.
 *
 * Masks are drawn sample by sample, within a sample pixel by pixel and channel by channel, two from
 * each word of the generator, the low half first: they depend only on its seed and on the earlier
 * draws.
 */

static int dropout_parse(struct fl__layer *layer, const char *args, struct fl_err *err)
{
    double rate;

    if (fl_str_to_double(args, &rate) != FL_OK || !(rate >= 0.0 && rate < 1.0)) {
        return fl_err_set(err, FL_ECONF, "RATE must be a number of at least 0 and below 1");
    }
    layer->is.rate = rate;
    return FL_OK;
}

static int dropout_shape(struct fl__layer *layer, struct fl__layer *next, struct fl_err *err)
{
    (void)next;
    (void)err;
    layer->out = layer->in;
    layer->n_index = fl__shape_count(&layer->in);
    return FL_OK;
}

static void dropout_draw_mask(uint8_t *mask, size_t n, double rate, struct fl_rng *rng)
{
    /* Draws below the limit are dropped; rate < 1 keeps it below 2^32. */
    uint32_t limit = (uint32_t)fmin(ceil(rate * 4294967296.0), 4294967295.0);
    size_t i;

    for (i = 0; i < n; i += 2) {
        uint64_t word = fl_rng_u64(rng);

        mask[i] = (uint32_t)word >= limit;
        if (i + 1 < n) {
            mask[i + 1] = (uint32_t)(word >> 32) >= limit;
        }
    }
}

static void apply_mask(float *restrict y, const float *restrict x, const uint8_t *restrict mask,
                       size_t n, float scale)
{
    size_t i;

    for (i = 0; i < n; i++) {
        y[i] = mask[i] != 0 ? x[i] * scale : 0.0f;
    }
}

static void dropout_forward(const struct fl__layer *layer, const struct fl__pass *pass,
                            const struct fl__io *io)
{
    size_t n = layer->n_index;
    float scale = (float)(1.0 / (1.0 - layer->is.rate));
    size_t b;

    for (b = 0; b < pass->batch; b++) {
        dropout_draw_mask(io->index + b * n, n, layer->is.rate, pass->rng);
        apply_mask(io->y + b * io->ldy, io->x + b * io->ldx, io->index + b * n, n, scale);
    }
}

static void dropout_backward(const struct fl__layer *layer, const struct fl__pass *pass,
                             const struct fl__io *io)
{
    size_t n = layer->n_index;
    float scale = (float)(1.0 / (1.0 - layer->is.rate));
    size_t b;

    for (b = 0; b < pass->batch && io->dx != NULL; b++) {
        float *dx = io->dx + b * io->lddx;

        apply_mask(dx, io->dy + b * io->ldy, io->index + b * n, n, scale);
        (void)memset(dx + n, 0, (io->lddx - n) * sizeof(*dx));
    }
}

/* Uses the mask of forward. */
static void dropout_forward_jvp(const struct fl__layer *layer, const struct fl__pass *pass,
                                const struct fl__io *io, const struct fl__jvp *along)
{
    size_t n = layer->n_index;
    float scale = (float)(1.0 / (1.0 - layer->is.rate));
    size_t b;

    for (b = 0; b < pass->batch; b++) {
        apply_mask(along->ry + b * io->ldy, along->rx + b * io->ldx, io->index + b * n, n, scale);
    }
}

/* Only the mask is needed. */
static struct fl__needs dropout_needs(const struct fl__layer *layer)
{
    (void)layer;
    return (struct fl__needs){.x = false};
}

const struct fl__layer_ops fl__layer_dropout = {
    .word = "dropout",
    .usage = "dropout RATE",
    .training_only = true,
    .parse = dropout_parse,
    .shape = dropout_shape,
    .needs = dropout_needs,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .forward_jvp = dropout_forward_jvp,
    .backward_jvp = fl__layer_backward_twice,
};
