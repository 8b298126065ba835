#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "libfl/base/rng.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/codec_fixture.h"

static int encode(const struct fl_layout *layout, const char *share, const float *x,
                  struct fl_buf *out)
{
    return encode_with(&fl_codec_ternary, options_of(&fl_codec_ternary.policy, share, NULL), layout,
                       x, 0, out);
}

static const float TWO = 2.0f;

/*
 * 20 entries, 10 % of them: +3 at 3 and -1 at 10, so mu is 2. Gaps 3 and 6; 2^1 <= .69 * 4.5
 * < 2^2, and 2 is better than 1 (9 bits, not 10): 0 11 0, 10 10 1, seven bits to spare.
 */
static const uint8_t by_hand[12] = {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0x6a, 0x80};

TEST(ternary_as_computed_by_hand)
{
    struct fl_layout *layout = unit_layout(20, 0, 0, 0);
    float x[20];
    float out[20];
    struct fl_buf buf;
    size_t i;

    small_update(x);
    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, "share=0.1", x, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, sizeof(by_hand));
    ck_assert_mem_eq(buf.data, by_hand, sizeof(by_hand));
    ck_assert_int_eq(decode(&fl_codec_ternary, layout, by_hand, sizeof(by_hand), 20, out), FL_OK);
    for (i = 0; i < 20; i++) {
        ck_assert_uint_eq(bits_of(out[i]), i == 3 ? bits_of(TWO) : i == 10 ? bits_of(-TWO) : 0);
    }
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

TEST(buffers_follow_as_float32)
{
    struct fl_layout *layout = unit_layout(12, 1, 8, 1);
    struct fl_layout *plain = unit_layout(20, 0, 0, 0);
    static const uint8_t buffers[8] = {0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0};
    float x[22];
    struct fl_buf buf;

    small_update(x);
    (void)memmove(x + 13, x + 12, 8 * sizeof(*x));
    x[12] = 1;
    x[21] = -2;
    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, "share=0.1", x, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, sizeof(by_hand) + 8);
    ck_assert_mem_eq(buf.data, by_hand, sizeof(by_hand));
    ck_assert_mem_eq(buf.data + sizeof(by_hand), buffers, 8);
    fl_buf_done(&buf);
    fl_layout_free(layout);
    fl_layout_free(plain);
}

TEST(a_unit_that_nothing_moved_is_a_count_of_zero)
{
    static const uint8_t bytes[5] = {0};
    struct fl_layout *layout = unit_layout(1000, 0, 0, 0);
    float *x = calloc(1000, sizeof(*x));
    struct fl_buf buf;
    size_t i;

    x[7] = -0.0f; /* not an entry either */
    fl_buf_init(&buf, 100000);
    ck_assert_int_eq(encode(layout, "share=1", x, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, 5);
    ck_assert_mem_eq(buf.data, bytes, 5);
    (void)memset(x, 0xff, 1000 * sizeof(*x));
    ck_assert_int_eq(decode(&fl_codec_ternary, layout, bytes, 5, 999, x), FL_OK);
    for (i = 0; i < 1000; i++) {
        ck_assert_uint_eq(bits_of(x[i]), 0);
    }
    free(x);
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

TEST(a_unit_of_few_entries_is_sent_with_eight_bits)
{
    struct fl_layout *layout = unit_layout(6, 0, 0, 0);
    const float x[6] = {2, -1, .5f, 0, 0, 0};
    static const uint8_t bytes[11] = {1, 0, 0, 0, 0x40, 127, 0xc0, 32, 0, 0, 0};
    float out[6];
    float eight[6];
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, NULL, x, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, sizeof(bytes));
    ck_assert_mem_eq(buf.data, bytes, sizeof(bytes));
    ck_assert_uint_eq(fl_codec_ternary.max_size(layout, 0), sizeof(bytes));
    ck_assert_int_eq(decode(&fl_codec_ternary, layout, bytes, sizeof(bytes), 2, out), FL_OK);
    ck_assert_int_eq(decode(&fl_codec_int8, layout, bytes + 1, sizeof(bytes) - 1, 6, eight), FL_OK);
    ck_assert_mem_eq(out, eight, sizeof(out));
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

TEST_EACH(refuses_what_it_never_writes, 36)
{
    static const struct {
        size_t len;
        uint8_t bytes[27];
        int rv;
    } rows[] = {
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0x6a, 0x80}, FL_OK},
        {12, {2, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0x6a, 0x80}, FL_EFORMAT},     /* unknown tag */
        {12, {0, 21, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0}, FL_EFORMAT},          /* count > d_l */
        {12, {0, 2, 0, 0, 1, 0, 0, 0, 0x40, 2, 0x6a, 0x80}, FL_EFORMAT},     /* far above */
        {12, {0, 2, 0, 0, 0, 0, 0, 0xc0, 0x7f, 2, 0x6a, 0x80}, FL_ENUMERIC}, /* mu NaN */
        {12, {0, 2, 0, 0, 0, 0, 0, 0x80, 0x7f, 2, 0x6a, 0x80}, FL_ENUMERIC}, /* mu infinite */
        {12, {0, 2, 0, 0, 0, 0, 0, 0x80, 0xff, 2, 0x6a, 0x80}, FL_ENUMERIC}, /* -infinite */
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0xc0, 2, 0x6a, 0x80}, FL_EFORMAT},     /* mu -2 */
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0, 2, 0x6a, 0x80}, FL_EFORMAT},        /* mu 0 */
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 37, 0x6a, 0x80}, FL_EFORMAT},    /* parameter */
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 255, 0x6a, 0x80}, FL_EFORMAT},   /* parameter */
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0x6a, 0x81}, FL_EFORMAT},     /* spare bit */
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0x6a, 0xc0}, FL_EFORMAT},     /* spare bit */
        {13, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0x6a, 0x80, 0}, FL_EFORMAT},  /* trailing byte */
        {11, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0x6a}, FL_EFORMAT},           /* cut in the bits */
        {10, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2}, FL_EFORMAT},                 /* no bits */
        {9, {0, 2, 0, 0, 0, 0, 0, 0, 0x40}, FL_EFORMAT},                     /* no parameter */
        {5, {0, 2, 0, 0, 0}, FL_EFORMAT},                                    /* no mu */
        {4, {0, 0, 0, 0}, FL_EFORMAT},                                       /* half a count */
        {1, {0}, FL_EFORMAT},
        {0, {0}, FL_EFORMAT},
        {5, {0}, FL_OK},      /* count 0 */
        {6, {0}, FL_EFORMAT}, /* and a byte */
        /* One entry at 19 (b = 2, 19 = 4 * 4 + 3), then at 20, then far beyond. */
        {11, {0, 1, 0, 0, 0, 0, 0, 0, 0x40, 2, 0xf6}, FL_OK},
        {12, {0, 1, 0, 0, 0, 0, 0, 0, 0x40, 2, 0xf8, 0x00}, FL_EFORMAT},       /* position 20 */
        {11, {0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0, 0xff}, FL_EFORMAT},             /* no zero-bit */
        {13, {0, 1, 0, 0, 0, 0, 0, 0, 0x40, 0, 0xff, 0xff, 0xff}, FL_EFORMAT}, /* 24 ones */
        /* b = 36: a gap of 2^35 and a sign, 38 bits. */
        {15, {0, 1, 0, 0, 0, 0, 0, 0, 0x40, 36, 0x40, 0, 0, 0, 0}, FL_EFORMAT},
        {15, {0, 1, 0, 0, 0, 0, 0, 0, 0x40, 36, 0, 0, 0, 0, 0x10}, FL_OK}, /* gap 2 */
        /* A second entry behind one at 19: no room, whatever its gap. */
        {12, {0, 2, 0, 0, 0, 0, 0, 0, 0x40, 2, 0xf6, 0}, FL_EFORMAT},
        {25, {1, 0, 0, 0x80, 0x3f, 127}, FL_OK}, /* eight bits */
        {24, {1, 0, 0, 0x80, 0x3f, 127}, FL_EFORMAT},
        {26, {1, 0, 0, 0x80, 0x3f, 127}, FL_EFORMAT}, /* over the codec's limit */
        {25, {1, 0, 0, 0x80, 0x3f, 128}, FL_EFORMAT},
        {25, {1, 0, 0, 0x80, 0xff, 1}, FL_ENUMERIC},
        {1, {1}, FL_EFORMAT},
    };
    struct fl_layout *layout = unit_layout(20, 0, 0, 0);
    float out[20];

    ck_assert_int_eq(decode(&fl_codec_ternary, layout, rows[_i].bytes, rows[_i].len, 20, out),
                     rows[_i].rv);
    ck_assert_int_eq(decode(&fl_codec_ternary, layout, rows[_i].bytes, rows[_i].len, 1, out),
                     rows[_i].rv);
    fl_layout_free(layout);
}

/* --- against the definition, written without any cleverness --- */

static int compare_magnitudes(const void *a, const void *b)
{
    float x = fabsf(*(const float *)a);
    float y = fabsf(*(const float *)b);

    return (x < y) - (x > y);
}

static void expected_values(const float *x, size_t n, size_t c, float *out)
{
    float *sorted = malloc(n * sizeof(*sorted));
    double sum = 0;
    double kept = 0;
    float tau;
    float mu;
    size_t i;

    (void)memcpy(sorted, x, n * sizeof(*x));
    qsort(sorted, n, sizeof(*sorted), compare_magnitudes);
    tau = fabsf(sorted[c - 1]);
    for (i = 0; i < n; i++) {
        if (fabsf(x[i]) >= tau && fabsf(x[i]) > 0) {
            sum += (double)fabsf(x[i]);
            kept++;
        }
    }
    mu = kept > 0 ? (float)(sum / kept) : 0;
    for (i = 0; i < n; i++) {
        bool keep = fabsf(x[i]) >= tau && fabsf(x[i]) > 0;

        out[i] = !keep ? 0 : x[i] > 0 ? mu : -mu;
    }
    free(sorted);
}

TEST_EACH(decodes_to_what_the_definition_says_for_any_update, 5)
{
    static const char *const shares[] = {"share=0.05", "share=0.01", "share=0.3", "share=1",
                                         "share=0"};
    static const size_t percent[] = {5, 1, 30, 100, 0};
    struct fl_rng rng;
    unsigned sparse = 0;
    unsigned trial;

    fl_rng_seed(&rng, 2024 + (uint64_t)_i);
    for (trial = 0; trial < 150; trial++) {
        size_t n = 1 + (size_t)fl_rng_below(&rng, trial % 10 == 0 ? 20000 : 400);
        unsigned kind = (unsigned)fl_rng_below(&rng, 4);
        size_t c = (percent[_i] * n + 99) / 100;
        struct fl_layout *layout = unit_layout(n, 0, 0, 0);
        float *x = malloc(n * sizeof(*x));
        float *want = malloc(n * sizeof(*want));
        float *out = malloc(n * sizeof(*out));
        struct fl_buf buf;
        size_t i;

        for (i = 0; i < n; i++) {
            double v = fl_rng_normal(&rng);

            switch (kind) {
            case 0: /* dense */
                break;
            case 1: /* ties */
                v = round(v * 2);
                break;
            case 2: /* rows that nothing touched */
                v = i / 37 % 3 == 0 ? v : 0;
                break;
            default: /* many magnitudes, down to subnormals */
                v = ldexp(v, (int)fl_rng_below(&rng, 240) - 140);
                break;
            }
            x[i] = (float)v;
        }
        fl_buf_init(&buf, 1u << 20);
        ck_assert_int_eq(encode(layout, shares[_i], x, &buf), FL_OK);
        ck_assert_uint_le(buf.len, fl_codec_ternary.max_size(layout, 0));
        ck_assert_uint_eq(fl_codec_ternary.max_size(layout, 0), n + 5);
        ck_assert_int_eq(decode(&fl_codec_ternary, layout, buf.data, buf.len,
                                1 + (size_t)fl_rng_below(&rng, n), out),
                         FL_OK);
        if (buf.data[0] == 0) {
            expected_values(x, n, c > 0 ? c : 1, want);
            for (i = 0; i < n; i++) {
                ck_assert_uint_eq(bits_of(out[i]), bits_of(want[i]));
            }
            sparse++;
        } else {
            ck_assert_uint_eq(buf.len, n + 5);
        }
        fl_buf_done(&buf);
        free(x);
        free(want);
        free(out);
        fl_layout_free(layout);
    }
    ck_assert_uint_ge(sparse, 100);
}

/* As sent for a smaller unit: the same bytes, of which the last ones are of the entry in question.
 */
TEST(an_entry_behind_the_units_end_is_refused_however_its_bits_lie)
{
    float x[500];
    float out[500];
    struct fl_rng rng;
    size_t n;
    size_t i;

    fl_rng_seed(&rng, 5);
    for (i = 0; i < 500; i++) {
        x[i] = (float)fl_rng_normal(&rng);
    }
    for (n = 150; n <= 500; n++) {
        struct fl_layout *whole = unit_layout(n, 0, 0, 0);
        struct fl_layout *enough;
        struct fl_layout *cut;
        struct fl_buf buf;
        size_t last;

        fl_buf_init(&buf, 1u << 20);
        ck_assert_int_eq(encode(whole, "share=0.2", x, &buf), FL_OK);
        ck_assert_int_eq(decode(&fl_codec_ternary, whole, buf.data, buf.len, n, out), FL_OK);
        for (last = n - 1; out[last] == 0.0f; last--) {
        }
        enough = unit_layout(last + 1, 0, 0, 0);
        cut = unit_layout(last, 0, 0, 0);
        ck_assert_int_eq(decode(&fl_codec_ternary, enough, buf.data, buf.len, last + 1, out),
                         FL_OK);
        ck_assert_int_eq(decode(&fl_codec_ternary, cut, buf.data, buf.len, last, out), FL_EFORMAT);
        fl_buf_done(&buf);
        fl_layout_free(cut);
        fl_layout_free(enough);
        fl_layout_free(whole);
    }
}

TEST(a_share_written_in_decimal_is_not_rounded_up_by_its_last_bit)
{
    struct fl_layout *layout = unit_layout(100, 0, 0, 0);
    float x[100];
    struct fl_buf buf;
    size_t i;

    for (i = 0; i < 100; i++) {
        x[i] = (float)(i + 1);
    }
    fl_buf_init(&buf, 1000);
    ck_assert_int_eq(encode(layout, "share=0.07", x, &buf), FL_OK);
    ck_assert_uint_eq(buf.data[1], 7);
    fl_buf_clear(&buf);
    ck_assert_int_eq(encode(layout, "share=0.071", x, &buf), FL_OK);
    ck_assert_uint_eq(buf.data[1], 8);
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

/* About 6.9 bits a kept entry at 5 %, 9.3 at 1 %: 8 700 bytes for all of mlp200. */
TEST_EACH(an_update_of_mlp200_takes_about_8700_bytes, 2)
{
    static const size_t units[3] = {157000, 40200, 2010};
    static const struct {
        const char *share;
        double part, bits;
    } rows[] = {{"share=0.05", .05, 6.9}, {"share=0.01", .01, 9.3}};
    double total = 0;
    double kept = 0;
    struct fl_rng rng;
    size_t l;

    fl_rng_seed(&rng, 5);
    for (l = 0; l < 3; l++) {
        struct fl_layout *layout = unit_layout(units[l], 0, 0, 0);
        float *x = malloc(units[l] * sizeof(*x));
        struct fl_buf buf;
        size_t i;

        for (i = 0; i < units[l]; i++) {
            x[i] = (float)(.01 * fl_rng_normal(&rng));
        }
        fl_buf_init(&buf, 1u << 20);
        ck_assert_int_eq(encode(layout, rows[_i].share, x, &buf), FL_OK);
        total += (double)buf.len;
        kept += ceil(rows[_i].part * (double)units[l]);
        fl_buf_done(&buf);
        free(x);
        fl_layout_free(layout);
    }
    ck_assert_double_le(fabs(8 * total / kept / rows[_i].bits - 1), .05);
    if (_i == 0) {
        ck_assert_double_le(fabs(total / 8700 - 1), .05);
    }
}

/* Whatever is cut off, appended or flipped: refused, or decoded to finite numbers. */
TEST(damaged_bytes_are_refused_or_finite)
{
    enum { N = 700, S = 3 };
    struct fl_layout *layout = unit_layout(400, S, N - 400, 0);
    float x[N + S];
    float out[N + S];
    struct fl_rng rng;
    struct fl_buf buf;
    size_t i;
    unsigned bit;

    fl_rng_seed(&rng, 99);
    for (i = 0; i < N + S; i++) {
        x[i] = (float)fl_rng_normal(&rng);
    }
    fl_buf_init(&buf, 10000);
    ck_assert_int_eq(encode(layout, NULL, x, &buf), FL_OK);
    ck_assert_uint_eq(buf.data[0], 0);
    for (i = 0; i < buf.len; i++) {
        ck_assert_int_ne(decode(&fl_codec_ternary, layout, buf.data, i, N + S, out), FL_OK);
    }
    for (i = 0; i < buf.len; i++) {
        for (bit = 0; bit < 8; bit++) {
            int rv;

            buf.data[i] = (uint8_t)(buf.data[i] ^ 1u << bit);
            /* check_added() in there: added up and only checked it is the same. */
            rv = decode(&fl_codec_ternary, layout, buf.data, buf.len, 123, out);
            ck_assert(rv == FL_OK || rv == FL_EFORMAT || rv == FL_ENUMERIC);
            if (rv == FL_OK) {
                size_t j;

                for (j = 0; j < N + S; j++) {
                    ck_assert(isfinite(out[j]));
                }
            }
            buf.data[i] = (uint8_t)(buf.data[i] ^ 1u << bit);
        }
    }
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

/* decode() compares what is read with what is added up and what is only checked. */
TEST_EACH(long_units_whole_or_damaged_are_added_up_and_checked_as_they_are_read, 3)
{
    enum { MAX = 30000, BUFFERS = 2 };
    static const char *const shares[] = {"share=0.05", "share=0.3", "share=0.001"};
    float *x = malloc((MAX + BUFFERS) * sizeof(*x));
    float *out = malloc((MAX + BUFFERS) * sizeof(*out));
    unsigned good = 0;
    unsigned refused = 0;
    struct fl_rng rng;
    unsigned trial;

    fl_rng_seed(&rng, 77 + (uint64_t)_i);
    for (trial = 0; trial < 300; trial++) {
        size_t n = 2 + (size_t)fl_rng_below(&rng, MAX - 1);
        size_t piece = 1 + (size_t)fl_rng_below(&rng, trial % 2 == 0 ? n : 300);
        struct fl_layout *layout = unit_layout(n / 2, BUFFERS, n - n / 2, 0);
        struct fl_buf buf;
        uint64_t flips;
        size_t i;

        for (i = 0; i < n + BUFFERS; i++) {
            x[i] = (float)(fl_rng_normal(&rng) * (trial % 7 == 0 ? 1e-44 : 1));
        }
        fl_buf_init(&buf, 1u << 20);
        ck_assert_int_eq(encode(layout, shares[_i], x, &buf), FL_OK);
        for (flips = fl_rng_below(&rng, 3); flips > 0; flips--) {
            size_t at = (size_t)fl_rng_below(&rng, buf.len);

            buf.data[at] = (uint8_t)(buf.data[at] ^ 1u << fl_rng_below(&rng, 8));
        }
        if (decode(&fl_codec_ternary, layout, buf.data, buf.len, piece, out) == FL_OK) {
            good++;
        } else {
            refused++;
        }
        fl_buf_done(&buf);
        fl_layout_free(layout);
    }
    ck_assert_msg(good >= 50 && refused >= 20, "%u good, %u refused", good, refused);
    free(x);
    free(out);
}

TEST(validation_gives_the_norm_of_what_is_decoded)
{
    struct fl_layout *layout = unit_layout(20, 0, 0, 0);
    struct fl_codec_memory memory = {.data = by_hand, .len = sizeof(by_hand)};
    struct fl_codec_reader reader = fl_codec_memory_reader(&memory);
    struct fl_codec_decoder d;
    struct fl_codec_size got;

    ck_assert_int_eq(fl_codec_open(&d, &fl_codec_ternary, layout, 0, &reader), FL_OK);
    ck_assert_int_eq(fl_codec_measure(&d, &got), FL_OK);
    ck_assert_double_eq(got.norm_sq, 8);
    fl_layout_free(layout);
}
