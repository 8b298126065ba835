#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/strategy/codec/codec.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/strategy_fixture.h"

/* One unit of 5000 floats, 100 of them buffers at the end: more than any block inside. */
#define COUNT     5000
#define TRAINABLE 4900

struct unit {
    struct fl_layout *layout;
    float *x;
    struct fl_buf coded;
    struct fl_codec_memory memory;
    struct fl_codec_reader reader;
};

static void unit_init(struct unit *u)
{
    size_t n[2] = {TRAINABLE, COUNT - TRAINABLE};
    size_t i;

    ck_assert_int_eq(fl_layout_create(&u->layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(u->layout, "u", "u.weight", &n[0], 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(u->layout, "u", "u.running_mean", &n[1], 1, true, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(u->layout, NULL), FL_OK);
    u->x = calloc(COUNT, sizeof(float));
    ck_assert_ptr_nonnull(u->x);
    for (i = 0; i < COUNT; i++) {
        u->x[i] = i < TRAINABLE ? (float)(i % 3) : 1e30f;
    }
    fl_buf_init(&u->coded, 1u << 20);
    ck_assert_int_eq(fl_codec_float32.encode(NULL, u->layout, 0, u->x, 0, &u->coded), FL_OK);
    u->memory.data = u->coded.data;
    u->memory.len = u->coded.len;
    u->reader = fl_codec_memory_reader(&u->memory);
}

static void unit_done(struct unit *u)
{
    free(u->x);
    fl_buf_done(&u->coded);
    fl_layout_free(u->layout);
}

static int validate(struct unit *u, double *ret_norm_sq)
{
    struct fl_codec_decoder d;
    struct fl_codec_size got;
    int rv;

    u->reader = fl_codec_memory_reader(&u->memory);
    rv = fl_codec_open(&d, &fl_codec_float32, u->layout, 0, &u->reader);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_codec_measure(&d, &got);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_norm_sq = got.norm_sq;
    return FL_OK;
}

TEST_EACH(float32_comes_back_bit_for_bit_in_any_pieces, 4)
{
    static const size_t pieces[] = {1, 7, 2048, COUNT};
    struct fl_codec_decoder d;
    struct unit u;
    float *out;
    size_t i;

    unit_init(&u);
    u.x[1] = -0.0f;
    u.x[2] = 1e-45f;
    fl_buf_clear(&u.coded);
    ck_assert_int_eq(fl_codec_float32.encode(NULL, u.layout, 0, u.x, 0, &u.coded), FL_OK);
    ck_assert_uint_eq(u.coded.len, 4 * COUNT);
    out = calloc(COUNT, sizeof(float));
    ck_assert_int_eq(fl_codec_open(&d, &fl_codec_float32, u.layout, 0, &u.reader), FL_OK);
    for (i = 0; i < COUNT; i += pieces[_i]) {
        size_t n = COUNT - i < pieces[_i] ? COUNT - i : pieces[_i];

        ck_assert_int_eq(d.ops->read(&d, out + i, n), FL_OK);
    }
    ck_assert_int_eq(d.ops->close(&d), FL_OK);
    ck_assert_mem_eq(out, u.x, COUNT * sizeof(float));
    free(out);
    unit_done(&u);
}

TEST(float32_is_little_endian_on_the_wire)
{
    struct unit u;
    const uint8_t one[4] = {0, 0, 0x80, 0x3f};

    unit_init(&u);
    ck_assert_mem_eq(u.coded.data + 4, one, 4);
    unit_done(&u);
}

TEST(validation_sums_trainable_entries_only)
{
    double norm_sq = -1;
    double expected = 0;
    struct unit u;
    size_t i;

    unit_init(&u);
    for (i = 0; i < TRAINABLE; i++) {
        expected += (double)u.x[i] * (double)u.x[i];
    }
    ck_assert_int_eq(validate(&u, &norm_sq), FL_OK);
    ck_assert_double_eq_tol(norm_sq, expected, 1e-9);
    unit_done(&u);
}

TEST_EACH(a_coded_unit_of_another_length_is_refused, 5)
{
    static const size_t lengths[] = {0, 3, 4 * COUNT - 4, 4 * COUNT - 1, 4 * COUNT + 1};
    double norm_sq = 0;
    uint8_t *data;
    struct unit u;

    unit_init(&u);
    /* Exactly as long as it says, so that the sanitizer sees a read past it. */
    data = calloc(1, lengths[_i] + 1);
    u.memory.data = data;
    u.memory.len = lengths[_i];
    ck_assert_int_eq(validate(&u, &norm_sq), FL_EFORMAT);
    free(data);
    unit_done(&u);
}

TEST_EACH(non_finite_entries_are_refused_wherever_they_are, 8)
{
    static const struct {
        size_t at;
        uint32_t bits;
    } rows[] = {{0, 0x7fc00000},         {1, 0xff800000},         {2047, 0x7f800001},
                {2048, 0xffffffff},      {TRAINABLE, 0x7fc00000}, {COUNT - 1, 0x7f800000},
                {COUNT / 2, 0x7fffffff}, {4095, 0xffc00000}};
    double norm_sq = 0;
    struct unit u;

    unit_init(&u);
    (void)memcpy(u.coded.data + 4 * rows[_i].at, &rows[_i].bits, 4);
    ck_assert_int_eq(validate(&u, &norm_sq), FL_ENUMERIC);
    unit_done(&u);
}

TEST(a_diverged_update_is_not_encoded)
{
    struct fl_buf out;
    struct unit u;

    unit_init(&u);
    fl_buf_init(&out, 1u << 20);
    u.x[COUNT - 1] = NAN;
    ck_assert_int_eq(fl_codec_float32.encode(NULL, u.layout, 0, u.x, 0, &out), FL_ENUMERIC);
    ck_assert_uint_eq(out.len, 0);
    fl_buf_done(&out);
    fl_buf_init(&out, 100);
    u.x[COUNT - 1] = 0;
    ck_assert_int_eq(fl_codec_float32.encode(NULL, u.layout, 0, u.x, 0, &out), FL_ELIMIT);
    fl_buf_done(&out);
    unit_done(&u);
}

static int open_anything(struct fl_codec_decoder *d)
{
    (void)d;
    return FL_OK;
}

TEST(a_coded_unit_over_its_codecs_limit_is_refused_before_it_is_read)
{
    struct fl_codec_ops ops = fl_codec_float32;
    struct fl_codec_decoder d;
    struct unit u;

    unit_init(&u);
    ops.open = open_anything;
    ck_assert_int_eq(fl_codec_open(&d, &ops, u.layout, 0, &u.reader), FL_OK);
    u.reader.size = 4 * COUNT + 1;
    ck_assert_int_eq(fl_codec_open(&d, &ops, u.layout, 0, &u.reader), FL_EFORMAT);
    u.reader.size = 4 * COUNT - 1;
    ck_assert_int_eq(fl_codec_open(&d, &fl_codec_float32, u.layout, 0, &u.reader), FL_EFORMAT);
    unit_done(&u);
}

static int broken_read(void *ctx, uint64_t offset, void *out, size_t len)
{
    (void)ctx;
    (void)offset;
    (void)out;
    (void)len;
    return FL_EIO;
}

TEST(a_failing_reader_is_passed_on)
{
    struct fl_codec_decoder d;
    struct fl_codec_size got;
    struct unit u;

    unit_init(&u);
    u.reader.read = broken_read;
    ck_assert_int_eq(fl_codec_open(&d, &fl_codec_float32, u.layout, 0, &u.reader), FL_OK);
    ck_assert_int_eq(fl_codec_measure(&d, &got), FL_EIO);
    unit_done(&u);
}
