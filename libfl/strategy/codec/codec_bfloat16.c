/*
 * codec: bfloat16
 *
 *     2 d_l bytes   trainable entries: the upper half of a binary32, little-endian
 *     4 s_l bytes   buffers as binary32, little-endian
 *
 * Rounded to nearest, ties to even. Values that would round beyond the largest finite value
 * (0x7f7f, 3.39e38) become that value with their sign. Options: residual, decay. Cost: 2 bytes per
 * entry; the range of float32 with 8 significant bits.
 */
#include <math.h>

#include "libfl/strategy/codec/codec_impl.h"

#define LARGEST 0x7f7fu

static uint16_t bfloat16_from_bits(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t value = bits & 0x7fffffffu;

    /* Add half of the last place minus one, plus one when it is odd: ties to even. */
    value = (value + 0x7fffu + (value >> 16 & 1u)) >> 16;
    return (uint16_t)(sign | (value < LARGEST ? value : LARGEST));
}

static int bfloat16_to_float(uint16_t half, float *ret)
{
    if ((half & 0x7f80u) == 0x7f80u) {
        return FL_ENUMERIC;
    }
    *ret = fl__float_of((uint32_t)half << 16);
    return FL_OK;
}

static int bfloat16_encode_body(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                                struct fl_buf *out)
{
    (void)o;
    (void)seed;
    return fl__half_encode(x, n, bfloat16_from_bits, out);
}

static int bfloat16_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                           const float *delta, uint64_t seed, struct fl_buf *out)
{
    return fl__codec_encode(o, layout, l, delta, seed, bfloat16_encode_body, out);
}

static int bfloat16_read_body(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__half_read(d, out, n, bfloat16_to_float);
}

static int bfloat16_read_entries(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__codec_read(d, out, n, bfloat16_read_body);
}

/* An entry is off by 2^-8 of itself, the largest ones included; or by half of 2^-133. */
static void bfloat16_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                            double *ret_high)
{
    double tiny = 0x1p-134 * sqrt((double)fl__coded_trainable(d));

    *ret_low = (norm - tiny) / (1 + 0x1p-8);
    *ret_high = (norm + tiny) / (1 - 0x1p-8);
}

const struct fl_codec_ops fl_codec_bfloat16 = {
    .policy =
        {
            .name = "bfloat16",
            .help = "16-bit numbers with 8 significant bits and the range of float32",
            .source = "ours",
            .options = fl__codec_loss_options,
        },
    .id = FL_CODEC_BFLOAT16,
    .lossy = true,
    .encode = bfloat16_encode,
    .max_size = fl__half_max_size,
    .open = fl__half_open,
    .read = bfloat16_read_entries,
    .close = fl__codec_close,
    .bounds = bfloat16_bounds,
};
