/*
 * codec: float16
 *
 *     2 d_l bytes   trainable entries as IEEE 754 binary16, little-endian
 *     4 s_l bytes   buffers as binary32, little-endian
 *
 * Rounded to nearest, ties to even, small values to subnormals and to zero with their sign. Values
 * that would round beyond 65504 become 65504 with their sign, so that one large entry does not
 * reject an update. Options: residual, decay. Cost: 2 bytes per entry.
 */
#include <math.h>

#include "libfl/strategy/codec/codec_impl.h"

#define LARGEST 0x7bffu /* 65504 */

uint16_t fl__float16_of(uint32_t bits)
{
    uint32_t sign = bits >> 16 & 0x8000u;
    uint32_t exponent = bits >> 23 & 0xffu;
    uint32_t fraction = bits & 0x7fffffu;
    uint32_t shift = 13;
    uint32_t value; /* exponent and fraction, in units of the last place to be kept */
    uint32_t rest;

    if (exponent >= 113) {
        value = (exponent - 112) << 23 | fraction;
    } else if (exponent >= 102) {
        /* Subnormal: units of 2^-24. */
        value = fraction | 0x800000u;
        shift = 126 - exponent;
    } else {
        return (uint16_t)sign; /* below half of the smallest subnormal */
    }
    rest = value & ((UINT32_C(1) << shift) - 1);
    value >>= shift;
    if (rest > UINT32_C(1) << (shift - 1) ||
        (rest == UINT32_C(1) << (shift - 1) && (value & 1) != 0)) {
        value++; /* A carry into the exponent gives the next power of two, as required. */
    }
    return (uint16_t)(sign | (value < LARGEST ? value : LARGEST));
}

int fl__float16_value(uint16_t half, float *ret)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t exponent = half >> 10 & 0x1fu;
    uint32_t fraction = half & 0x3ffu;

    if (exponent == 31) {
        return FL_ENUMERIC;
    }
    if (exponent > 0) {
        *ret = fl__float_of(sign | (exponent + 112) << 23 | fraction << 13);
    } else {
        float x = (float)fraction * 0x1p-24f; /* exact */

        *ret = sign != 0 ? -x : x;
    }
    return FL_OK;
}

float fl__float16_nearest(float x)
{
    float near = 0;

    /* Never infinite, so it has a value. */
    FL_REQUIRE(fl__float16_value(fl__float16_of(fl__float_bits(x)), &near) == FL_OK);
    return near;
}

static int float16_encode_body(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                               struct fl_buf *out)
{
    (void)o;
    (void)seed;
    return fl__half_encode(x, n, fl__float16_of, out);
}

static int float16_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                          const float *delta, uint64_t seed, struct fl_buf *out)
{
    return fl__codec_encode(o, layout, l, delta, seed, float16_encode_body, out);
}

static int float16_read_body(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__half_read(d, out, n, fl__float16_value);
}

static int float16_read_entries(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__codec_read(d, out, n, float16_read_body);
}

/*
 * An entry is off by 2^-11 of itself, or by half of 2^-24 when it is small. One that became 65504
 * may have been of any size, but then the norm is no smaller.
 */
void fl__float16_bounds(double norm, size_t n, double *ret_low, double *ret_high)
{
    double tiny = 0x1p-25 * sqrt((double)n);

    *ret_low = (norm - tiny) / (1 + 0x1p-11);
    *ret_high = norm < 65503.0 ? (norm + tiny) / (1 - 0x1p-11) : (double)INFINITY;
}

static void float16_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                           double *ret_high)
{
    fl__float16_bounds(norm, fl__coded_trainable(d), ret_low, ret_high);
}

const struct fl_codec_ops fl_codec_float16 = {
    .policy =
        {
            .name = "float16",
            .help = "16-bit numbers with 11 significant bits, at most 65504",
            .source = "IEEE 754 binary16; ours",
            .options = fl__codec_loss_options,
        },
    .id = FL_CODEC_FLOAT16,
    .lossy = true,
    .encode = float16_encode,
    .max_size = fl__half_max_size,
    .open = fl__half_open,
    .read = float16_read_entries,
    .close = fl__codec_close,
    .bounds = float16_bounds,
};
