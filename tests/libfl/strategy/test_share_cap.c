/* The bounds of one client's share: shares of a whole, columns of a matrix, layers over rounds. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/strategy/share_cap.h"
#include "tests/lib/suites.h"

enum { N_MAX = 40 };

static struct fl_share scratch[N_MAX];

static double bounded(const double *x, const double *fair, size_t n, double cap, double scale,
                      double *out)
{
    double sum = 0, fairs = 0, total = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        sum += x[i];
        fairs += fair != NULL ? fair[i] : 1;
    }
    for (i = 0; i < n; i++) {
        out[i] = fmin(cap * (fair != NULL ? fair[i] : 1) / fairs, scale * x[i] / sum);
        total += out[i];
    }
    return total;
}

/* Plainly: the scale for which the bounded shares sum to 1, by halving an interval. */
static void reference(const double *x, const double *fair, size_t n, double cap, double *out)
{
    double low = 1, high = 1;
    unsigned step;

    while (bounded(x, fair, n, cap, high, out) < 1) {
        high *= 2;
    }
    for (step = 0; step < 100; step++) {
        double middle = (low + high) / 2;

        if (bounded(x, fair, n, cap, middle, out) < 1) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

static double random_share(struct fl_rng *rng, unsigned kind)
{
    return kind == 0   ? fl_rng_unit(rng)
           : kind == 1 ? exp(4 * fl_rng_normal(rng))
                       : 1 / fl_rng_unit(rng);
}

TEST(shares_are_those_of_water_filling)
{
    double x[N_MAX], fair[N_MAX], found[N_MAX], expected[N_MAX];
    uint8_t capped[N_MAX];
    struct fl_rng rng;
    unsigned i, acted = 0;

    fl_rng_seed(&rng, 5);
    for (i = 0; i < 2000; i++) {
        size_t n = 2 + (size_t)fl_rng_below(&rng, N_MAX - 1);
        double cap = 1 + 2 * fl_rng_unit(&rng);
        bool equal = i % 2 == 0;
        double limit, sum = 0, fairs = 0, total = 0;
        size_t k, lowered;

        for (k = 0; k < n; k++) {
            x[k] = random_share(&rng, i % 3);
            fair[k] = random_share(&rng, (i / 3) % 2);
            fairs += equal ? 1 : fair[k];
            total += x[k];
        }
        (void)memcpy(found, x, sizeof(x));
        lowered = fl_share_cap(found, equal ? NULL : fair, n, cap, scratch, capped);
        if (lowered == 0) {
            ck_assert_mem_eq(found, x, n * sizeof(*x));
            continue;
        }
        acted++;
        reference(x, equal ? NULL : fair, n, cap, expected);
        for (k = 0; k < n; k++) {
            limit = cap * (equal ? 1 : fair[k]) / fairs;
            ck_assert_double_eq_tol(found[k], expected[k], 1e-12);
            ck_assert_double_le(found[k], limit * (1 + 1e-9));
            ck_assert_uint_eq(capped[k], x[k] / total > limit);
            ck_assert(!capped[k] || fabs(found[k] - limit) <= 1e-15);
            lowered -= capped[k];
            sum += found[k];
        }
        ck_assert_uint_eq(lowered, 0);
        ck_assert_double_eq_tol(sum, 1, 1e-12);
    }
    ck_assert_uint_gt(acted, 500);
}

TEST(shares_within_the_cap_stay_bit_for_bit)
{
    double x[4] = {3e-300, 3e-300, 4e-300, 2e-300};
    double before[4];
    uint8_t capped[4] = {9, 9, 9, 9};
    size_t k;

    (void)memcpy(before, x, sizeof(x));
    ck_assert_uint_eq(fl_share_cap(x, NULL, 4, 1.7, scratch, capped), 0);
    ck_assert_mem_eq(x, before, sizeof(x));
    for (k = 0; k < 4; k++) {
        ck_assert_uint_eq(capped[k], 0);
    }
}

TEST(equal_shares_are_within_a_cap_of_1)
{
    double x[N_MAX];
    size_t n, k;

    for (n = 1; n <= N_MAX; n++) {
        for (k = 0; k < n; k++) {
            x[k] = 0.1;
        }
        ck_assert_uint_eq(fl_share_cap(x, NULL, n, 1, scratch, NULL), 0);
    }
}

TEST(without_a_cap_or_with_one_share_nothing_changes)
{
    double x[3] = {100, 1, 1};

    ck_assert_uint_eq(fl_share_cap(x, NULL, 3, 0, scratch, NULL), 0);
    ck_assert_uint_eq(fl_share_cap(x, NULL, 1, 1, scratch, NULL), 0);
    ck_assert_uint_eq(fl_share_cap(x, NULL, 0, 1, scratch, NULL), 0);
    ck_assert_double_eq(x[0], 100);
}

TEST(without_a_share_above_0_nothing_changes)
{
    double x[3] = {0, -1, (double)NAN};

    ck_assert_uint_eq(fl_share_cap(x, NULL, 3, 1.5, scratch, NULL), 0);
    ck_assert_double_eq(x[1], -1);
}

TEST_EACH(a_single_share_above_0_is_cut_and_the_others_get_the_rest_equally, 3)
{
    const double giants[] = {1, DBL_MAX, 5e-324};
    double x[10] = {0};
    uint8_t capped[10];
    size_t k;

    x[4] = giants[_i];
    ck_assert_uint_eq(fl_share_cap(x, NULL, 10, 1.5, scratch, capped), 1);
    for (k = 0; k < 10; k++) {
        ck_assert_double_eq_tol(x[k], k == 4 ? .15 : .85 / 9, 1e-15);
        ck_assert_uint_eq(capped[k], k == 4);
    }
}

TEST(what_is_no_number_counts_as_0)
{
    double x[4] = {(double)NAN, (double)INFINITY, 3, 1};
    double same[4] = {0, 0, 3, 1};
    size_t k;

    ck_assert_uint_eq(fl_share_cap(x, NULL, 4, 1.5, scratch, NULL), 1);
    ck_assert_uint_eq(fl_share_cap(same, NULL, 4, 1.5, scratch, NULL), 1);
    for (k = 0; k < 4; k++) {
        ck_assert_double_eq(x[k], same[k]);
    }
    ck_assert_double_eq_tol(x[2], .375, 1e-15);
    ck_assert_double_eq_tol(x[3], .375, 1e-15);
}

TEST(huge_shares_do_not_overflow)
{
    double x[3] = {DBL_MAX, DBL_MAX, DBL_MAX / 4};

    ck_assert_uint_eq(fl_share_cap(x, NULL, 3, 1.2, scratch, NULL), 2);
    ck_assert_double_eq_tol(x[0], .4, 1e-15);
    ck_assert_double_eq_tol(x[1], .4, 1e-15);
    ck_assert_double_eq_tol(x[2], .2, 1e-15);
}

TEST(the_order_of_the_clients_changes_no_bit)
{
    double x[N_MAX], fair[N_MAX], back[N_MAX], back_fair[N_MAX];
    struct fl_rng rng;
    unsigned i;
    size_t k;

    fl_rng_seed(&rng, 6);
    for (i = 0; i < 200; i++) {
        for (k = 0; k < N_MAX; k++) {
            x[k] = random_share(&rng, 1);
            fair[k] = random_share(&rng, 0);
            back[N_MAX - 1 - k] = x[k];
            back_fair[N_MAX - 1 - k] = fair[k];
        }
        ck_assert_uint_eq(fl_share_cap(x, fair, N_MAX, 1.5, scratch, NULL),
                          fl_share_cap(back, back_fair, N_MAX, 1.5, scratch, NULL));
        for (k = 0; k < N_MAX; k++) {
            ck_assert_double_eq(x[k], back[N_MAX - 1 - k]);
        }
    }
}

/* --- weights of personalized models --- */

static void random_rows(struct fl_rng *rng, double *q, size_t n)
{
    size_t i, k;

    for (i = 0; i < n; i++) {
        double sum = 0;

        for (k = 0; k < n; k++) {
            q[i * n + k] = random_share(rng, 1);
            sum += q[i * n + k];
        }
        for (k = 0; k < n; k++) {
            q[i * n + k] /= sum;
        }
    }
}

TEST(a_column_is_cut_to_its_share_of_the_other_models)
{
    double q[N_MAX * N_MAX], before[N_MAX * N_MAX], fair[N_MAX], factor[N_MAX];
    struct fl_rng rng;
    unsigned round, acted = 0;

    fl_rng_seed(&rng, 7);
    for (round = 0; round < 200; round++) {
        size_t n = 2 + (size_t)fl_rng_below(&rng, 12);
        bool equal = round % 2 == 0;
        double fairs = 0;
        size_t i, k, lowered;

        random_rows(&rng, q, n);
        (void)memcpy(before, q, sizeof(q));
        for (k = 0; k < n; k++) {
            fair[k] = equal ? 1 : random_share(&rng, 0);
            fairs += fair[k];
        }
        lowered = fl_share_cap_columns(q, equal ? NULL : fair, n, 1.5, factor);
        for (k = 0; k < n; k++) {
            double limit = 1.5 * (double)(n - 1) * fair[k] / fairs;
            double was = 0, is = 0, row = 0;

            for (i = 0; i < n; i++) {
                was += i != k ? before[i * n + k] : 0;
                is += i != k ? q[i * n + k] : 0;
                row += q[k * n + i];
                /* Only the own model gains. */
                ck_assert_double_le(q[i * n + k], i == k ? 1 + 1e-12 : before[i * n + k]);
            }
            ck_assert_double_eq_tol(is, fmin(was, limit), 1e-12);
            ck_assert_double_eq_tol(row, 1, 1e-12);
            ck_assert_double_ge(q[k * n + k], before[k * n + k]);
            ck_assert_double_eq_tol(factor[k], fmin(limit / was, 1), 1e-9);
            acted += factor[k] < 1;
            lowered -= factor[k] < 1;
        }
        ck_assert_uint_eq(lowered, 0);
    }
    ck_assert_uint_gt(acted, 100);
}

TEST(columns_within_the_cap_and_a_single_model_stay_bit_for_bit)
{
    double q[9] = {.8, .1, .1, .2, .6, .2, .3, .3, .4};
    double before[9];
    double factor[3];
    double one[1] = {1};

    (void)memcpy(before, q, sizeof(q));
    ck_assert_uint_eq(fl_share_cap_columns(q, NULL, 3, 1.5, factor), 0);
    ck_assert_mem_eq(q, before, sizeof(q));
    ck_assert_double_eq(factor[2], 1);
    ck_assert_uint_eq(fl_share_cap_columns(one, NULL, 1, 1, factor), 0);
    ck_assert_double_eq(one[0], 1);
    q[1] = q[7] = 1;
    ck_assert_uint_eq(fl_share_cap_columns(q, NULL, 3, 0, factor), 0);
    ck_assert_double_eq(factor[1], 1);
}

/* --- layers --- */

/* From its first round on: its share, and less than one layer more. */
TEST(a_client_that_takes_all_that_it_may_has_its_share_of_layers_in_any_number_of_rounds)
{
    double credit = 0, fairs = 0;
    unsigned round, taken = 0;
    struct fl_rng rng;

    fl_rng_seed(&rng, 8);
    for (round = 0; round < 1000; round++) {
        double fair = .1 + fl_rng_unit(&rng);
        double left = fl_share_layers(credit, fair, 1.5);

        fairs += fair;
        while (fl_share_affords(left)) {
            left -= 1;
            taken++;
        }
        credit = left;
        ck_assert_double_lt((double)taken, 1.5 * fairs + 1);
    }
    ck_assert_double_ge((double)taken, 1.5 * fairs);
}

TEST(unused_layers_are_kept_for_20_rounds_and_at_least_one)
{
    double credit = 0;
    unsigned round;

    for (round = 0; round < 100; round++) {
        credit = fl_share_layers(credit, .4, 1.5);
    }
    ck_assert_double_eq_tol(credit, 20 * .4 * 1.5, 1e-12);
    for (round = 0, credit = 0; round < 100; round++) {
        credit = fl_share_layers(credit, .01, 1.5);
    }
    ck_assert_double_eq(credit, 1);
}
