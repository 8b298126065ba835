/* What clients of FedMix summary, and what is refused as a summary. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "tests/lib/suites.h"
#include "tests/libfl/strategy/fedmix_fixture.h"

TEST(the_union_is_all_pairs_in_the_order_of_the_summaries)
{
    static const uint32_t sizes[] = {3, 1, 1, 5, 2, 1, 4, 1, 1};
    struct fl__mix_union all = {0};
    struct fl_err err = {0};
    uint64_t total = 0;
    struct fl_buf means;
    struct fl_solver_bytes input = {0};
    const struct fl_solver_bytes none = {0};
    size_t o;
    uint64_t i;
    size_t at = 0;

    fl_buf_init(&means, SIZE_MAX);
    for (o = 0; o < ARRAY_LEN(sizes); o++) {
        input = put_summary(&means, sizes[o], 1, o);
    }
    ck_assert_msg(fl__mix_union_open(&input, &none, INPUTS, CLASSES, &all, &err) == FL_OK, "%s",
                  err.msg);
    for (o = 0; o < ARRAY_LEN(sizes); o++) {
        at += FL__MIX_HEADER;
        for (i = total; i < total + sizes[o]; i++) {
            float pair[INPUTS + CLASSES];

            fl__mix_union_pair(&all, i, pair, pair + INPUTS);
            ck_assert_mem_eq(pair, means.data + at, sizeof(pair));
            at += sizeof(pair);
        }
        total += sizes[o];
    }
    ck_assert_uint_eq(all.n_pairs, total);
    fl__mix_union_done(&all);
    fl_buf_done(&means);
}

/* Samples are mixed with what others told; one of others that tells the same stays. */
TEST(the_clients_own_summary_is_left_out_once)
{
    static const uint32_t sizes[] = {2, 3, 1, 3};
    static const uint64_t seeds[] = {1, 2, 3, 2};
    struct fl_solver_bytes input = {0}, own = {0};
    struct fl__mix_union all;
    struct fl_buf means, told;
    float pair[INPUTS + CLASSES];
    size_t o;

    fl_buf_init(&means, SIZE_MAX);
    fl_buf_init(&told, SIZE_MAX);
    for (o = 0; o < ARRAY_LEN(sizes); o++) {
        input = put_summary(&means, sizes[o], 1, seeds[o]);
    }
    own = put_summary(&told, 3, 1, 2);
    ck_assert_int_eq(fl__mix_union_open(&input, &own, INPUTS, CLASSES, &all, NULL), FL_OK);
    ck_assert_uint_eq(all.n_pairs, 2 + 1 + 3);
    ck_assert_uint_eq(all.n_summaries, 3);
    fl__mix_union_pair(&all, 2, pair, pair + INPUTS);
    /* Behind two summaries with their headers: the one of the third client. */
    ck_assert_mem_eq(pair, means.data + 3 * FL__MIX_HEADER + 5 * sizeof(pair), sizeof(pair));
    fl__mix_union_done(&all);
    told.data[FL__MIX_HEADER] ^= 1; /* data that changed since is nobody's */
    ck_assert_int_eq(fl__mix_union_open(&input, &own, INPUTS, CLASSES, &all, NULL), FL_OK);
    ck_assert_uint_eq(all.n_pairs, 9);
    fl__mix_union_done(&all);
    fl_buf_done(&means);
    fl_buf_done(&told);
}

/* --- summaries --- */

#define ROWS 10

static float value_of(size_t i, size_t j)
{
    return (float)(i * 100 + j);
}

static int32_t sample(void *ctx, size_t i, float *x)
{
    size_t *n_seen = ctx;
    size_t j;

    (*n_seen)++;
    for (j = 0; j < INPUTS; j++) {
        x[j] = value_of(i, j);
    }
    return (int32_t)(i % 3);
}

static struct fl_buf summary(const char *group, uint64_t seed, size_t n)
{
    struct fl_options *o = options_of(&fl_solver_fedmix.policy, group, NULL);
    size_t n_seen = 0;
    struct fl_solver_data data = {
        .n = n, .dim = INPUTS, .classes = CLASSES, .sample = sample, .ctx = &n_seen};
    struct fl_err err = {0};
    struct fl_buf out;

    fl_buf_init(&out, FL_SUMMARY_MAX);
    ck_assert_msg(fl_solver_fedmix.summary(o, &data, seed, &out, &err) == FL_OK, "%s", err.msg);
    ck_assert_uint_eq(n_seen, n);
    ck_assert_msg(fl_solver_fedmix.summary_check(o, out.data, out.len, INPUTS, CLASSES, &err) ==
                      FL_OK,
                  "%s", err.msg);
    ck_assert_int_eq(fl_solver_fedmix.summary_check(o, out.data, out.len, 0, 0, &err), FL_OK);
    fl_options_free(o);
    return out;
}

/* Behind a header (docs/algorithms.md#mix-up-from-means); every sample is in one group. */
TEST_EACH(a_summary_is_the_means_of_groups, 6)
{
    static const struct {
        const char *group;
        size_t n, size, pairs;
    } rows[] = {
        {"group=0", ROWS, ROWS, 1},  {"group=4", ROWS, 4, 2},    {"group=5", ROWS, 5, 2},
        {"group=99", ROWS, ROWS, 1}, {"group=9", ROWS, ROWS, 1}, {"group=3", ROWS, 3, 3},
    };
    struct fl_buf out = summary(rows[_i].group, 8, rows[_i].n);
    size_t width = INPUTS + CLASSES;
    double sum[INPUTS + CLASSES] = {0};
    uint32_t words[3];
    size_t i, j;

    ck_assert_uint_eq(out.len, FL__MIX_HEADER + rows[_i].pairs * width * sizeof(float));
    ck_assert_mem_eq(out.data, "FLMX", 4);
    (void)memcpy(words, out.data + 4, sizeof(words));
    ck_assert_uint_eq(words[0], INPUTS);
    ck_assert_uint_eq(words[1], CLASSES);
    ck_assert_uint_eq(words[2], rows[_i].pairs);
    for (i = 0; i < rows[_i].pairs; i++) {
        /* No mean is of fewer samples than a group: the last one has the rest. */
        size_t rest = rows[_i].n % rows[_i].size;
        size_t size = rows[_i].size + (i + 1 == rows[_i].pairs ? rest : 0);

        for (j = 0; j < width; j++) {
            float v;

            (void)memcpy(&v, out.data + FL__MIX_HEADER + (i * width + j) * sizeof(v), sizeof(v));
            sum[j] += (double)v * (double)size;
        }
    }
    for (j = 0; j < INPUTS; j++) {
        double want = (double)(rows[_i].n * (rows[_i].n - 1) / 2 * 100 + rows[_i].n * j);

        ck_assert_double_eq_tol(sum[j], want, 1e-3);
    }
    for (j = 0; j < CLASSES; j++) {
        double want = 0;

        for (i = 0; i < rows[_i].n; i++) {
            want += i % 3 == j ? 1 : 0;
        }
        ck_assert_double_eq_tol(sum[INPUTS + j], want, 1e-5);
    }
    fl_buf_done(&out);
}

TEST(the_seed_decides_who_is_grouped_with_whom)
{
    struct fl_buf a = summary("group=4", 8, ROWS);
    struct fl_buf b = summary("group=4", 8, ROWS);
    struct fl_buf c = summary("group=4", 9, ROWS);

    ck_assert_uint_eq(a.len, b.len);
    ck_assert_mem_eq(a.data, b.data, a.len);
    ck_assert_mem_ne(a.data, c.data, a.len);
    fl_buf_done(&a);
    fl_buf_done(&b);
    fl_buf_done(&c);
}

static int32_t bad_sample(void *ctx, size_t i, float *x)
{
    (void)memset(x, 0, INPUTS * sizeof(*x));
    x[2] = i == 3 ? *(const float *)ctx : 1;
    return 0;
}

static int32_t no_sample(void *ctx, size_t i, float *x)
{
    (void)ctx;
    (void)i;
    (void)x;
    ck_abort_msg("nothing is read for a summary that would be too large");
    return 0;
}

TEST(data_that_cannot_be_collection_is_refused)
{
    struct fl_options *o = options_of(&fl_solver_fedmix.policy, "group=2", NULL);
    float bad = NAN;
    struct fl_solver_data data = {
        .n = ROWS, .dim = INPUTS, .classes = CLASSES, .sample = bad_sample, .ctx = &bad};
    struct fl_err err = {0};
    struct fl_buf out;

    fl_buf_init(&out, FL_SUMMARY_MAX);
    ck_assert_int_eq(fl_solver_fedmix.summary(o, &data, 1, &out, &err), FL_ENUMERIC);
    ck_assert_msg(strstr(err.msg, "not finite") != NULL, "%s", err.msg);
    bad = INFINITY;
    ck_assert_int_eq(fl_solver_fedmix.summary(o, &data, 1, &out, &err), FL_ENUMERIC);
    data.sample = no_sample;
    data.n = 1000000;
    data.dim = 3072;
    ck_assert_int_eq(fl_solver_fedmix.summary(o, &data, 1, &out, &err), FL_ELIMIT);
    ck_assert_msg(strstr(err.msg, "solver.group") != NULL, "%s", err.msg);
    /* A group of one would be the sample itself. */
    ck_assert_int_eq(fl_solver_fedmix.policy.check(o, &err), FL_OK);
    fl_options_free(o);
    o = options_of(&fl_solver_naivemix.policy, "group=1", NULL);
    ck_assert_int_eq(fl_solver_naivemix.policy.check(o, &err), FL_ECONF);
    ck_assert_msg(strstr(err.msg, "samples instead of means") != NULL, "%s", err.msg);
    fl_options_free(o);
    fl_buf_done(&out);
}

/* A summary of two pairs that is good, and one thing that is not. */
TEST_EACH(a_malformed_summary_is_refused, 22)
{
    static const struct {
        size_t at;     /* a word of the summary … */
        uint32_t word; /* … that becomes this, unless at is SIZE_MAX */
        int more;      /* bytes at the end */
        const char *says;
    } rows[] = {
        {SIZE_MAX, 0, 1, "followed by 1 unexpected bytes"},
        {SIZE_MAX, 0, 44, "followed by 44 unexpected bytes"},
        {SIZE_MAX, 0, -1, "is too short for the 2 pairs"},
        {SIZE_MAX, 0, -88, "is too short for the 2 pairs"},
        {SIZE_MAX, 0, -89, "is shorter than its header"},
        {SIZE_MAX, 0, -104, "is shorter than its header"},
        {0, 0x58584d46, 0, "does not begin with 'FLMX'"},
        {1, 0, 0, "expected numbers above 0"},
        {2, 0, 0, "expected numbers above 0"},
        {3, 0, 0, "expected numbers above 0"},
        {3, 3, 0, "is too short for the 3 pairs"},
        {3, 1, 0, "followed by 44 unexpected bytes"},
        {3, UINT32_MAX, 0, "is too short for the"},
        {1, UINT32_MAX, 0, "is too short for the"},
        {2, UINT32_MAX, 0, "is too short for the"},
        {1, INPUTS - 1, 0, "expected the network's 7 inputs"},
        {2, CLASSES - 1, 0, "and 4 classes"},
        {4, 0x7fc00000, 0, "data summary: pair 1 is not finite"},
        {15 + 3, 0xff800000, 0, "data summary: pair 2 is not finite"},
        {4 + 7, 0x7f800000, 0, "data summary: pair 1 is not finite"},
        {4 + 7, 0x40000000, 0, "the mean label of pair 1 is not a distribution"},
        {4 + 7, 0xbf000000, 0, "a negative share"}, /* with the word below: the sum is 1 */
    };
    struct fl_options *o = options_of(&fl_solver_fedmix.policy, NULL);
    struct fl_err err = {0};
    struct fl_buf means;
    uint8_t *exact;
    size_t len;

    fl_buf_init(&means, SIZE_MAX);
    (void)put_summary(&means, 2, 1, 1);
    ck_assert_uint_eq(means.len, 104);
    len = (size_t)((int)means.len + rows[_i].more);
    ck_assert_int_eq(fl_buf_add(&means, "0123456789012345678901234567890123456789012345678901", 52),
                     FL_OK);
    if (rows[_i].at != SIZE_MAX) {
        (void)memcpy(means.data + 4 * rows[_i].at, &rows[_i].word, 4);
        if (rows[_i].word == 0xbf000000) {
            (void)memcpy(means.data + 4 * (rows[_i].at + 1), (const float[]){1.5f}, 4);
        }
    }
    /* Of its own size, so that a sanitizer sees what is read behind it. */
    exact = malloc(len > 0 ? len : 1);
    (void)memcpy(exact, means.data, len);
    ck_assert_int_eq(fl_solver_fedmix.summary_check(o, exact, len, INPUTS, CLASSES, &err),
                     FL_EFORMAT);
    ck_assert_msg(strstr(err.msg, rows[_i].says) != NULL, "'%s' does not say '%s'", err.msg,
                  rows[_i].says);
    free(exact);
    fl_options_free(o);
    fl_buf_done(&means);
}
