/* The figures of the clients' accuracies in a round against their definitions. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "server/core/client_accuracy.h"
#include "tests/lib/suites.h"

#define MOST 10000

static double accuracies[MOST], losses[MOST];

/* Clients 0 to n - 1 in an order of their own: `step` has no common divisor with n. */
static struct fl_round_rec put(size_t n, size_t step)
{
    struct fl_round_rec rec;
    size_t i;

    fl_figures_init(&fl_round_rows, &rec);
    for (i = 0; i < n; i++) {
        size_t client = i * step % n;

        accuracies[i] = (double)(client * client % 101) / 100.0;
        losses[i] = 0.1 * (double)(client % 7) - 0.2;
    }
    fl_client_accuracy_put(accuracies, losses, n, &rec);
    return rec;
}

/* The k-th lowest, from 0, by counting: the code sorts. */
static double kth_lowest(const double *values, size_t n, size_t k)
{
    size_t i;
    size_t j;

    for (i = 0; i < n; i++) {
        size_t below = 0;
        size_t same = 0;

        for (j = 0; j < n; j++) {
            below += values[j] < values[i];
            same += values[j] == values[i];
        }
        if (below <= k && k < below + same) {
            return values[i];
        }
    }
    ck_abort_msg("there is no value %zu of %zu", k, n);
    return NAN;
}

static const size_t sizes[] = {1, 2, 3, 9, 10, 11, 20, 21, 100, 499};

TEST_EACH(the_figures_are_mean_deviation_worst_tenth_and_median, 10)
{
    const size_t n = sizes[_i];
    const struct fl_round_rec rec = put(n, 1);
    long double sum = 0;
    long double squares = 0;
    long double loss = 0;
    long double worst = 0;
    size_t tenth = n / 10 + (n % 10 > 0);
    size_t i;

    for (i = 0; i < n; i++) {
        sum += accuracies[i];
        loss += losses[i];
    }
    for (i = 0; i < n; i++) {
        squares += (accuracies[i] - sum / n) * (accuracies[i] - sum / n);
    }
    for (i = 0; i < tenth; i++) {
        worst += kth_lowest(accuracies, n, i);
    }
    ck_assert_double_eq_tol(rec.client_accuracy_mean, (double)(sum / n), 1e-12);
    ck_assert_double_eq_tol(rec.client_accuracy_std, (double)sqrtl(squares / n), 1e-12);
    ck_assert_double_eq_tol(rec.client_accuracy_worst_tenth, (double)(worst / tenth), 1e-12);
    ck_assert_double_eq_tol(
        rec.client_accuracy_median,
        (kth_lowest(accuracies, n, (n - 1) / 2) + kth_lowest(accuracies, n, n / 2)) / 2, 1e-12);
    ck_assert_double_eq_tol(rec.client_loss_mean, (double)(loss / n), 1e-12);
}

TEST(the_order_of_ten_thousand_clients_changes_no_bit)
{
    const struct fl_round_rec first = put(MOST, 1);
    const struct fl_round_rec second = put(MOST, 7919);

    ck_assert(memcmp(&first, &second, sizeof(first)) == 0);
    ck_assert_double_ge(first.client_accuracy_std, 0.2);
}

TEST(without_evaluations_nothing_is_known)
{
    struct fl_round_rec rec = put(3, 1);
    struct fl_round_rec unknown;

    fl_client_accuracy_put(accuracies, losses, 0, &rec);
    fl_figures_init(&fl_round_rows, &unknown);
    ck_assert(memcmp(&rec, &unknown, sizeof(rec)) == 0);
}

TEST(losses_at_the_ends_of_the_range_have_a_finite_mean)
{
    struct fl_round_rec rec = {.round = 1};
    double found[] = {0.5, 0.5, 0.5};
    double high[] = {DBL_MAX, DBL_MAX, DBL_MAX};
    double low[] = {-DBL_MAX, -DBL_MAX, -DBL_MAX};

    fl_client_accuracy_put(found, high, 3, &rec);
    ck_assert(isfinite(rec.client_loss_mean) && rec.client_loss_mean > 0);
    fl_client_accuracy_put(found, low, 3, &rec);
    ck_assert(isfinite(rec.client_loss_mean) && rec.client_loss_mean < 0);
    ck_assert_double_eq(rec.client_accuracy_std, 0.0);
}
