#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/base/rng.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/codec_fixture.h"

/* float16, bfloat16 and int8, and the frame that all lossy codecs share. */

static const struct fl_codec_ops *const lossy[] = {
    &fl_codec_float16, &fl_codec_bfloat16, &fl_codec_int8, &fl_codec_ternary,
    &fl_codec_steps,   &fl_codec_topk,     &fl_codec_qsgd};

static int encode(const struct fl_codec_ops *ops, const struct fl_layout *layout, const float *x,
                  struct fl_buf *out)
{
    struct fl_options *o = options_of(&ops->policy, NULL);
    int rv = ops->encode(o, layout, 0, x, 0, out);

    fl_options_free(o);
    return rv;
}

/* The 16 bits of one number. */
static unsigned half_of(const struct fl_codec_ops *ops, float x)
{
    struct fl_layout *layout = unit_layout(1, 0, 0, 0);
    struct fl_buf out;
    unsigned bits;

    fl_buf_init(&out, 100);
    ck_assert_int_eq(encode(ops, layout, &x, &out), FL_OK);
    ck_assert_uint_eq(out.len, 2);
    bits = (unsigned)(out.data[0] | out.data[1] << 8);
    fl_buf_done(&out);
    fl_layout_free(layout);
    return bits;
}

/* Infinities and NaN have an exponent of ones. */
static bool is_finite_half(const struct fl_codec_ops *ops, unsigned bits)
{
    unsigned exponent = ops == &fl_codec_float16 ? 0x7c00 : 0x7f80;

    return (bits & exponent) != exponent;
}

/* Values of all 65536 patterns, together and each by itself; NAN for those that are refused. */
static void all_halves(const struct fl_codec_ops *ops, float *value)
{
    struct fl_layout *whole = unit_layout(65536, 0, 0, 0);
    struct fl_layout *layout = unit_layout(1, 0, 0, 0);
    uint8_t *all = calloc(65536, 2);
    unsigned i;

    ck_assert_ptr_nonnull(all);
    for (i = 0; i < 65536; i++) {
        all[2 * i] = (uint8_t)(is_finite_half(ops, i) ? i & 255 : 0);
        all[2 * i + 1] = (uint8_t)(is_finite_half(ops, i) ? i >> 8 : 0);
    }
    ck_assert_int_eq(decode(ops, whole, all, 2 * 65536, 65536, value), FL_OK);
    for (i = 0; i < 65536; i++) {
        const uint8_t bytes[2] = {(uint8_t)(i & 255), (uint8_t)(i >> 8)};
        float alone;

        ck_assert_int_eq(decode(ops, layout, bytes, 2, 1, &alone),
                         is_finite_half(ops, i) ? FL_OK : FL_ENUMERIC);
        ck_assert(!is_finite_half(ops, i) || bits_of(alone) == bits_of(value[i]));
    }
    for (i = 0; i < 65536; i++) {
        value[i] = is_finite_half(ops, i) ? value[i] : NAN;
    }
    free(all);
    fl_layout_free(layout);
    fl_layout_free(whole);
}

TEST_EACH(half_numbers_as_written_by_hand, 19)
{
    static const struct {
        float x;
        unsigned float16, bfloat16;
    } rows[] = {
        {0.0f, 0x0000, 0x0000},           {-0.0f, 0x8000, 0x8000},    {1.0f, 0x3c00, 0x3f80},
        {-2.0f, 0xc000, 0xc000},          {65504.0f, 0x7bff, 0x4780}, /* bfloat16: up to 65536 */
        {65520.0f, 0x7bff, 0x4780},       /* would be infinity: the largest instead */
        {-1e30f, 0xfbff, 0xf14a},         /* far above it */
        {FLT_MAX, 0x7bff, 0x7f7f},        /* the largest here as well */
        {1.00048828125f, 0x3c00, 0x3f80}, /* 1 + 2^-11: tie, to even below */
        {1.00146484375f, 0x3c02, 0x3f80}, /* 1 + 3 2^-11: tie, to even above */
        {1.00048840046f, 0x3c01, 0x3f80}, /* just above the tie */
        {1.00390625f, 0x3c04, 0x3f80},    /* 1 + 2^-8: bfloat16's tie, to even below */
        {1.01171875f, 0x3c0c, 0x3f82},    /* 1 + 3 2^-8: to even above */
        {0x1p-14f, 0x0400, 0x3880},       /* smallest normal */
        {0x1p-24f, 0x0001, 0x3380},       /* smallest subnormal */
        {0x1p-25f, 0x0000, 0x3300},       /* tie of it with 0 */
        {-0x1.8p-25f, 0x8001, 0xb340},    /* above that tie */
        {0x1.ffep-15f, 0x0400, 0x3880},   /* tie: carries into the normals */
        {1e-45f, 0x0000, 0x0000},
    };
    ck_assert_uint_eq(half_of(&fl_codec_float16, rows[_i].x), rows[_i].float16);
    ck_assert_uint_eq(half_of(&fl_codec_bfloat16, rows[_i].x), rows[_i].bfloat16);
}

TEST_EACH(every_half_number_comes_back_as_itself, 2)
{
    const struct fl_codec_ops *ops = lossy[_i];
    struct fl_layout *layout = unit_layout(65536, 0, 0, 0);
    float *value = malloc(2 * 65536 * sizeof(*value));
    float *x = value + 65536;
    unsigned refused = 0;
    struct fl_buf out;
    unsigned i;

    ck_assert_ptr_nonnull(value);
    all_halves(ops, value);
    for (i = 0; i < 65536; i++) {
        refused += isnan(value[i]) ? 1 : 0;
        x[i] = isnan(value[i]) ? 0 : value[i];
    }
    fl_buf_init(&out, 1u << 20);
    ck_assert_int_eq(encode(ops, layout, x, &out), FL_OK);
    for (i = 0; i < 65536; i++) {
        ck_assert(isnan(value[i]) || (unsigned)(out.data[2 * i] | out.data[2 * i + 1] << 8) == i);
    }
    fl_buf_done(&out);
    fl_layout_free(layout);
    /* Infinities and NaN: both signs times 2^10, 2^7. */
    ck_assert_uint_eq(refused, _i == 0 ? 2048 : 256);
    free(value);
}

TEST_EACH(halves_are_the_nearest_ones_and_even_on_ties, 2)
{
    const struct fl_codec_ops *ops = lossy[_i];
    unsigned top = _i == 0 ? 0x7bff : 0x7f7f;
    float *value = malloc(65536 * sizeof(*value));
    struct fl_rng rng;
    unsigned i;

    ck_assert_ptr_nonnull(value);
    all_halves(ops, value);
    fl_rng_seed(&rng, 7);
    for (i = 0; i < 20000; i++) {
        float x = (float)ldexp(fl_rng_normal(&rng), (int)(i % 60) - 40);
        unsigned h = half_of(ops, x);
        unsigned magnitude = h & 0x7fff;
        double off = fabs((double)value[h] - (double)x);

        if (magnitude < top) {
            double above = fabs((double)value[h + 1] - (double)x);

            ck_assert(off < above || (off <= above && h % 2 == 0));
        }
        if (magnitude > 0) {
            double below = fabs((double)value[h - 1] - (double)x);

            ck_assert(off < below || (off <= below && h % 2 == 0));
        }
        ck_assert_uint_eq(h >> 15, bits_of(x) >> 31);
    }
    free(value);
}

TEST(int8_as_computed_by_hand)
{
    /* Levels: 127; -63.5 to the even -64; 31.75 to 32; 0. Buffers at the end. */
    static const float x[6] = {2.0f, -1.0f, 0.5f, 7.0f, 0.0f, -3.0f};
    static const uint8_t bytes[16] = {0, 0, 0,    0x40, 127, 0xc0, 32,   0,
                                      0, 0, 0xe0, 0x40, 0,   0,    0x40, 0xc0};
    struct fl_layout *layout = unit_layout(3, 1, 1, 1);
    float out[6];
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(&fl_codec_int8, layout, x, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, sizeof(bytes));
    ck_assert_mem_eq(buf.data, bytes, sizeof(bytes));
    ck_assert_int_eq(decode(&fl_codec_int8, layout, bytes, sizeof(bytes), 6, out), FL_OK);
    ck_assert_uint_eq(bits_of(out[0]), bits_of(2.0f));
    ck_assert_uint_eq(bits_of(out[1]), bits_of((float)(-128.0 / 127.0)));
    ck_assert_uint_eq(bits_of(out[2]), bits_of((float)(64.0 / 127.0)));
    ck_assert_uint_eq(bits_of(out[3]), bits_of(7.0f));
    ck_assert_uint_eq(bits_of(out[4]), 0);
    ck_assert_uint_eq(bits_of(out[5]), bits_of(-3.0f));
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

TEST_EACH(int8_is_within_half_a_level_at_every_magnitude, 6)
{
    static const float largest[] = {1e-45f, 1e-40f, 1e-3f, 1.0f, 3e38f, FLT_MAX};
    enum { N = 1000 };
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    double m = (double)largest[_i];
    float x[N], out[N];
    struct fl_buf buf;
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, 3);
    for (i = 0; i < N; i++) {
        x[i] = (float)(m * (2 * fl_rng_unit(&rng) - 1));
    }
    x[N / 2] = -largest[_i];
    fl_buf_init(&buf, 1u << 20);
    ck_assert_int_eq(encode(&fl_codec_int8, layout, x, &buf), FL_OK);
    ck_assert_int_eq(decode(&fl_codec_int8, layout, buf.data, buf.len, 77, out), FL_OK);
    for (i = 0; i < N; i++) {
        /* Half a level, and the rounding of the result to a float. */
        ck_assert_double_le(fabs((double)out[i] - (double)x[i]), m / 254 * (1 + 1e-5) + 1e-45);
    }
    ck_assert_uint_eq(bits_of(out[N / 2]), bits_of(x[N / 2]));
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

TEST_EACH(int8_refuses_what_it_never_writes, 15)
{
    static const struct {
        size_t len;
        uint8_t bytes[12];
        int rv;
    } rows[] = {
        {11, {0, 0, 0x80, 0x3f, 127, 0x81, 0, 0, 0, 0, 0}, FL_OK},
        {11, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, FL_OK},
        {11, {0, 0, 0x80, 0x3f, 1, 0x80, 0, 0, 0, 0, 0}, FL_EFORMAT},     /* level -128 */
        {11, {0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, FL_EFORMAT},              /* level without scale */
        {11, {0, 0, 0x80, 0xbf, 1, 0, 0, 0, 0, 0, 0}, FL_EFORMAT},        /* scale -1 */
        {11, {0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0}, FL_EFORMAT},           /* scale -0 */
        {11, {0, 0, 0x80, 0x7f, 1, 0, 0, 0, 0, 0, 0}, FL_ENUMERIC},       /* infinite scale */
        {11, {0, 0, 0xc0, 0x7f, 1, 0, 0, 0, 0, 0, 0}, FL_ENUMERIC},       /* NaN */
        {11, {0, 0, 0xc0, 0xff, 1, 0, 0, 0, 0, 0, 0}, FL_ENUMERIC},       /* NaN with a sign */
        {11, {0, 0, 0x80, 0x3f, 1, 1, 1, 0, 0, 0x80, 0x7f}, FL_ENUMERIC}, /* buffer */
        {12, {0, 0, 0x80, 0x3f, 1, 1, 1, 0, 0, 0, 0, 0}, FL_EFORMAT},     /* a byte too many */
        {10, {0, 0, 0x80, 0x3f, 1, 1, 1, 0, 0, 0}, FL_EFORMAT},
        {4, {0, 0, 0x80, 0x3f}, FL_EFORMAT},
        {3, {0, 0, 0x80}, FL_EFORMAT},
        {0, {0}, FL_EFORMAT},
    };
    struct fl_layout *layout = unit_layout(3, 1, 0, 0);
    float out[4];

    ck_assert_int_eq(decode(&fl_codec_int8, layout, rows[_i].bytes, rows[_i].len, 4, out),
                     rows[_i].rv);
    ck_assert_int_eq(decode(&fl_codec_int8, layout, rows[_i].bytes, rows[_i].len, 1, out),
                     rows[_i].rv);
    fl_layout_free(layout);
}

TEST_EACH(halves_of_another_length_are_refused, 2)
{
    static const uint8_t zero[16];
    struct fl_layout *layout = unit_layout(3, 1, 1, 0); /* 4 entries, 1 buffer: 12 bytes */
    float out[5];
    size_t len;

    for (len = 0; len <= sizeof(zero); len++) {
        ck_assert_int_eq(decode(lossy[_i], layout, zero, len, 5, out),
                         len == 12 ? FL_OK : FL_EFORMAT);
    }
    fl_layout_free(layout);
}

/* --- the frame --- */

enum { A = 3000, B = 70, C = 2500, D = 1100, COUNT = A + B + C + D };

static float *random_update(unsigned seed)
{
    float *x = malloc(COUNT * sizeof(*x));
    struct fl_rng rng;
    size_t i;

    ck_assert_ptr_nonnull(x);
    fl_rng_seed(&rng, seed);
    for (i = 0; i < COUNT; i++) {
        x[i] = (float)fl_rng_normal(&rng);
    }
    return x;
}

TEST_EACH(buffers_come_back_bit_for_bit_and_entries_in_any_pieces, (int)ARRAY_LEN(lossy))
{
    static const size_t pieces[] = {1, 3, 64, 2999, 3001, 4096, COUNT - 1};
    const struct fl_codec_ops *ops = lossy[_i];
    struct fl_layout *layout = unit_layout(A, B, C, D);
    float *x = random_update(11);
    float *whole = malloc(COUNT * sizeof(*whole));
    float *out = malloc(COUNT * sizeof(*out));
    struct fl_buf buf;
    size_t i;

    ck_assert(whole != NULL && out != NULL);
    x[A] = 1e30f;
    x[COUNT - 1] = -0.0f;
    fl_buf_init(&buf, 1u << 20);
    ck_assert_int_eq(fl_buf_add(&buf, "before", 6), FL_OK);
    ck_assert_int_eq(encode(ops, layout, x, &buf), FL_OK);
    ck_assert_mem_eq(buf.data, "before", 6);
    ck_assert_uint_le(buf.len - 6, ops->max_size(layout, 0));
    ck_assert_int_eq(decode(ops, layout, buf.data + 6, buf.len - 6, COUNT, whole), FL_OK);
    ck_assert_mem_eq(whole + A, x + A, B * sizeof(*x));
    ck_assert_mem_eq(whole + A + B + C, x + A + B + C, D * sizeof(*x));
    for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        ck_assert_int_eq(decode(ops, layout, buf.data + 6, buf.len - 6, pieces[i], out), FL_OK);
        ck_assert_mem_eq(out, whole, COUNT * sizeof(*out));
    }
    fl_buf_done(&buf);
    free(out);
    free(whole);
    free(x);
    fl_layout_free(layout);
}

TEST_EACH(where_buffers_stand_does_not_change_the_coding_of_the_rest, (int)ARRAY_LEN(lossy))
{
    const struct fl_codec_ops *ops = lossy[_i];
    struct fl_layout *mixed = unit_layout(A, B, C, D);
    struct fl_layout *plain = unit_layout(A + C, 0, 0, 0);
    float *x = random_update(12);
    struct fl_buf a;
    struct fl_buf b;

    fl_buf_init(&a, 1u << 20);
    fl_buf_init(&b, 1u << 20);
    ck_assert_int_eq(encode(ops, mixed, x, &a), FL_OK);
    (void)memmove(x + A, x + A + B, C * sizeof(*x));
    ck_assert_int_eq(encode(ops, plain, x, &b), FL_OK);
    ck_assert_uint_eq(a.len, b.len + 4 * (B + D));
    ck_assert_mem_eq(a.data, b.data, b.len);
    fl_buf_done(&a);
    fl_buf_done(&b);
    free(x);
    fl_layout_free(mixed);
    fl_layout_free(plain);
}

TEST_EACH(a_unit_of_buffers_alone_is_coded, (int)ARRAY_LEN(lossy))
{
    struct fl_layout *layout = unit_layout(0, 3, 0, 0);
    const float x[3] = {1, -2, 3};
    float out[3];
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(lossy[_i], layout, x, &buf), FL_OK);
    ck_assert_int_eq(decode(lossy[_i], layout, buf.data, buf.len, 2, out), FL_OK);
    ck_assert_mem_eq(out, x, sizeof(x));
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

TEST_EACH(a_diverged_update_is_not_encoded_and_leaves_no_bytes, (int)ARRAY_LEN(lossy))
{
    static const size_t at[] = {0, A - 1, A, A + B, COUNT - 1};
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    const struct fl_codec_ops *ops = lossy[_i];
    struct fl_layout *layout = unit_layout(A, B, C, D);
    float *x = random_update(13);
    struct fl_buf buf;
    size_t i;

    for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        float good = x[at[i]];

        fl_buf_init(&buf, 1u << 20);
        x[at[i]] = bad[i % 3];
        ck_assert_int_eq(encode(ops, layout, x, &buf), FL_ENUMERIC);
        ck_assert_uint_eq(buf.len, 0);
        x[at[i]] = good;
        fl_buf_done(&buf);
    }
    /* Room for the entries, not for the buffers behind them. */
    fl_buf_init(&buf, 2 * (A + C) + 100);
    ck_assert_int_eq(encode(ops, layout, x, &buf),
                     ops == &fl_codec_float16 || ops == &fl_codec_bfloat16 ? FL_ELIMIT : FL_OK);
    fl_buf_done(&buf);
    fl_buf_init(&buf, 4 * (B + D) + 40);
    ck_assert_int_eq(encode(ops, layout, x, &buf), FL_ELIMIT);
    ck_assert_uint_eq(buf.len, 0);
    fl_buf_done(&buf);
    free(x);
    fl_layout_free(layout);
}

TEST_EACH(a_non_finite_buffer_is_refused, (int)ARRAY_LEN(lossy))
{
    struct fl_layout *layout = unit_layout(30, 2, 30, 3);
    float x[65];
    uint8_t bad[4] = {0, 0, 0xc0, 0x7f};
    struct fl_buf buf;
    size_t i;

    for (i = 0; i < 65; i++) {
        x[i] = (float)i - 20;
    }
    fl_buf_init(&buf, 1000);
    ck_assert_int_eq(encode(lossy[_i], layout, x, &buf), FL_OK);
    (void)memcpy(buf.data + buf.len - 4, bad, 4);
    ck_assert_int_eq(decode(lossy[_i], layout, buf.data, buf.len, 10, x), FL_ENUMERIC);
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

struct failing {
    struct fl_codec_memory memory;
    unsigned good; /* reads that succeed first */
};

static int failing_read(void *ctx, uint64_t offset, void *out, size_t len)
{
    struct failing *f = ctx;

    return f->good-- == 0 ? FL_EIO : strict_read(&f->memory, offset, out, len);
}

TEST_EACH(every_failing_read_is_passed_on, (int)ARRAY_LEN(lossy))
{
    const struct fl_codec_ops *ops = lossy[_i];
    struct fl_layout *layout = unit_layout(A, B, C, D);
    float *x = random_update(14);
    struct fl_codec_decoder d;
    struct fl_buf buf;
    unsigned fail = 0;
    int rv;

    fl_buf_init(&buf, 1u << 20);
    ck_assert_int_eq(encode(ops, layout, x, &buf), FL_OK);
    do {
        struct failing f = {.memory = {.data = buf.data, .len = buf.len}, .good = fail};
        struct fl_codec_reader reader = {.read = failing_read, .ctx = &f, .size = buf.len};
        struct fl_codec_size got;

        rv = fl_codec_open(&d, ops, layout, 0, &reader);
        if (rv == FL_OK) {
            rv = fl_codec_measure(&d, &got);
        }
        ck_assert(rv == FL_OK || rv == FL_EIO);
        fail++;
    } while (rv != FL_OK);
    ck_assert_uint_ge(fail, 4);
    fl_buf_done(&buf);
    free(x);
    fl_layout_free(layout);
}
