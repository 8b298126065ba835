#include <math.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_impl.h"
#include "libfl/strategy/codec/codec_masked.h"
#include "libfl/strategy/strategy.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/codec_fixture.h"

/* Whole numbers of steps, rounded at random or from a threshold on. */

static struct fl_options *options_for(const char *step)
{
    return options_of(&fl_codec_steps.policy, step, NULL);
}

static int encode(const struct fl_layout *layout, const char *step, const float *x, uint64_t seed,
                  struct fl_buf *out)
{
    return encode_with(&fl_codec_steps, options_for(step), layout, x, seed, out);
}

static void coded_and_decoded(const struct fl_layout *layout, const char *step, const float *x,
                              uint64_t seed, float *out)
{
    code_with(&fl_codec_steps, options_for(step), layout, x, seed, out);
}

/* 3 entries, 1 buffer: step 1/8, the numbers as docs/dense.json has them. */
static const uint8_t by_hand[] = {0, 0, 2, 0, 3, 0, 0, 0, 0x9d, 1, 0x73, 0, 0, 0x80, 0x3f};

TEST(steps_have_the_documented_bytes)
{
    static const float x[4] = {0.125f, 0, -0.25f, 1};
    struct fl_layout *layout = unit_layout(3, 1, 0, 0);
    float out[4];
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, NULL, x, 1, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, sizeof(by_hand));
    ck_assert_mem_eq(buf.data, by_hand, sizeof(by_hand));
    ck_assert_int_eq(decode(&fl_codec_steps, layout, by_hand, sizeof(by_hand), 4, out), FL_OK);
    ck_assert_mem_eq(out, x, sizeof(x));
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

enum { N = 20000 };

static void draw(float x[N], double deviation)
{
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, 3);
    for (i = 0; i < N; i++) {
        x[i] = (float)(deviation * fl_rng_normal(&rng));
    }
}

TEST_EACH(an_entry_is_decoded_as_a_multiple_less_than_a_step_away, 3)
{
    static const char *const options[] = {"step=0.125", "step=1", "step=0.00000095367431640625"};
    static const double steps[] = {0.125, 1, 0x1p-20};
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    float *x = malloc(2 * N * sizeof(*x));
    float *out = x + N;
    size_t i;

    draw(x, 10 * steps[_i]);
    x[0] = 0;
    x[1] = -0.0f;
    x[2] = (float)(steps[_i] * 1000000);
    x[3] = -x[2];
    coded_and_decoded(layout, options[_i], x, 9, out);
    for (i = 0; i < N; i++) {
        double q = (double)out[i] / steps[_i];

        ck_assert(q == floor(q));
        ck_assert_double_lt(fabs((double)out[i] - (double)x[i]), steps[_i]);
    }
    for (i = 0; i < 4; i++) { /* multiples are exact, and there is no -0 */
        ck_assert_uint_eq(bits_of(out[i]), bits_of(x[i] + 0.0f));
    }
    free(x);
    fl_layout_free(layout);
}

/* sign(v) floor(|v| + 1 - h), whatever the seed. */
TEST(with_a_threshold_an_entry_is_sent_from_that_many_steps_on)
{
    static const float v[] = {0.49f, -0.51f, 0.69f, -0.71f, 1.69f, -1.71f, 0, -0.0f, 12.75f, 1};
    static const double half[] = {0, -1, 1, -1, 2, -2, 0, 0, 13, 1};
    static const double most[] = {0, 0, 0, -1, 1, -2, 0, 0, 13, 1};
    static const struct fl_component_option wrong[] = {{"threshold", "0.49"}};
    struct fl_layout *layout = unit_layout(ARRAY_LEN(v), 0, 0, 0);
    const struct fl_policy *policy = NULL;
    struct fl_options *options = NULL;
    struct fl_err err = {0};
    float x[ARRAY_LEN(v)];
    float out[ARRAY_LEN(v)];
    uint64_t seed;
    size_t i;

    for (i = 0; i < ARRAY_LEN(v); i++) {
        x[i] = v[i] * 0.125f;
    }
    for (seed = 0; seed < 20; seed++) {
        code_with(&fl_codec_steps,
                  options_of(&fl_codec_steps.policy, "step=0.125", "threshold=0.5", NULL), layout,
                  x, seed, out);
        for (i = 0; i < ARRAY_LEN(v); i++) {
            ck_assert(out[i] == (float)(half[i] * 0.125) && !(out[i] == 0 && signbit(out[i])));
        }
        code_with(&fl_codec_steps,
                  options_of(&fl_codec_steps.policy, "step=0.125", "threshold=0.7", NULL), layout,
                  x, seed, out);
        for (i = 0; i < ARRAY_LEN(v); i++) {
            ck_assert(out[i] == (float)(most[i] * 0.125));
        }
    }
    ck_assert_int_eq(
        fl_component_by_name(FL_COMPONENT_CODEC, "steps", wrong, 1, &policy, &options, &err),
        FL_ECONF);
    ck_assert_ptr_nonnull(strstr(err.msg, "'threshold': expected 0, or 0.5 to 1, found 0.49"));
    fl_layout_free(layout);
}

/* 2000 seeds: the deviation of the mean of an entry is at most a step / 2 / sqrt(2000). */
TEST(the_mean_over_many_seeds_is_the_update)
{
    enum { ENTRIES = 200, SEEDS = 2000 };
    struct fl_layout *layout = unit_layout(ENTRIES, 0, 0, 0);
    double sum[ENTRIES] = {0};
    double all = 0;
    float x[ENTRIES];
    float out[ENTRIES];
    uint64_t seed;
    size_t i;

    for (i = 0; i < ENTRIES; i++) {
        x[i] = ((float)i - 100) / 331;
    }
    for (seed = 0; seed < SEEDS; seed++) {
        coded_and_decoded(layout, NULL, x, seed, out);
        for (i = 0; i < ENTRIES; i++) {
            sum[i] += (double)out[i] - (double)x[i];
        }
    }
    for (i = 0; i < ENTRIES; i++) {
        ck_assert_double_lt(fabs(sum[i]) / SEEDS, 5 * 0.125 / 2 / sqrt(SEEDS));
        all += sum[i];
    }
    ck_assert_double_lt(fabs(all) / SEEDS / ENTRIES, 5 * 0.125 / 2 / sqrt(SEEDS * ENTRIES));
    fl_layout_free(layout);
}

/* With one entry the bounds are tight: it may have been rounded by almost a step. */
TEST(the_norm_before_rounding_is_within_the_bounds_of_a_single_entry)
{
    struct fl_layout *layout = unit_layout(1, 0, 0, 0);
    double low = 1;
    double high = 0;
    uint64_t seed;

    for (seed = 0; seed < 400; seed++) {
        float x = seed % 2 == 0 ? 0.9f * 0.125f : 0.1f * 0.125f;
        struct fl_codec_memory memory;
        struct fl_codec_reader reader;
        struct fl_codec_size size;
        struct fl_codec_decoder d;
        struct fl_buf buf;

        fl_buf_init(&buf, 100);
        ck_assert_int_eq(encode(layout, NULL, &x, seed, &buf), FL_OK);
        memory = (struct fl_codec_memory){.data = buf.data, .len = buf.len};
        reader = fl_codec_memory_reader(&memory);
        ck_assert_int_eq(fl_codec_open(&d, &fl_codec_steps, layout, 0, &reader), FL_OK);
        ck_assert_int_eq(fl_codec_measure(&d, &size), FL_OK);
        ck_assert_double_le(size.low, (double)x);
        ck_assert_double_ge(size.high, (double)x);
        low = fmin(low, size.norm_sq);
        high = fmax(high, size.norm_sq);
        fl_buf_done(&buf);
    }
    ck_assert(low < 1e-9 && high > 0.015); /* Both were decoded as 0 and as a step. */
    fl_layout_free(layout);
}

TEST(the_same_seed_codes_the_same_bytes_and_another_one_others)
{
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    float *x = malloc(N * sizeof(*x));
    struct fl_buf buf[3];
    size_t k;

    draw(x, 0.1);
    for (k = 0; k < 3; k++) {
        fl_buf_init(&buf[k], 1u << 20);
        ck_assert_int_eq(encode(layout, NULL, x, k == 2 ? 8 : 7, &buf[k]), FL_OK);
    }
    ck_assert_uint_eq(buf[0].len, buf[1].len);
    ck_assert_mem_eq(buf[0].data, buf[1].data, buf[0].len);
    ck_assert(buf[0].len != buf[2].len || memcmp(buf[0].data, buf[2].data, buf[0].len) != 0);
    for (k = 0; k < 3; k++) {
        fl_buf_done(&buf[k]);
    }
    free(x);
    fl_layout_free(layout);
}

/* Under a mask, too, where the codec sees another layout. */
TEST_EACH(the_seed_of_a_unit_reaches_the_codec, 2)
{
    struct fl_layout *layout = NULL;
    size_t n = N;
    float *x = malloc(N * sizeof(*x));
    uint8_t *keep = calloc(N, 1);
    struct fl_options *o = options_of(&fl_codec_steps.policy, NULL);
    struct fl_unit_update in = {.delta = x, .seed = 7, .keep = _i == 1 ? keep : NULL};
    struct fl_buf a;
    struct fl_buf b;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "u", "u.weight", &n, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_add(layout, "out", "out.weight", &n, 1, false, NULL), FL_OK);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    draw(x, 0.1);
    (void)memset(keep, 1, N / 2);
    fl_buf_init(&a, 1u << 20);
    fl_buf_init(&b, 1u << 20);
    ck_assert_int_eq(fl_unit_encode(&fl_codec_steps, o, layout, 0, &in, &a), FL_OK);
    in.seed = 8;
    ck_assert_int_eq(fl_unit_encode(&fl_codec_steps, o, layout, 0, &in, &b), FL_OK);
    ck_assert(a.len != b.len || memcmp(a.data, b.data, a.len) != 0);
    fl_buf_done(&a);
    fl_buf_done(&b);
    fl_options_free(o);
    free(x);
    free(keep);
    fl_layout_free(layout);
}

TEST(a_unit_that_did_not_change_takes_9_bytes)
{
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    float *x = calloc(N, sizeof(*x));
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, NULL, x, 1, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, 9);
    fl_buf_done(&buf);
    free(x);
    fl_layout_free(layout);
}

TEST(an_automatic_step_is_three_times_the_quadratic_mean_up_to_the_last_entry_that_is_not_0)
{
    enum { ENTRIES = 4000 };
    static const double wants[] = {0.375, 0x1p-20, 1};
    static const float sizes[] = {0.125f, 1e-9f, 100};
    struct fl_layout *layout = unit_layout(ENTRIES, 0, 0, 0);
    float *x = calloc(ENTRIES, sizeof(*x));
    size_t i;
    size_t k;

    for (k = 0; k < ARRAY_LEN(sizes); k++) {
        struct fl_buf buf;

        fl_buf_init(&buf, 1u << 20);
        for (i = 0; i < ENTRIES / 2; i++) {
            x[i] = i % 2 == 0 ? sizes[k] : -sizes[k];
        }
        ck_assert_int_eq(encode(layout, "step=auto", x, 1, &buf), FL_OK);
        ck_assert_double_eq_tol(fl__codec_get32(buf.data) * 0x1p-20, wants[k], 1e-6);
        fl_buf_done(&buf);
    }
    free(x);
    fl_layout_free(layout);
}

TEST(zeros_at_the_end_of_a_unit_take_no_bytes)
{
    struct fl_layout *layout = unit_layout(N, 1, 0, 0);
    struct fl_layout *one = unit_layout(N / 4, 1, 0, 0);
    float *x = calloc(2 * (N + 1), sizeof(*x));
    float *out = x + N + 1;
    struct fl_buf buf[2];
    size_t k;

    draw(x, 1);
    (void)memset(x + N / 4, 0, (N - N / 4 + 1) * sizeof(*x));
    x[N / 4 - 1] = 1;
    for (k = 0; k < 2; k++) {
        fl_buf_init(&buf[k], 1u << 20);
        ck_assert_int_eq(encode(k == 0 ? layout : one, NULL, x, 1, &buf[k]), FL_OK);
    }
    ck_assert_uint_eq(buf[0].len, buf[1].len);
    ck_assert_mem_eq(buf[0].data, buf[1].data, buf[0].len);
    ck_assert_int_eq(decode(&fl_codec_steps, layout, buf[0].data, buf[0].len, 777, out), FL_OK);
    ck_assert_uint_eq(bits_of(out[N / 4 - 1]), bits_of(1));
    ck_assert_mem_eq(out + N / 4, x + N / 4, (N - N / 4 + 1) * sizeof(*x));
    fl_buf_done(&buf[0]);
    fl_buf_done(&buf[1]);
    free(x);
    fl_layout_free(one);
    fl_layout_free(layout);
}

TEST(entries_of_2_to_the_20_steps_are_not_encoded)
{
    struct fl_layout *layout = unit_layout(2, 0, 0, 0);
    float x[2] = {0.5f, 131071.8f};
    float out[2];
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    coded_and_decoded(layout, NULL, x, 1, out);
    for (x[1] = 131071.875f; x[1] < 1e38f; x[1] *= 2) {
        ck_assert_int_eq(encode(layout, NULL, x, 1, &buf), FL_ENUMERIC);
        x[1] = -x[1];
        ck_assert_int_eq(encode(layout, NULL, x, 1, &buf), FL_ENUMERIC);
        x[1] = -x[1];
        ck_assert_uint_eq(buf.len, 0);
    }
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

static const struct {
    const char *step, *message;
} steps[] = {
    {"0", "'step': expected 'auto' or a number from 2^-20 to 1, found '0'"},
    {"-0.125", "'step': expected 'auto' or a number from 2^-20 to 1, found '-0.125'"},
    {"1.5", "'step': expected 'auto' or a number from 2^-20 to 1, found '1.5'"},
    {"Auto", "'step': expected 'auto' or a number from 2^-20 to 1, found 'Auto'"},
    {"0.1", "'step': 0.1"},
    {"0.1", " is not a multiple of 2^-20; the nearest one is 0.10000038146"},
};

TEST_EACH(a_step_that_is_no_multiple_of_2_to_the_minus_20_is_refused, (int)ARRAY_LEN(steps))
{
    struct fl_options *o = options_of(&fl_codec_steps.policy, NULL);
    struct fl_err err = {.code = FL_OK};
    int rv = fl_options_set(o, "step", steps[_i].step, &err);

    if (rv == FL_OK) {
        rv = fl_codec_steps.policy.check(o, &err);
    }
    ck_assert_int_eq(rv, FL_ECONF);
    ck_assert_msg(strstr(err.msg, steps[_i].message) != NULL, "%s", err.msg);
    fl_options_free(o);
}

TEST_EACH(steps_refuse_what_they_never_write, 18)
{
    static const struct {
        size_t len;
        uint8_t bytes[28];
        int rv;
    } rows[] = {
        {15, {0, 0, 2, 0, 3, 0, 0, 0, 0x9d, 1, 0x73, 0, 0, 0x80, 0x3f}, FL_OK},
        {25, {0, 0, 16, 0, 3, 0, 0, 0, 0, 0xff, 0xff, 0xf, 0, 1, 0, 0xf0, 0xff, 1}, FL_OK},
        {13, {0, 0, 2, 0, 0, 0, 0, 0, 0}, FL_OK}, /* all are 0 */
        /* step 0, and above 1 */
        {15, {0, 0, 0, 0, 3, 0, 0, 0, 0x9d, 1, 0x73, 0, 0, 0x80, 0x3f}, FL_EFORMAT},
        {15, {1, 0, 16, 0, 3, 0, 0, 0, 0x9d, 1, 0x73, 0, 0, 0x80, 0x3f}, FL_EFORMAT},
        /* more numbers than entries, fewer, and one that is 0 at the end */
        {19, {0, 0, 2, 0, 4, 0, 0, 0, 0x9d, 1, 0x73}, FL_EFORMAT},
        {15, {0, 0, 2, 0, 2, 0, 0, 0, 0x9d, 1, 0x73, 0, 0, 0x80, 0x3f}, FL_EFORMAT},
        {25, {0, 0, 16, 0, 3, 0, 0, 0, 0, 0xff, 0xff, 0xf, 0, 1, 0, 0xf0, 0xff}, FL_EFORMAT},
        {14, {0, 0, 2, 0, 1, 0, 0, 0, 1, 0}, FL_EFORMAT},
        /* a byte less and more, h, the end, a buffer */
        {15, {0, 0, 2, 0, 3, 0, 0, 0, 0x9d, 2, 0x73, 0, 0, 0x80, 0x3f}, FL_EFORMAT},
        {16, {0, 0, 2, 0, 3, 0, 0, 0, 0x9d, 1, 0x73, 0, 0, 0, 0x80, 0x3f}, FL_EFORMAT},
        {15, {0, 0, 2, 0, 3, 0, 0, 0, 0x9e, 1, 0x73, 0, 0, 0x80, 0x3f}, FL_EFORMAT},
        {15, {0, 0, 2, 0, 3, 0, 0, 0, 0x9d, 1, 0x74, 0, 0, 0x80, 0x3f}, FL_EFORMAT},
        {15, {0, 0, 2, 0, 3, 0, 0, 0, 0x9d, 1, 0x73, 0, 0, 0x80, 0x7f}, FL_ENUMERIC},
        /* 2^20 and -2^20 */
        {25, {0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 1}, FL_EFORMAT},
        {25, {0, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0, 0xf0, 0xff, 0, 0, 0, 0, 1}, FL_EFORMAT},
        {11, {0, 0, 2, 0, 3, 0, 0, 0, 1, 0, 0}, FL_EFORMAT},
        {0, {0}, FL_EFORMAT},
    };
    struct fl_layout *layout = unit_layout(3, 1, 0, 0);
    float out[4];

    ck_assert_int_eq(decode(&fl_codec_steps, layout, rows[_i].bytes, rows[_i].len, 4, out),
                     rows[_i].rv);
    ck_assert_int_eq(decode(&fl_codec_steps, layout, rows[_i].bytes, rows[_i].len, 1, out),
                     rows[_i].rv);
    fl_layout_free(layout);
}
