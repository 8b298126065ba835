#include <float.h>
#include <math.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/codec_impl.h"
#include "tests/lib/suites.h"
#include "tests/libfl/strategy/codec_fixture.h"

/* Levels of a norm, rounded at random (QSGD). */

struct how {
    const char *levels, *bucket, *norm;
};

static struct fl_options *options_for(const struct how *how)
{
    return options_of(&fl_codec_qsgd.policy, how->levels, how->bucket, how->norm, NULL);
}

static int encode(const struct fl_layout *layout, const struct how *how, const float *x,
                  uint64_t seed, struct fl_buf *out)
{
    return encode_with(&fl_codec_qsgd, options_for(how), layout, x, seed, out);
}

static void coded_and_decoded(const struct fl_layout *layout, const struct how *how, const float *x,
                              uint64_t seed, float *out)
{
    code_with(&fl_codec_qsgd, options_for(how), layout, x, seed, out);
}

/* 3 entries, 1 buffer: 2 levels of the largest, 1; the numbers as docs/dense.json has them. */
static const uint8_t by_hand[] = {1, 2, 0, 0,    0,    3,    0, 0,    0, 3, 0,    0,
                                  0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73, 0, 0, 0x80, 0x3f};

TEST(levels_have_the_documented_bytes)
{
    static const struct how how = {"levels=2", "bucket=0", "norm=max"};
    static const float x[4] = {0.5f, 0, -1, 1};
    struct fl_layout *layout = unit_layout(3, 1, 0, 0);
    float out[4];
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, &how, x, 1, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, sizeof(by_hand));
    ck_assert_mem_eq(buf.data, by_hand, sizeof(by_hand));
    ck_assert_int_eq(decode(&fl_codec_qsgd, layout, by_hand, sizeof(by_hand), 4, out), FL_OK);
    ck_assert_mem_eq(out, x, sizeof(x));
    fl_buf_done(&buf);
    fl_layout_free(layout);
}

enum { N = 2000 };

static void draw(float x[N])
{
    struct fl_rng rng;
    size_t i;

    fl_rng_seed(&rng, 3);
    for (i = 0; i < N; i++) {
        x[i] = (float)(fl_rng_normal(&rng) * (i < 600 ? 1 : 0.01));
    }
    x[0] = 0;
    x[1] = -0.0f;
}

/* A plain implementation of section 3.1: the same draws, the same levels. */
static void plain(const float *x, double s, size_t bucket, bool max, uint64_t seed, double *out,
                  double *level)
{
    struct fl_rng rng;
    size_t from;
    size_t i;

    fl_rng_seed(&rng, seed);
    for (from = 0; from < N; from += bucket) {
        size_t end = from + bucket < N ? from + bucket : N;
        double norm = 0;

        for (i = from; i < end; i++) {
            norm = max ? fmax(norm, fabs((double)x[i])) : norm + (double)x[i] * (double)x[i];
        }
        norm = max ? norm : sqrt(norm);
        norm = (double)(float)norm < norm ? (double)nextafterf((float)norm, INFINITY)
                                          : (double)(float)norm;
        for (i = from; i < end; i++) {
            double a = fabs((double)x[i]) / norm * s;
            double q = floor(a) + (fl_rng_unit(&rng) < a - floor(a) ? 1 : 0);

            out[i] = (x[i] < 0 ? -1 : 1) * norm * q / s;
            level[i] = norm / s;
        }
    }
}

static const struct {
    struct how how;
    double levels;
    size_t bucket;
    bool max;
} forms[] = {
    {{NULL, NULL, NULL}, 16, 512, false},
    {{"levels=1", "bucket=0", NULL}, 1, N, false},
    {{"levels=255", "bucket=16", NULL}, 255, 16, false},
    {{"levels=4", "bucket=100", "norm=max"}, 4, 100, true},
    {{"levels=1048576", "bucket=512", "norm=max"}, 1048576, 512, true},
};

TEST_EACH(an_entry_is_decoded_as_a_plain_implementation_has_it, (int)ARRAY_LEN(forms))
{
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    float *x = malloc(2 * N * sizeof(*x));
    double *want = malloc(2 * N * sizeof(*want));
    float *out = x + N;
    size_t differ = 0;
    size_t i;

    draw(x);
    coded_and_decoded(layout, &forms[_i].how, x, 9, out);
    plain(x, forms[_i].levels, forms[_i].bucket, forms[_i].max, 9, want, want + N);
    for (i = 0; i < N; i++) {
        double off = fabs((double)out[i] - want[i]);

        /* A draw beside the limit may fall to the other side where the last bit differs. */
        differ += off > 1e-6 * fabs(want[i]);
        ck_assert_double_lt(fabs((double)out[i] - (double)x[i]), want[N + i] * (1 + 1e-6));
        ck_assert(out[i] * x[i] >= 0);
    }
    ck_assert_uint_le(differ, 1);
    free(x);
    free(want);
    fl_layout_free(layout);
}

enum { ENTRIES = 200, SEEDS = 2000 };

/* Lemma 3.1: unbiased; the variance is at most min(n / s^2, sqrt(n) / s) times the squared norm;
   at most s (s + sqrt(n)) entries are not 0 in the mean. */
TEST_EACH(the_mean_over_many_seeds_is_the_update_and_its_variance_that_of_the_lemma, 3)
{
    static const struct how hows[] = {{"levels=1", "bucket=0", NULL},
                                      {"levels=4", "bucket=0", NULL},
                                      {"levels=64", "bucket=0", NULL}};
    static const double levels[] = {1, 4, 64};
    struct fl_layout *layout = unit_layout(ENTRIES, 0, 0, 0);
    double sum[ENTRIES] = {0};
    double variance = 0;
    double nonzero = 0;
    double norm_sq = 0;
    double s = levels[_i];
    float x[ENTRIES];
    float out[ENTRIES];
    uint64_t seed;
    size_t i;

    for (i = 0; i < ENTRIES; i++) {
        x[i] = ((float)i - 100) / 331;
        norm_sq += (double)x[i] * (double)x[i];
    }
    for (seed = 0; seed < SEEDS; seed++) {
        coded_and_decoded(layout, &hows[_i], x, seed, out);
        for (i = 0; i < ENTRIES; i++) {
            double off = (double)out[i] - (double)x[i];

            sum[i] += off;
            variance += off * off / SEEDS;
            nonzero += out[i] != 0 ? 1.0 / SEEDS : 0;
        }
    }
    for (i = 0; i < ENTRIES; i++) {
        ck_assert_double_lt(fabs(sum[i]) / SEEDS, 5 * sqrt(norm_sq) / s / 2 / sqrt(SEEDS));
    }
    ck_assert_double_lt(variance, fmin(ENTRIES / (s * s), sqrt(ENTRIES) / s) * norm_sq);
    ck_assert_double_lt(nonzero, s * (s + sqrt(ENTRIES)));
    fl_layout_free(layout);
}

TEST(the_same_seed_codes_the_same_bytes_and_another_one_others)
{
    static const struct how how = {NULL, NULL, NULL};
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    float *x = malloc(N * sizeof(*x));
    struct fl_buf buf[3];
    size_t k;

    draw(x);
    for (k = 0; k < 3; k++) {
        fl_buf_init(&buf[k], 1u << 20);
        ck_assert_int_eq(encode(layout, &how, x, k == 2 ? 8 : 7, &buf[k]), FL_OK);
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

TEST(a_unit_that_did_not_change_takes_14_bytes_and_4_a_bucket)
{
    static const struct how how = {NULL, NULL, NULL};
    struct fl_layout *layout = unit_layout(N, 0, 0, 0);
    float *x = calloc(N, sizeof(*x));
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, &how, x, 1, &buf), FL_OK);
    ck_assert_uint_eq(buf.len, 14 + 4 * 4);
    fl_buf_done(&buf);
    free(x);
    fl_layout_free(layout);
}

/* Any norm that is no smaller than the entries has the right mean. */
TEST(a_norm_that_no_float_has_is_the_largest_one_and_the_mean_is_still_exact)
{
    static const struct how how = {"levels=8", "bucket=0", NULL};
    struct fl_layout *layout = unit_layout(3, 0, 0, 0);
    const float x[3] = {FLT_MAX, -FLT_MAX, FLT_MAX / 2};
    float out[3];

    coded_and_decoded(layout, &how, x, 1, out);
    ck_assert_mem_eq(out, x, sizeof(x));
    fl_layout_free(layout);
}

TEST_EACH(a_bucket_of_fewer_than_16_entries_is_refused, 4)
{
    static const char *const buckets[] = {"1", "15", "0", "16"};
    struct fl_options *o = options_of(&fl_codec_qsgd.policy, NULL);
    struct fl_err err = {.code = FL_OK};

    ck_assert_int_eq(fl_options_set(o, "bucket", buckets[_i], &err), FL_OK);
    ck_assert_int_eq(fl_codec_qsgd.policy.check(o, &err), _i < 2 ? FL_ECONF : FL_OK);
    ck_assert(_i >= 2 ||
              strstr(err.msg, "'bucket': expected 0, for one norm a layer, or 16") != NULL);
    fl_options_free(o);
}

TEST_EACH(qsgd_refuses_what_it_never_writes, 20)
{
    static const struct {
        size_t len;
        uint8_t bytes[36];
        int rv;
    } rows[] = {
        {24, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_OK},
        {24, {0, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_OK},
        {22, {0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0}, FL_OK}, /* all are 0 */
        /* another norm, no level, too many */
        {24, {2, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        {24, {1, 0, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        {24, {1, 1, 0, 16, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        /* buckets of 0, 2 and 4 of 3 entries */
        {24, {1, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        {24, {1, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        {24, {1, 2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        /* more numbers than entries, one that is 0 at the end, a magnitude above s */
        {28, {1, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        {23, {1, 2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x80, 0x3f, 1, 0}, FL_EFORMAT},
        {24, {1, 1, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        /* norms: 0 beside numbers, -0, -1, infinite, NaN */
        {24, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0x9d, 1, 0x73}, FL_EFORMAT},
        {24, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0x80, 0x9d, 1, 0x73}, FL_EFORMAT},
        {24, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0xbf, 0x9d, 1, 0x73}, FL_EFORMAT},
        {24, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x7f, 0x9d, 1, 0x73}, FL_ENUMERIC},
        {24, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0xc0, 0xff, 0x9d, 1, 0x73}, FL_ENUMERIC},
        /* a byte less and more */
        {23, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        {25, {1, 2, 0, 0, 0, 3, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0x80, 0x3f, 0x9d, 1, 0x73}, FL_EFORMAT},
        {16, {1, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}, FL_EFORMAT},
    };
    struct fl_layout *layout = unit_layout(3, 1, 0, 0);
    float out[4];

    ck_assert_int_eq(decode(&fl_codec_qsgd, layout, rows[_i].bytes, rows[_i].len, 4, out),
                     rows[_i].rv);
    ck_assert_int_eq(decode(&fl_codec_qsgd, layout, rows[_i].bytes, rows[_i].len, 1, out),
                     rows[_i].rv);
    fl_layout_free(layout);
}

/* Of a client that sends large norms and no numbers: what is decoded is far below its claim. */
TEST(a_norm_without_numbers_has_a_bound_of_the_levels)
{
    static const struct how how = {"levels=64", "bucket=16", NULL};
    struct fl_layout *layout = unit_layout(16, 0, 0, 0);
    struct fl_codec_memory memory;
    struct fl_codec_reader reader;
    struct fl_codec_decoder d;
    struct fl_codec_size size;
    const float x[16] = {0};
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(encode(layout, &how, x, 1, &buf), FL_OK);
    fl__codec_put32(buf.data + 13, 0x447a0000); /* 1000 */
    memory = (struct fl_codec_memory){.data = buf.data, .len = buf.len};
    reader = fl_codec_memory_reader(&memory);
    ck_assert_int_eq(fl_codec_open(&d, &fl_codec_qsgd, layout, 0, &reader), FL_OK);
    ck_assert_int_eq(fl_codec_measure(&d, &size), FL_OK);
    /* Each entry less than 1000 / 64: 62.5 together, and no update that was coded has a norm of
     * 1000. */
    ck_assert_double_lt(size.high, 63);
    ck_assert_double_gt(size.low, size.high);
    fl_buf_done(&buf);
    fl_layout_free(layout);
}
