/* Softmax by every row of kernels, and the exponential that it is made of. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/num/kernels_impl.h"
#include "libfl/num/softmax.h"
#include "tests/lib/kernel_rows.h"
#include "tests/lib/suites.h"

#define N_MAX 100
#define GUARD 777.25f

static const size_t sizes[] = {1, 2, 3, 4, 5, 8, 9, 10, 15, 16, 17, 31, 32, 47, 48, 100};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* A row that begins where no vector would, with dirt behind it, and room for what comes out. */
struct rig {
    float z_room[N_MAX + 17], q_room[N_MAX + 33];
    float *z, *q;
};

static void rig_up(struct rig *rig, struct fl_rng *rng, size_t n, double spread)
{
    size_t i;

    rig->z = rig->z_room + 1;
    rig->q = rig->q_room + 1;
    for (i = 0; i < sizeof(rig->z_room) / sizeof(float); i++) {
        rig->z_room[i] = i >= 1 && i <= n ? (float)(fl_rng_normal(rng) * spread) : NAN;
    }
    for (i = 0; i < sizeof(rig->q_room) / sizeof(float); i++) {
        rig->q_room[i] = GUARD;
    }
}

/* The i-th row of kernels, or NULL when this processor lacks it. */
static const struct fl_kernels *kernels_here(size_t i)
{
    const struct fl_kernels *kernels = fl__kernels_row(i);

    if (kernels->supported()) {
        return kernels;
    }
    (void)printf("skipped: %s needs another processor\n", fl_kernels_name(kernels));
    return NULL;
}

TEST_EACH(softmax_agrees_with_sums_in_double_and_writes_its_row_and_zeros_behind_it, kernel_rows())
{
    const struct fl_kernels *kernels = kernels_here((size_t)_i);
    struct fl_rng rng;
    struct rig rig;
    size_t s, j;

    fl_rng_key(&rng, 11, FL_RNG_TEST, (uint64_t)_i, 0);
    for (s = 0; kernels != NULL && s < 4 * N_SIZES; s++) {
        size_t n = sizes[s % N_SIZES];
        double sum = 0.0;
        double have;
        float top;

        rig_up(&rig, &rng, n, s / N_SIZES == 0 ? 0.0 : pow(10.0, (double)(s / N_SIZES) - 1.0));
        have = fl_softmax(kernels, rig.q, rig.z, n, 0.25, &top);
        for (j = 0; j < n; j++) {
            ck_assert(rig.z[j] <= top);
            sum += exp((double)(rig.z[j] - top));
        }
        ck_assert_double_eq_tol(have, sum, 1.5 * (double)FLT_EPSILON * sum);
        ck_assert_double_eq(fl_softmax(kernels, NULL, rig.z, n, 0.25, &top), have);
        for (j = 0; j < n; j++) {
            double q = 0.25 * exp((double)(rig.z[j] - top)) / sum;

            ck_assert_double_eq_tol((double)rig.q[j], q, 4.0 * (double)FLT_EPSILON * q + 1e-37);
        }
        for (; j < fl_softmax_stride(n); j++) {
            ck_assert(rig.q[j] == 0.0f);
        }
        ck_assert(rig.q[-1] == GUARD && rig.q[j] == GUARD);
    }
}

/* Two numbers, 0 and x: the sum is 1 + exp(x), and where that is 1 as a float q is exp(x). */
TEST_EACH(exponentials_are_within_1_1_ulp_from_0_down_to_where_they_are_0, kernel_rows())
{
    const struct fl_kernels *kernels = kernels_here((size_t)_i);
    struct rig rig;
    struct fl_rng rng;
    uint32_t bits;

    fl_rng_key(&rng, 12, FL_RNG_TEST, 0, 0);
    rig_up(&rig, &rng, 2, 1.0);
    /* Every 1021st float from -2^-40 down to -104. */
    for (bits = UINT32_C(0xab800000); kernels != NULL && bits < UINT32_C(0xc2d00000); bits += 1021)
    {
        float x, top;
        double want, ulp, have;

        (void)memcpy(&x, &bits, sizeof(x));
        want = exp((double)x);
        ulp = ldexp(1.0, (int)floor(log2(want)) - 23);
        rig.z[0] = 0.0f;
        rig.z[1] = x;
        have = fl_softmax(kernels, rig.q, rig.z, 2, 1.0, &top) - 1.0;
        if (want < (double)FLT_MIN) {
            ck_assert(have >= 0.0 && have <= (double)FLT_MIN);
            ck_assert(rig.q[1] >= 0.0f && rig.q[1] <= FLT_MIN);
        } else if (want > 0x1p-28) { /* the sum is exact */
            ck_assert_msg(fabs(have - want) <= 1.1 * ulp, "exp(%a) of %s: %a instead of %a",
                          (double)x, fl_kernels_name(kernels), have, want);
        } else {
            ck_assert_msg(fabs((double)rig.q[1] - want) <= 1.1 * ulp,
                          "exp(%a) of %s: %a instead of %a", (double)x, fl_kernels_name(kernels),
                          (double)rig.q[1], want);
        }
    }
}

/* A diverged network must not look healthy. */
TEST_EACH(what_is_not_finite_anywhere_in_a_row_makes_its_sum_nan, kernel_rows())
{
    const struct fl_kernels *kernels = kernels_here((size_t)_i);
    struct fl_rng rng;
    struct rig rig;
    size_t s, j;
    float top;

    fl_rng_key(&rng, 13, FL_RNG_TEST, 0, 0);
    for (s = 0; kernels != NULL && s < N_SIZES; s++) {
        size_t n = sizes[s];

        for (j = 0; j < n; j++) {
            rig_up(&rig, &rng, n, 1.0);
            rig.z[j] = NAN;
            ck_assert(isnan(fl_softmax(kernels, rig.q, rig.z, n, 1.0, &top)));
            ck_assert(isnan(rig.q[j]));
            rig.z[j] = -NAN;
            ck_assert(isnan(fl_softmax(kernels, NULL, rig.z, n, 1.0, &top)));
            rig.z[j] = INFINITY;
            ck_assert(isnan(fl_softmax(kernels, NULL, rig.z, n, 1.0, &top)));
        }
        for (j = 0; j < n; j++) {
            rig.z[j] = -INFINITY;
        }
        ck_assert(isnan(fl_softmax(kernels, NULL, rig.z, n, 1.0, &top)));
        rig.z[n - 1] = 3.0f;
        ck_assert_double_eq(fl_softmax(kernels, rig.q, rig.z, n, 1.0, &top), 1.0);
        ck_assert(top == 3.0f && rig.q[n - 1] == 1.0f && (n == 1 || rig.q[0] == 0.0f));
    }
}

TEST_EACH(numbers_that_no_exponential_holds_are_compared_first, kernel_rows())
{
    const struct fl_kernels *kernels = kernels_here((size_t)_i);
    struct fl_rng rng;
    struct rig rig;
    float top;

    if (kernels == NULL) {
        return;
    }
    fl_rng_key(&rng, 14, FL_RNG_TEST, 0, 0);
    rig_up(&rig, &rng, 3, 1.0);
    rig.z[0] = -FLT_MAX;
    rig.z[1] = 3e38f;
    rig.z[2] = 3e38f;
    ck_assert_double_eq(fl_softmax(kernels, rig.q, rig.z, 3, 1.0, &top), 2.0);
    ck_assert(top == 3e38f && rig.q[0] == 0.0f && rig.q[1] == 0.5f && rig.q[2] == 0.5f);
}
