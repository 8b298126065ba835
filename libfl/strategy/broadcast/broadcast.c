/*
 * broadcast: float32, float16 (docs/algorithms.md#broadcast)
 *
 *     float16: B' = nearest(B + rest + step), rest' = B + rest + step - B'
 *
 * where nearest() rounds to IEEE 754 binary16 (codec_float16.c). Options: none. State of float16:
 * `rest`, one model-sized vector. Cost: 4 and 2 bytes per entry of each download.
 */
#include "libfl/strategy/broadcast/broadcast.h"

#include <string.h>

#include "libfl/strategy/broadcast/versions.h"
#include "libfl/strategy/codec/codec_impl.h"

static void float16_place(const struct fl_options *o, float *model, size_t n)
{
    size_t i;

    (void)o;
    for (i = 0; i < n; i++) {
        model[i] = fl__float16_nearest(model[i]);
    }
}

static void float16_move(const struct fl_options *o, const struct fl_broadcast_block *block)
{
    size_t i;

    (void)o;
    for (i = 0; i < block->n; i++) {
        double all = (double)block->model[i] + (double)block->rest[i] + block->step[i];
        float near = fl__float16_nearest((float)all);

        block->model_new[i] = near;
        block->rest_new[i] = (float)(all - (double)near);
    }
}

const struct fl_broadcast_ops fl_broadcast_float32 = {
    .policy =
        {
            .name = "float32",
            .help = "the model as exact 32-bit numbers",
            .source = "FedAvg",
            .options = fl_opt_none,
        },
    .codec = &fl_codec_float32,
};

const struct fl_broadcast_ops fl_broadcast_float16 = {
    .policy =
        {
            .name = "float16",
            .help = "a model of 16-bit numbers; the rest of each step stays on the server",
            .source = "IEEE 754 binary16; ours",
            .options = fl_opt_none,
        },
    .codec = &fl_codec_float16,
    .move = float16_move,
    .place = float16_place,
};

int fl_broadcast_place(const struct fl_broadcast_ops *ops, const struct fl_options *options,
                       const struct fl_layout *layout, float *model, struct fl_err *err)
{
    size_t l;

    for (l = 0; ops->place != NULL && l < fl_layout_units(layout); l++) {
        size_t offset = fl_layout_unit(layout, l)->offset;
        size_t tensor = 0;
        size_t count;
        bool buffer;

        while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
            if (!buffer) {
                ops->place(options, model + offset, count);
            }
            offset += count;
        }
    }
    return ops->sends_moves ? fl_versions_check(layout, model, err) : FL_OK;
}

/* All codecs here have one size for a unit, whatever its values. */
static uint64_t broadcast_unit_bytes(const struct fl_broadcast_ops *ops,
                                     const struct fl_layout *layout, size_t l)
{
    return ops->codec->max_size(layout, l);
}

uint64_t fl_broadcast_bytes(const struct fl_broadcast_ops *ops, const struct fl_layout *layout)
{
    uint64_t bytes = 0;
    size_t l;

    for (l = 0; l < fl_layout_units(layout); l++) {
        bytes += broadcast_unit_bytes(ops, layout, l);
    }
    return bytes;
}

int fl_broadcast_encode(const struct fl_broadcast_ops *ops, const struct fl_layout *layout,
                        const float *model, uint8_t *out)
{
    struct fl_buf coded;
    size_t l;
    int rv = FL_OK;

    fl_buf_init(&coded, SIZE_MAX);
    for (l = 0; l < fl_layout_units(layout); l++) {
        fl_buf_clear(&coded);
        rv = ops->codec->encode(NULL, layout, l, model + fl_layout_unit(layout, l)->offset, 0,
                                &coded);
        if (rv != FL_OK) {
            break;
        }
        FL_REQUIRE(coded.len == broadcast_unit_bytes(ops, layout, l));
        (void)memcpy(out, coded.data, coded.len);
        out += coded.len;
    }
    fl_buf_done(&coded);
    return rv;
}

static int broadcast_decode_unit(const struct fl_broadcast_ops *ops, const struct fl_layout *layout,
                                 size_t l, struct fl_codec_memory memory, float *out)
{
    struct fl_codec_reader reader = fl_codec_memory_reader(&memory);
    struct fl_codec_decoder decoder;
    int rv = fl_codec_open(&decoder, ops->codec, layout, l, &reader);

    if (rv != FL_OK) {
        return rv;
    }
    rv = ops->codec->read(&decoder, out, fl_layout_unit(layout, l)->count);
    if (rv != FL_OK) {
        return rv;
    }
    return ops->codec->close(&decoder);
}

int fl_broadcast_decode(const struct fl_broadcast_ops *ops, const struct fl_layout *layout,
                        const uint8_t *data, float *model, struct fl_err *err)
{
    size_t l;

    for (l = 0; l < fl_layout_units(layout); l++) {
        const struct fl_unit *unit = fl_layout_unit(layout, l);
        struct fl_codec_memory memory = {data, (size_t)broadcast_unit_bytes(ops, layout, l)};
        int rv = broadcast_decode_unit(ops, layout, l, memory, model + unit->offset);

        if (rv != FL_OK) {
            return fl_err_set(err, rv, "unit '%s' of the model, coded as %s: %s", unit->name,
                              ops->policy.name, fl_strerror(rv));
        }
        data += memory.len;
    }
    return FL_OK;
}
