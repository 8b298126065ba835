/* The residual of lossy codecs (codec_residual.h). */
#include "libfl/strategy/codec/codec_residual.h"

#include <math.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec_impl.h"

/* Floats decoded at a time, on the stack. */
#define BLOCK 2048

struct options {
    struct fl_codec_loss loss;
};

const struct fl_opt_spec fl__codec_loss_options[] = {FL__CODEC_RESIDUAL_OPTIONS(struct options),
                                                     FL_OPT_END_OF(struct options)};

static const struct fl_codec_loss *loss_of(const struct fl_options *o)
{
    return fl_options_values(o);
}

bool fl_codec_keeps_residual(const struct fl_codec_ops *ops, const struct fl_options *o)
{
    return ops->lossy && loss_of(o)->residual;
}

/* The codec's input for n trainable entries, computed in double and rounded once. */
static void add_residual(float *input, const float *delta, const float *residual, double decay,
                         size_t n)
{
    size_t i;

    for (i = 0; i < n; i++) {
        float sum = (float)((double)delta[i] + decay * (double)residual[i]);

        input[i] = isfinite(sum) ? sum : delta[i];
    }
}

/*
 * Turn the codec's input into the residual: 0 in buffers, which are exact. The result is finite:
 * a codec keeps the sign or decodes to 0, so no difference is larger than both values.
 */
static int take_decoded(struct fl_codec_decoder *d, float *input)
{
    size_t count = fl_layout_unit(d->layout, d->unit)->count;
    float block[BLOCK];

    while (count > 0) {
        size_t n = count < BLOCK ? count : BLOCK;
        int rv = d->ops->read(d, block, n);

        if (rv != FL_OK) {
            return rv;
        }
        fl_vec_sub(input, input, block, n);
        input += n;
        count -= n;
    }
    return d->ops->close(d);
}

int fl_residual_encode(const struct fl_codec_ops *ops, const struct fl_options *o,
                       const struct fl_layout *layout, size_t l, const struct fl_unit_update *in,
                       struct fl_buf *out)
{
    struct fl_codec_memory memory;
    struct fl_codec_reader reader;
    struct fl_codec_decoder d;
    size_t before = out->len;
    double decay = loss_of(o)->decay;
    size_t tensor = 0;
    size_t at = 0;
    size_t count;
    bool buffer;
    int rv;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        if (buffer || in->residual == NULL) {
            (void)memcpy(in->residual_new + at, in->delta + at, count * sizeof(*in->residual_new));
        } else {
            add_residual(in->residual_new + at, in->delta + at, in->residual + at, decay, count);
        }
        at += count;
    }
    rv = ops->encode(o, layout, l, in->residual_new, in->seed, out);
    if (rv != FL_OK) {
        return rv;
    }
    memory = (struct fl_codec_memory){.data = out->data + before, .len = out->len - before};
    reader = fl_codec_memory_reader(&memory);
    rv = fl_codec_open(&d, ops, layout, l, &reader);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = take_decoded(&d, in->residual_new);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    out->len = before;
    return rv;
}
