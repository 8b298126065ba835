#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/codec/dense_code.h"
#include "tests/lib/suites.h"

/* Magnitudes that are counted when an entropy is computed. */
#define COUNTED 4096

enum shape { LAPLACE, NORMAL };

static const double deviations[] = {0.2, 0.3, 0.5, 1, 2, 4, 8};
#define DEVIATIONS ARRAY_LEN(deviations)

static int32_t *drawn(enum shape shape, double deviation, size_t n, uint64_t seed)
{
    int32_t *values = malloc((n + 1) * sizeof(*values));
    struct fl_rng rng;
    size_t i;

    ck_assert_ptr_nonnull(values);
    fl_rng_key(&rng, seed, FL_RNG_TEST, 0, 0);
    for (i = 0; i < n; i++) {
        double u = fl_rng_unit(&rng) - 0.5;
        double x =
            shape == NORMAL ? fl_rng_normal(&rng) : copysign(log(1 - 2 * fabs(u)), u) / sqrt(2);

        values[i] = (int32_t)lround(x * deviation);
    }
    return values;
}

/* Bytes of the empirical entropy of the values, with their signs. */
static double entropy_bytes(const int32_t *values, size_t n)
{
    size_t counts[2 * COUNTED + 1] = {0};
    double bits = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        ck_assert_int_le(abs(values[i]), COUNTED);
        counts[values[i] + COUNTED]++;
    }
    for (i = 0; i <= 2 * COUNTED; i++) {
        bits -= counts[i] > 0 ? (double)counts[i] * log2((double)counts[i] / (double)n) : 0;
    }
    return bits / 8;
}

/* Decode data[len] in a copy of its own, so that the sanitizer sees every read past it. */
static int decode_copy(const uint8_t *data, size_t len, size_t n, int32_t *out, size_t *ret_used,
                       struct fl_err *err)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);
    int rv;

    ck_assert_ptr_nonnull(copy);
    if (len > 0) {
        (void)memcpy(copy, data, len);
    }
    rv = fl_dense_decode(copy, len, n, out, ret_used, err);
    free(copy);
    return rv;
}

/* Bytes of the coded form, which is decoded again, also with other bytes behind it. */
static size_t there_and_back(const int32_t *values, size_t n)
{
    int32_t *out = malloc((n + 1) * sizeof(*out));
    struct fl_buf buf;
    size_t used = 0;
    size_t len;

    ck_assert_ptr_nonnull(out);
    fl_buf_init(&buf, SIZE_MAX / 2);
    ck_assert_int_eq(fl_dense_encode(values, n, &buf), FL_OK);
    len = buf.len;
    ck_assert_uint_le(len, fl_dense_max_size(n));
    ck_assert_int_eq(decode_copy(buf.data, len, n, out, &used, NULL), FL_OK);
    ck_assert_uint_eq(used, len);
    ck_assert(n == 0 || memcmp(out, values, n * sizeof(*out)) == 0);
    ck_assert_int_eq(fl_buf_add(&buf, "\x5a\xff", 2), FL_OK);
    (void)memset(out, 0, n * sizeof(*out));
    ck_assert_int_eq(decode_copy(buf.data, buf.len, n, out, &used, NULL), FL_OK);
    ck_assert_uint_eq(used, len);
    ck_assert(n == 0 || memcmp(out, values, n * sizeof(*out)) == 0);
    fl_buf_done(&buf);
    free(out);
    return len;
}

/* Head, length and the end of the code are up to 5 bytes. */
TEST_EACH(rounded_laplace_and_normal_numbers_take_their_entropy_and_3_percent, 2 * (int)DEVIATIONS)
{
    static const size_t counts[] = {1000, 3000, 10000, 100000};
    enum shape shape = _i < (int)DEVIATIONS ? LAPLACE : NORMAL;
    double deviation = deviations[(size_t)_i % DEVIATIONS];
    size_t k;

    for (k = 0; k < ARRAY_LEN(counts); k++) {
        uint64_t seed;

        for (seed = 0; seed < 4; seed++) {
            int32_t *values = drawn(shape, deviation, counts[k], seed);
            size_t len = there_and_back(values, counts[k]);

            ck_assert_double_le((double)len, 1.03 * entropy_bytes(values, counts[k]) + 5);
            free(values);
        }
    }
}

TEST(numbers_that_are_all_0_take_a_handful_of_bytes)
{
    size_t n;

    for (n = 1; n <= 10000000; n *= 10) {
        int32_t *values = calloc(n, sizeof(*values));

        ck_assert_ptr_nonnull(values);
        ck_assert_uint_le(there_and_back(values, n), 4);
        free(values);
    }
    ck_assert_uint_eq(there_and_back(NULL, 0), 1);
}

TEST(ten_small_numbers_take_at_most_a_byte_each)
{
    uint64_t seed;

    for (seed = 0; seed < 200; seed++) {
        int32_t *values = drawn(seed % 2 == 0 ? NORMAL : LAPLACE, 2, 10, seed);

        ck_assert_uint_le(there_and_back(values, 10), 12);
        free(values);
    }
}

TEST(every_magnitude_is_decoded_again)
{
    int32_t values[3];
    int32_t bit;

    for (bit = 1; bit <= FL_DENSE_MAX && bit > 0; bit *= 2) {
        int32_t off;

        for (off = -1; off <= (bit < FL_DENSE_MAX ? 1 : 0); off++) {
            values[0] = bit + off;
            values[1] = -values[0];
            values[2] = 0;
            (void)there_and_back(values, 1);
            (void)there_and_back(values + 1, 1);
            (void)there_and_back(values, 3);
        }
    }
    for (bit = 1; bit < 60; bit++) {
        (void)there_and_back(&bit, 1);
    }
}

/* Runs drive probabilities to their bounds, where carries and long zero runs occur. */
TEST(runs_and_rare_numbers_are_decoded_again)
{
    size_t n = 40000;
    int32_t *values = calloc(n, sizeof(*values));
    struct fl_rng rng;
    size_t i;
    int turn;

    ck_assert_ptr_nonnull(values);
    fl_rng_key(&rng, 1, FL_RNG_TEST, 0, 0);
    for (turn = 0; turn < 40; turn++) {
        int32_t value = 0;

        for (i = 0; i < n; i++) {
            if (fl_rng_below(&rng, 1 + (UINT64_C(1) << turn % 13)) == 0) {
                value = (int32_t)(fl_rng_below(&rng, UINT64_C(2) << turn % 25)) - (1 << turn % 25);
            }
            values[i] = value;
        }
        (void)there_and_back(values, n);
    }
    free(values);
}

TEST(numbers_without_order_take_at_most_4_bytes_each)
{
    int32_t values[100];
    struct fl_rng rng;
    size_t n;
    size_t i;

    fl_rng_key(&rng, 2, FL_RNG_TEST, 0, 0);
    for (n = 1; n <= 100; n++) {
        for (i = 0; i < n; i++) {
            values[i] = (int32_t)fl_rng_below(&rng, 2 * (uint64_t)FL_DENSE_MAX + 1) - FL_DENSE_MAX;
        }
        (void)there_and_back(values, n);
    }
}

TEST(encoding_refuses_larger_magnitudes_and_a_full_buffer)
{
    int32_t values[2] = {0, FL_DENSE_MAX + 1};
    struct fl_buf buf;

    fl_buf_init(&buf, 100);
    ck_assert_int_eq(fl_buf_add(&buf, "a", 1), FL_OK);
    ck_assert_int_eq(fl_dense_encode(values, 2, &buf), FL_ELIMIT);
    values[1] = -values[1];
    ck_assert_int_eq(fl_dense_encode(values, 2, &buf), FL_ELIMIT);
    values[1] = INT32_MIN;
    ck_assert_int_eq(fl_dense_encode(values, 2, &buf), FL_ELIMIT);
    values[1] = 1;
    buf.max = 3;
    ck_assert_int_eq(fl_dense_encode(values, 2, &buf), FL_ELIMIT);
    ck_assert_uint_eq(buf.len, 1);
    values[1] = 0;
    ck_assert_int_eq(fl_dense_encode(values, 2, &buf), FL_OK);
    ck_assert_mem_eq(buf.data, "a\x01\x00", 3);
    fl_buf_done(&buf);
}

/* Of coded and of plain numbers, with and without the bytes of the next list behind them. */
TEST_EACH(bytes_that_are_missing_are_refused_at_every_place, 2)
{
    size_t n = _i == 0 ? 200 : 1;
    int32_t *values = drawn(LAPLACE, 3, n, 3);
    int32_t out[200];
    struct fl_err err;
    struct fl_buf buf;
    size_t used;
    size_t len;

    values[0] = _i == 0 ? values[0] : FL_DENSE_MAX;
    fl_buf_init(&buf, 1000);
    ck_assert_int_eq(fl_dense_encode(values, n, &buf), FL_OK);
    for (len = 0; len < buf.len; len++) {
        ck_assert_int_eq(decode_copy(buf.data, len, n, out, &used, &err), FL_EFORMAT);
        ck_assert_str_eq(err.msg, "bytes are missing");
    }
    fl_buf_done(&buf);
    free(values);
}

static const struct {
    const char *message;
    size_t n;
    uint8_t bytes[12];
    size_t len;
} refused[] = {
    {"a length is out of range", 3, {1, 0x80, 0x00}, 3},
    {"a length is out of range", 3, {1, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 7},
    {"a length is out of range", 3, {1, 0xff, 0xff, 0xff, 0xff, 0x1f}, 6},
    {"a code is longer than the numbers", 1, {1, 4, 1, 2, 3, 4}, 6},
    {"a code is not what its numbers make it", 3, {1, 2, 0, 1}, 4},
    {"a code is not what its numbers make it", 3, {1, 5, 0, 0, 0, 0, 1}, 7},
    {"a code ends with a zero", 3, {1, 1, 0}, 3},
    {"initial probabilities are not those of the numbers", 3, {2, 0}, 2},
    {"a number is out of range", 1, {0, 1, 0, 0, 2}, 5},
    {"a number is out of range", 1, {0, 0xff, 0xff, 0xff, 0xfd}, 5},
    {"a number is out of range", 1, {0, 0, 0, 0, 0x80}, 5},
    {"a number is out of range", 9, {255, 4, 0xff, 0xff, 0xff, 0xff}, 6},
};

TEST_EACH(bytes_that_no_encoder_writes_are_refused, (int)ARRAY_LEN(refused))
{
    int32_t out[16];
    struct fl_err err = {.code = FL_OK};
    size_t used;

    ck_assert_int_eq(
        decode_copy(refused[_i].bytes, refused[_i].len, refused[_i].n, out, &used, &err),
        FL_EFORMAT);
    ck_assert_str_eq(err.msg, refused[_i].message);
}

/* A list has one coded form: bytes that are decoded are those that the encoder writes. */
TEST(changed_bytes_are_refused_or_another_list_s_only_form)
{
    int32_t out[60];
    struct fl_rng rng;
    size_t accepted = 0;
    int turn;

    fl_rng_key(&rng, 4, FL_RNG_TEST, 0, 0);
    for (turn = 0; turn < 20000; turn++) {
        size_t n = 1 + fl_rng_below(&rng, 60);
        int32_t *values = drawn(LAPLACE, 2, n, (uint64_t)turn);
        struct fl_buf again;
        struct fl_buf buf;
        size_t used;

        fl_buf_init(&buf, 1000);
        fl_buf_init(&again, 1000);
        ck_assert_int_eq(fl_dense_encode(values, n, &buf), FL_OK);
        buf.data[fl_rng_below(&rng, buf.len)] ^= (uint8_t)(1u << fl_rng_below(&rng, 8));
        if (decode_copy(buf.data, buf.len, n, out, &used, NULL) == FL_OK && buf.data[0] != 0) {
            accepted++;
            ck_assert_int_eq(fl_dense_encode(out, n, &again), FL_OK);
            ck_assert_uint_eq(again.len, used);
            ck_assert_mem_eq(again.data, buf.data, used);
        }
        fl_buf_done(&buf);
        fl_buf_done(&again);
        free(values);
    }
    ck_assert_uint_gt(accepted, 0);
}

struct pieces {
    const uint8_t *at;
    size_t reads, fail_at;
};

static int piece_read(void *ctx, uint8_t *out, size_t len)
{
    struct pieces *p = ctx;

    if (p->reads++ == p->fail_at) {
        return FL_EIO;
    }
    (void)memcpy(out, p->at, len);
    p->at += len;
    return FL_OK;
}

static int decode_pieces(const struct fl_buf *buf, size_t n, size_t piece, size_t fail_at,
                         int32_t *out)
{
    struct pieces p = {.at = buf->data, .fail_at = fail_at};
    struct fl_dense_source source = {.read = piece_read, .ctx = &p};
    struct fl_dense_decoder d;
    size_t i;
    int rv = fl_dense_start(&d, &source, buf->len, n, NULL);

    for (i = 0; rv == FL_OK && i < n; i += piece) {
        struct fl_dense_decoder moved = d;

        rv = fl_dense_next(&moved, &source, out + i, n - i < piece ? n - i : piece, NULL);
        d = moved;
    }
    if (rv == FL_OK) {
        ck_assert_uint_eq(d.size, buf->len);
        rv = fl_dense_end(&d, NULL);
    }
    return rv;
}

TEST(pieces_of_any_length_are_decoded_alike_and_errors_of_the_source_are_returned)
{
    size_t n = 3000;
    int32_t *values = drawn(NORMAL, 3, n, 5);
    int32_t *out = malloc(n * sizeof(*out));
    struct fl_buf buf;
    size_t k;

    ck_assert_ptr_nonnull(out);
    fl_buf_init(&buf, 10000);
    ck_assert_int_eq(fl_dense_encode(values, n, &buf), FL_OK);
    for (k = 1; k < 100; k += 7) {
        (void)memset(out, 0, n * sizeof(*out));
        ck_assert_int_eq(decode_pieces(&buf, n, k, SIZE_MAX, out), FL_OK);
        ck_assert_mem_eq(out, values, n * sizeof(*out));
    }
    for (k = 0; k < 10; k++) {
        ck_assert_int_eq(decode_pieces(&buf, n, 100, k, out), FL_EIO);
    }
    fl_buf_done(&buf);
    free(values);
    free(out);
}
