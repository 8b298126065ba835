/* Converts float data of safetensors files to float32. */
#include <string.h>

#include "libfl/base/err.h"
#include "libfl/model/st_parse.h"

static float from_bits(uint32_t bits)
{
    float f;

    (void)memcpy(&f, &bits, sizeof(f));
    return f;
}

/* IEEE 754 half precision: 1 sign, 5 exponent, 10 fraction bits. Exact in float. */
static float from_half(uint32_t h)
{
    uint32_t sign = (h & 0x8000u) << 16;
    uint32_t exponent = h >> 10 & 0x1fu;
    uint32_t fraction = h & 0x3ffu;

    if (exponent == 0x1fu) {
        return from_bits(sign | 0x7f800000u | fraction << 13);
    }
    if (exponent != 0) {
        return from_bits(sign | (exponent + 112u) << 23 | fraction << 13);
    }
    /* Zero or subnormal: fraction * 2^-24, a product without rounding. */
    return (float)fraction * (sign != 0 ? -0x1p-24f : 0x1p-24f);
}

static uint32_t get_le16(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

void fl_st_convert(enum fl_st_dtype dtype, float *out, const uint8_t *raw, size_t n)
{
    size_t i;
    double d;

    switch (dtype) {
    case FL_ST_F32:
        (void)memcpy(out, raw, n * sizeof(*out));
        break;
    case FL_ST_F16:
        for (i = 0; i < n; i++) {
            out[i] = from_half(get_le16(raw + 2 * i));
        }
        break;
    case FL_ST_BF16:
        for (i = 0; i < n; i++) {
            out[i] = from_bits(get_le16(raw + 2 * i) << 16);
        }
        break;
    case FL_ST_F64:
        for (i = 0; i < n; i++) {
            (void)memcpy(&d, raw + sizeof(d) * i, sizeof(d));
            out[i] = (float)d;
        }
        break;
    case FL_ST_SKIPPED:
        FL_REQUIRE(dtype != FL_ST_SKIPPED);
        break;
    }
}
