/* The direction of the largest variance, beside matrices whose eigenvectors are known. */
#include <check.h>
#include <math.h>

#include "libfl/num/principal.h"
#include "tests/lib/suites.h"

enum { N = 8 };

/* Column `k` of the reflection I - 2 u u^T of a unit vector u with different entries. */
static void reflected(size_t k, double column[N])
{
    double u[N];
    double length = 0;
    size_t i;

    for (i = 0; i < N; i++) {
        u[i] = 1.0 + 0.3 * (double)i;
        length += u[i] * u[i];
    }
    for (i = 0; i < N; i++) {
        column[i] = (i == k ? 1.0 : 0.0) - 2 * u[i] * u[k] / length;
    }
}

static void with_eigenvalues(const double values[N], double gram[N * N])
{
    double q[N];
    size_t i;
    size_t j;
    size_t k;

    for (i = 0; i < N * N; i++) {
        gram[i] = 0;
    }
    for (k = 0; k < N; k++) {
        reflected(k, q);
        for (i = 0; i < N; i++) {
            for (j = 0; j < N; j++) {
                gram[i * N + j] += values[k] * q[i] * q[j];
            }
        }
    }
}

TEST(the_first_direction_is_found_when_the_second_variance_is_nearly_as_large)
{
    static const double gaps[] = {0.5, 1e-2, 1e-4};
    size_t c;

    for (c = 0; c < sizeof(gaps) / sizeof(gaps[0]); c++) {
        const double values[N] = {0.1, 1, 0.2, 1 - gaps[c], 0.3, 0, 0.4, 0.05};
        double gram[N * N];
        double expected[N];
        double next[N];
        double v[N];
        double cosine = 0;
        size_t i;

        with_eigenvalues(values, gram);
        reflected(1, expected);
        fl_principal(gram, N, v, next);
        for (i = 0; i < N; i++) {
            cosine += v[i] * expected[i];
        }
        ck_assert_double_eq_tol(fabs(cosine), 1, 1e-12);
    }
}

TEST(equal_variances_end_with_one_of_their_directions)
{
    const double values[N] = {1, 1, 0, 0, 0, 0, 0, 0};
    double gram[N * N];
    double next[N];
    double v[N];
    double in = 0;
    size_t i;
    size_t k;

    with_eigenvalues(values, gram);
    fl_principal(gram, N, v, next);
    for (k = 0; k < 2; k++) {
        double q[N];
        double product = 0;

        reflected(k, q);
        for (i = 0; i < N; i++) {
            product += q[i] * v[i];
        }
        in += product * product;
    }
    ck_assert_double_eq_tol(in, 1, 1e-12);
}

TEST(without_variance_there_is_no_direction)
{
    const double gram[N * N] = {0};
    double next[N];
    double v[N];
    size_t i;

    fl_principal(gram, N, v, next);
    for (i = 0; i < N; i++) {
        ck_assert_double_eq(v[i], 0);
    }
}

TEST(centred_products_are_those_of_differences_from_the_mean)
{
    static const double x[3] = {1, 2, 6}; /* their mean is 3 */
    double gram[9];
    double means[3];
    size_t i;

    for (i = 0; i < 9; i++) {
        gram[i] = x[i / 3] * x[i % 3];
    }
    fl_principal_centre(gram, 3, means);
    for (i = 0; i < 9; i++) {
        ck_assert_double_eq_tol(gram[i], (x[i / 3] - 3) * (x[i % 3] - 3), 1e-12);
    }
}
