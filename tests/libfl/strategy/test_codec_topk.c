#include <math.h>

#include "libfl/base/rng.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/codec_fixture.h"

/* The largest entries with their values. */

static int encode(const struct fl_layout *layout, const char *share, const char *values,
                  const float *x, struct fl_buf *out)
{
    return encode_with(&fl_codec_topk, options_of(&fl_codec_topk.policy, share, values, NULL),
                       layout, x, 0, out);
}

/* 20 entries, 10 % of them: +3 at 3 and -1 at 10; gaps 3 and 6, Rice parameter 2, as in
   test_codec_ternary.c: 0 11 and the bits of 3, 10 10 and those of -1. */
static const uint8_t by_hand[] = {0, 2, 0, 0, 0, 2, 0x68, 0x08, 0x00, 0, 0x15, 0x7f, 0, 0, 0};
static const uint8_t half_by_hand[] = {2, 2, 0, 0, 0, 2, 0x68, 0x40, 0x15, 0x78, 0};

TEST_EACH(kept_entries_have_the_documented_bytes, 2)
{
    const uint8_t *bytes = _i == 0 ? by_hand : half_by_hand;
    size_t len = _i == 0 ? sizeof(by_hand) : sizeof(half_by_hand);
    struct fl_layout *layout = unit_layout(20, 0, 0, 0);
    float x[20];
    float out[20];
    struct fl_buf buf;
    size_t i;

    small_update(x);
    fl_buf_init(&buf, 100);
    ck_assert_int_eq(
        encode(layout, "share=0.1", _i == 0 ? "values=float32" : "values=float16", x, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, len);
    ck_assert_mem_eq(buf.data, bytes, len);
    ck_assert_int_eq(decode(&fl_codec_topk, layout, bytes, len, 20, out), FL_OK);
    for (i = 0; i < 20; i++) {
        ck_assert_uint_eq(bits_of(out[i]), i == 3 || i == 10 ? bits_of(x[i]) : 0);
    }
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

enum { N = 5000 };

static void draw(float x[N])
{
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, 3);
    for (i = 0; i < N; i++) {
        x[i] = (float)(0.01 * fl_rng_normal(&rng));
    }
}

static void coded_and_decoded(const char *share, const char *values, const float *x, float *out)
{
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    struct fl_buf buf;

    fl_buf_init(&buf, 1u << 20);
    ck_assert_int_eq(encode(layout, share, values, x, &buf), FL_OK);
    ck_assert_uint_le(buf.len, fl_codec_topk.max_size(layout, 0));
    ck_assert_int_eq(decode(&fl_codec_topk, layout, buf.data, buf.len, 777, out), FL_OK);
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

/* With all entries it is the exact codec, or the 16-bit one, and a byte. */
TEST_EACH(a_share_of_1_is_float32_or_float16_bit_for_bit, 2)
{
    const struct fl_codec_ops *plain = _i == 0 ? &fl_codec_float32 : &fl_codec_float16;
    struct fl_options *o = options_of(&plain->policy, NULL);
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    float *x = malloc(2 * N * sizeof(*x));
    float *out = x + N;
    struct fl_buf all;
    struct fl_buf want;

    draw(x);
    fl_buf_init(&all, 1u << 20);
    fl_buf_init(&want, 1u << 20);
    ck_assert_int_eq(
        encode(layout, "share=1", _i == 0 ? "values=float32" : "values=float16", x, &all), FL_OK);
    ck_assert_int_eq(plain->encode(o, layout, 0, x, 0, &want), FL_OK);
    ck_assert_uint_eq(all.len, want.len + 1);
    ck_assert_mem_eq(all.data + 1, want.data, want.len);
    coded_and_decoded("share=1", _i == 0 ? "values=float32" : "values=float16", x, x);
    ck_assert_int_eq(decode(plain, layout, want.data, want.len, N, out), FL_OK);
    ck_assert_mem_eq(x, out, N * sizeof(*x));
    fl_buf_done(&all);
    fl_buf_done(&want);
    fl_options_free(o);
    fl_layout_free(layout);
    free(x);
}

static int descending(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a);
    float y = fabsf(*(const float *)b);

    return (x < y) - (x > y);
}

/* A plain implementation: sort, keep what is at least as large as the k-th. */
TEST_EACH(the_share_of_the_largest_is_decoded_as_it_was_and_the_rest_as_0, 4)
{
    static const char *const shares[] = {"share=0", "share=0.01", "share=0.05", "share=0.5"};
    static const size_t counts[] = {1, N / 100, N / 20, N / 2};
    float *x = malloc(3 * N * sizeof(*x));
    float *sorted = x + N;
    float *out = sorted + N;
    size_t i;

    draw(x);
    (void)memcpy(sorted, x, N * sizeof(*x));
    qsort(sorted, N, sizeof(*sorted), descending);
    coded_and_decoded(shares[_i], NULL, x, out);
    for (i = 0; i < N; i++) {
        bool kept = fabsf(x[i]) >= fabsf(sorted[counts[_i] - 1]);

        ck_assert_uint_eq(bits_of(out[i]), kept ? bits_of(x[i]) : 0);
    }
    free(x);
}

/* The k largest are the nearest vector with k entries (Stich et al. 2018, definition 2.1). */
TEST(the_error_is_at_most_that_of_k_entries_drawn_at_random)
{
    float *x = malloc(2 * N * sizeof(*x));
    float *out = x + N;
    double off = 0;
    double all = 0;
    size_t i;

    draw(x);
    coded_and_decoded("share=0.05", NULL, x, out);
    for (i = 0; i < N; i++) {
        off += ((double)out[i] - (double)x[i]) * ((double)out[i] - (double)x[i]);
        all += (double)x[i] * (double)x[i];
    }
    ck_assert_double_lt(off, 0.95 * all);
    free(x);
}

TEST(a_unit_that_did_not_change_takes_5_bytes)
{
    static const uint8_t bytes[5] = {0};
    struct fl_layout *layout = unit_layout(1000, 0, 0, 0);
    float *x = calloc(1000, sizeof(*x));
    struct fl_buf buf;

    x[7] = -0.0f; /* not kept either */
    fl_buf_init(&buf, 100000);
    ck_assert_int_eq(encode(layout, "share=1", NULL, x, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, 5);
    ck_assert_mem_eq(buf.data, bytes, 5);
    ck_assert_int_eq(decode(&fl_codec_topk, layout, bytes, 5, 999, x), FL_OK);
    ck_assert_uint_eq(bits_of(x[7]), 0);
    free(x);
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

TEST_EACH(topk_refuses_what_it_never_writes, 22)
{
    static const struct {
        size_t len;
        uint8_t bytes[96];
        int rv;
    } rows[] = {
        {15, {0, 2, 0, 0, 0, 2, 0x68, 0x08, 0, 0, 0x15, 0x7f}, FL_OK},
        {11, {2, 2, 0, 0, 0, 2, 0x68, 0x40, 0x15, 0x78}, FL_OK},
        {5, {0}, FL_OK},
        {5, {2}, FL_OK},
        {81, {1, 0, 0, 0x80, 0x3f}, FL_OK},
        {41, {3, 0, 0x3c}, FL_OK},
        /* another tag */
        {41, {4, 0, 0x3c}, FL_EFORMAT},
        {15, {255, 2, 0, 0, 0, 2, 0x68, 0x08, 0, 0, 0x15, 0x7f}, FL_EFORMAT},
        /* a byte less and more */
        {14, {0, 2, 0, 0, 0, 2, 0x68, 0x08, 0, 0, 0x15, 0x7f}, FL_EFORMAT},
        {16, {0, 2, 0, 0, 0, 2, 0x68, 0x08, 0, 0, 0x15, 0x7f}, FL_EFORMAT},
        {80, {1}, FL_EFORMAT},
        {82, {1}, FL_EFORMAT},
        {42, {3}, FL_EFORMAT},
        {4, {0}, FL_EFORMAT},
        {0, {0}, FL_EFORMAT},
        /* more kept entries than entries, b, a position of 20, a bit behind the end */
        {15, {0, 21, 0, 0, 0, 2, 0x68, 0x08, 0, 0, 0x15, 0x7f}, FL_EFORMAT},
        {15, {0, 2, 0, 0, 0, 37, 0x68, 0x08, 0, 0, 0x15, 0x7f}, FL_EFORMAT},
        {11, {0, 1, 0, 0, 0, 2, 0xf8, 0, 0, 0, 0}, FL_EFORMAT},
        {15, {0, 2, 0, 0, 0, 2, 0x68, 0x08, 0, 0, 0x15, 0x7f, 0, 0, 1}, FL_EFORMAT},
        /* infinity, as 32 and as 16 bits, among all entries too */
        {11, {0, 1, 0, 0, 0, 2, 0x6f, 0xf0, 0, 0, 0}, FL_ENUMERIC},
        {9, {2, 1, 0, 0, 0, 2, 0x6f, 0x80, 0}, FL_ENUMERIC},
        {41, {3, 0, 0x7c}, FL_ENUMERIC},
    };
    struct fl_layout *layout = unit_layout(20, 0, 0, 0);
    float out[20];

    ck_assert_int_eq(decode(&fl_codec_topk, layout, rows[_i].bytes, rows[_i].len, 20, out),
                     rows[_i].rv);
    ck_assert_int_eq(decode(&fl_codec_topk, layout, rows[_i].bytes, rows[_i].len, 1, out),
                     rows[_i].rv);
    fl_layout_free(layout);
}
