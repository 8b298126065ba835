#include <check.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/gemm.h"
#include "libfl/num/vec.h"
#include "libfl/num/vec_kern.h"
#include "tests/lib/suites.h"
#include "tests/libfl/num/reference.h"

/* Room in front of and behind every array, to see writes outside it. */
#define MARGIN 17
#define GUARD  1234.5f

static float *random_floats(struct fl_rng *rng, size_t n)
{
    float *x = malloc((n + 2 * MARGIN) * sizeof(*x));
    size_t i;

    ck_assert_ptr_nonnull(x);
    for (i = 0; i < n + 2 * MARGIN; i++) {
        x[i] = i < MARGIN || i >= n + MARGIN ? GUARD : (float)fl_rng_normal(rng);
    }
    return x + MARGIN;
}

static void free_floats(float *x, size_t n)
{
    size_t i;

    for (i = 0; i < MARGIN; i++) {
        ck_assert(x[-1 - (ptrdiff_t)i] == GUARD);
        ck_assert(x[n + i] == GUARD);
    }
    free(x - MARGIN);
}

static const size_t shapes[][3] = {
    {1, 1, 1},     {1, 7, 3},    {3, 1, 5},    {5, 3, 1},      {2, 3, 0},
    {0, 3, 2},     {3, 0, 2},    {13, 17, 7},  {10, 200, 784}, {10, 10, 200},
    {31, 33, 129}, {64, 64, 64}, {257, 3, 11}, {1, 300, 1},    {10, 199, 783},
};

TEST_EACH(a_product_agrees_with_the_reference_on_odd_shapes, ARRAY_LEN(shapes))
{
    const size_t *s = shapes[_i];
    size_t m = s[0];
    size_t n = s[1];
    size_t k = s[2];
    struct fl_rng rng;
    unsigned mode;

    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    fl_rng_key(&rng, 1, FL_RNG_TEST, 1, (uint64_t)_i);
    for (mode = 0; mode < 12; mode++) {
        bool ta = (mode & 1u) != 0;
        bool tb = (mode & 2u) != 0;
        float beta = mode < 4 ? 0.0f : mode < 8 ? 1.0f : -0.5f;
        size_t lda = (ta ? m : k) + 3;
        size_t ldb = (tb ? k : n) + 1;
        size_t ldc = n + 2;
        float *a = random_floats(&rng, (ta ? k : m) * lda);
        float *b = random_floats(&rng, (tb ? n : k) * ldb);
        float *c = random_floats(&rng, m * ldc);
        float *r = random_floats(&rng, m * ldc);
        double bound = 8.0 * (sqrt((double)k) + 4.0) * (double)FLT_EPSILON;
        size_t i;

        (void)memcpy(r, c, m * ldc * sizeof(*r));
        fl_gemm(ta, tb, m, n, k, 0.75f, a, lda, b, ldb, beta, c, ldc);
        gemm_ref(ta, tb, m, n, k, 0.75f, a, lda, b, ldb, beta, r, ldc);
        for (i = 0; i < m * ldc; i++) {
            if (i % ldc >= n) {
                ck_assert(c[i] == r[i]); /* beyond the row: untouched */
            } else {
                ck_assert_double_le(fabs((double)c[i] - (double)r[i]),
                                    bound * (1.0 + sqrt((double)k)));
            }
        }
        free_floats(a, (ta ? k : m) * lda);
        free_floats(b, (tb ? n : k) * ldb);
        free_floats(c, m * ldc);
        free_floats(r, m * ldc);
    }
}

TEST(beta_zero_overwrites_even_nan)
{
    const float a[2] = {2.0f, 3.0f};
    float c[1] = {NAN};

    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    fl_gemm(false, false, 1, 1, 2, 1.0f, a, 2, a, 1, 0.0f, c, 1);
    ck_assert(c[0] == 13.0f);
    c[0] = NAN;
    fl_gemm(false, false, 1, 1, 0, 1.0f, a, 1, a, 1, 0.0f, c, 1);
    ck_assert(c[0] == 0.0f);
    ck_assert_ptr_nonnull(fl_gemm_kernel());
}

static const size_t lengths[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 1000, 1023, 1025, 4099};

/* The order that the header promises, written down plainly. */
static double ordered_sum(const double *terms, size_t n)
{
    double s[FL_VEC_LANES] = {0};
    size_t i;

    for (i = 0; i < n; i++) {
        s[i % FL_VEC_LANES] += terms[i];
    }
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

/* --- side by side --- */

enum { SIDE_M = 5, SIDE_N = 32, SIDE_K = 64, SIDE_TIMES = 60000 };

struct side {
    float a[SIDE_M * SIDE_K], b[SIDE_K * SIDE_N], product[SIDE_M * SIDE_N];
};

/* How many products are not the one that a thread alone gets. */
static void *multiply(void *arg)
{
    const struct side *s = arg;
    float c[SIDE_M * SIDE_N];
    uintptr_t wrong = 0;
    int i;

    for (i = 0; i < SIDE_TIMES; i++) {
        fl_gemm(false, false, SIDE_M, SIDE_N, SIDE_K, 1.0f, s->a, SIDE_K, s->b, SIDE_N, 0.0f, c,
                SIDE_N);
        wrong += memcmp(c, s->product, sizeof(c)) != 0;
    }
    return (void *)wrong;
}

TEST(threads_that_multiply_side_by_side_get_what_one_alone_gets)
{
    static struct side s;
    pthread_t threads[4];
    struct fl_rng rng;
    void *wrong;
    size_t i;

    fl_rng_seed(&rng, 4);
    for (i = 0; i < SIDE_M * SIDE_K; i++) {
        s.a[i] = (float)fl_rng_normal(&rng);
    }
    for (i = 0; i < SIDE_K * SIDE_N; i++) {
        s.b[i] = (float)fl_rng_normal(&rng);
    }
    ck_assert_int_eq(fl_gemm_init(NULL), FL_OK);
    fl_gemm(false, false, SIDE_M, SIDE_N, SIDE_K, 1.0f, s.a, SIDE_K, s.b, SIDE_N, 0.0f, s.product,
            SIDE_N);
    for (i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, multiply, &s), 0);
    }
    for (i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &wrong), 0);
        ck_assert_ptr_null(wrong);
    }
}

TEST_EACH(sums_have_the_promised_order_bit_for_bit, ARRAY_LEN(lengths))
{
    size_t n = lengths[_i];
    struct fl_rng rng;
    float *x;
    float *y;
    double *terms = calloc(n + 1, sizeof(*terms));
    double *acc = calloc(n + 1, sizeof(*acc));
    size_t i;

    ck_assert(terms != NULL && acc != NULL);
    fl_rng_key(&rng, 2, FL_RNG_TEST, 1, n);
    x = random_floats(&rng, n);
    y = random_floats(&rng, n);
    for (i = 0; i < n; i++) {
        terms[i] = (double)x[i] * (double)y[i];
    }
    ck_assert(fl_vec_dot(x, y, n) == ordered_sum(terms, n));
    for (i = 0; i < n; i++) {
        double d = (double)x[i] - (double)y[i];

        terms[i] = d * d;
    }
    ck_assert(fl_vec_distance_sq(x, y, n) == ordered_sum(terms, n));
    for (i = 0; i < n; i++) {
        acc[i] = (double)y[i] / 3.0;
        terms[i] = (acc[i] - (double)x[i]) * (acc[i] - (double)x[i]);
    }
    ck_assert(fl_acc_distance_sq(acc, x, n) == ordered_sum(terms, n));
    for (i = 0; i < n; i++) {
        terms[i] = (double)x[i] * (double)x[i];
    }
    ck_assert(fl_vec_norm2(x, n) == sqrt(ordered_sum(terms, n)));
    free(terms);
    free(acc);
    free_floats(x, n);
    free_floats(y, n);
}

TEST_EACH(elementwise_kernels_do_what_their_line_says, ARRAY_LEN(lengths))
{
    size_t n = lengths[_i];
    struct fl_rng rng;
    float *x;
    float *y;
    float *z;
    double *acc = calloc(n + 1, sizeof(*acc));
    size_t i;

    ck_assert_ptr_nonnull(acc);
    fl_rng_key(&rng, 3, FL_RNG_TEST, 1, n);
    x = random_floats(&rng, n);
    y = random_floats(&rng, n);
    z = random_floats(&rng, n);
    fl_vec_sub(z, x, y, n);
    for (i = 0; i < n; i++) {
        ck_assert(z[i] == x[i] - y[i]);
    }
    fl_vec_scale(z, -1.5f, z, n);
    for (i = 0; i < n; i++) {
        ck_assert(z[i] == (x[i] - y[i]) * -1.5f);
    }
    (void)memcpy(z, y, n * sizeof(*z));
    fl_vec_axpy(z, 0.3f, x, n);
    for (i = 0; i < n; i++) {
        /* Contraction is off in the kernel; the product is rounded before the sum. */
        volatile float product = 0.3f * x[i];

        ck_assert(z[i] == y[i] + product);
    }
    fl_acc_add(acc, 0.1, x, n);
    fl_acc_add(acc, 0.7, y, n);
    fl_acc_scale(acc, 0.5, n);
    for (i = 0; i < n; i++) {
        volatile double p = 0.1 * (double)x[i];
        volatile double q = 0.7 * (double)y[i];

        ck_assert(acc[i] == (p + q) * 0.5);
    }
    fl_acc_step(z, x, acc, n);
    for (i = 0; i < n; i++) {
        ck_assert(z[i] == (float)((double)x[i] + acc[i]));
    }
    free(acc);
    free_floats(x, n);
    free_floats(y, n);
    free_floats(z, n);
}

TEST_EACH(one_bad_number_anywhere_is_found, ARRAY_LEN(lengths))
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    size_t n = lengths[_i];
    struct fl_rng rng;
    float *x;
    size_t i;
    size_t j;

    fl_rng_key(&rng, 4, FL_RNG_TEST, 1, n);
    x = random_floats(&rng, n);
    ck_assert(fl_vec_finite(x, n));
    for (i = 0; i<n; i += n> 100 ? 37 : 1) {
        for (j = 0; j < 4; j++) {
            float saved = x[i];

            x[i] = bad[j];
            ck_assert(!fl_vec_finite(x, n));
            x[i] = saved;
        }
    }
    if (n > 0) {
        x[n - 1] = FLT_MAX;
        ck_assert(fl_vec_finite(x, n));
        x[n - 1] = NAN;
        ck_assert(!fl_vec_finite(x, n));
    }
    free_floats(x, n);
}

TEST_EACH(every_instruction_set_gives_the_same_bits, ARRAY_LEN(lengths))
{
#if defined(__x86_64__)
    const struct fl__vec_kern *a = &fl__vec_plain;
    const struct fl__vec_kern *b = &fl__vec_avx2;
    size_t n = lengths[_i];
    struct fl_rng rng;
    float *x;
    float *y;
    float *z[2];
    double *acc[2];
    size_t i;

    if (!__builtin_cpu_supports("avx2")) {
        (void)printf("skipped: this processor has no AVX2\n");
        return;
    }
    fl_rng_key(&rng, 5, FL_RNG_TEST, 1, n);
    x = random_floats(&rng, n);
    y = random_floats(&rng, n);
    for (i = 0; i < 2; i++) {
        z[i] = random_floats(&rng, n);
        (void)memcpy(z[i], y, n * sizeof(*y));
        acc[i] = calloc(n + 1, sizeof(*acc[i]));
        ck_assert_ptr_nonnull(acc[i]);
    }
    a->axpy(z[0], 0.3f, x, n);
    b->axpy(z[1], 0.3f, x, n);
    ck_assert_mem_eq(z[0], z[1], n * sizeof(float));
    a->sub(z[0], z[0], x, n);
    b->sub(z[1], z[1], x, n);
    a->scale(z[0], 0.7f, z[0], n);
    b->scale(z[1], 0.7f, z[1], n);
    ck_assert_mem_eq(z[0], z[1], n * sizeof(float));
    a->acc_add(acc[0], 0.1, z[0], n);
    b->acc_add(acc[1], 0.1, z[1], n);
    a->acc_add(acc[0], 0.3, x, n);
    b->acc_add(acc[1], 0.3, x, n);
    if (n > 1) { /* No step, and one that is not finite. */
        acc[0][n / 2] = acc[1][n / 2] = n % 2 == 0 ? 0.0 : -0.0;
        x[n / 2] = -0.0f;
        acc[0][n - 1] = acc[1][n - 1] = NAN;
    }
    a->acc_step(z[0], x, acc[0], n);
    b->acc_step(z[1], x, acc[1], n);
    ck_assert_mem_eq(z[0], z[1], n * sizeof(float));
    if (n > 1) {
        ck_assert(signbit(z[0][n / 2]) || n == 2); /* The last one of two is NaN. */
        ck_assert(isnan(z[0][n - 1]));
        acc[0][n - 1] = acc[1][n - 1] = 1.0;
    }
    a->acc_scale(acc[0], 1.7, n);
    b->acc_scale(acc[1], 1.7, n);
    ck_assert_mem_eq(acc[0], acc[1], n * sizeof(double));
    ck_assert(a->dot(x, y, n) == b->dot(x, y, n));
    ck_assert(a->distance_sq(x, y, n) == b->distance_sq(x, y, n));
    ck_assert(a->acc_distance_sq(acc[0], y, n) == b->acc_distance_sq(acc[1], y, n));
    ck_assert(a->finite(x, n) && b->finite(x, n));
    if (n > 0) {
        x[n / 2] = NAN;
        ck_assert(!a->finite(x, n) && !b->finite(x, n));
    }
    for (i = 0; i < 2; i++) {
        free_floats(z[i], n);
        free(acc[i]);
    }
    free_floats(x, n);
    free_floats(y, n);
#endif
}
