/* Partitions with different sizes of the clients: totals, minimum, and the laws of the sizes. */
#include <math.h>

#include "tests/lib/suites.h"
#include "tests/libfl/data/partition_fixture.h"

static const char *const methods[] = {"lognormal-sizes", "dirichlet-sizes"};

static bool equal_sizes(const struct fl_partition *a, const struct fl_partition *b)
{
    return memcmp(a->start, b->start, (a->n_clients + 1) * sizeof(*a->start)) == 0;
}

TEST_EACH(sizes_deal_every_sample_once_and_repeat_themselves, 2)
{
    size_t n = make_labels(5003, 10);
    struct fl_partition_conf conf = conf_for(17, 42);
    struct fl_partition a = make(methods[_i], &conf, n, 10);
    struct fl_partition b = make(methods[_i], &conf, n, 10);
    struct fl_partition c;

    ck_assert_uint_eq(expect_disjoint(&a, n), n);
    ck_assert(equal_sizes(&a, &b));
    ck_assert_mem_eq(a.items, b.items, n * sizeof(*a.items));
    conf.seed = 43;
    c = make(methods[_i], &conf, n, 10);
    ck_assert(!equal_sizes(&a, &c));
    ck_assert_mem_ne(a.items, c.items, n * sizeof(*a.items));
    fl_partition_done(&a);
    fl_partition_done(&b);
    fl_partition_done(&c);
}

/* Also where one client would have everything, and where the minimum leaves nothing to draw. */
TEST_EACH(sizes_keep_the_minimum_whatever_the_skew, 2 * 3 * 4)
{
    static const double sigmas[] = {0.0, 2.0, 10.0};
    static const double alphas[] = {1e6, 0.5, 1e-4};
    static const uint64_t minima[] = {1, 7, 333, 1000};
    size_t n = make_labels(30000, 10);
    struct fl_partition_conf conf = conf_for(30, (uint64_t)_i);
    struct fl_partition part;
    size_t k;

    conf.sigma = sigmas[_i / 2 % 3];
    conf.alpha = alphas[_i / 2 % 3];
    conf.min_samples = minima[_i / 6];
    part = make(methods[_i % 2], &conf, n, 10);
    ck_assert_uint_eq(expect_disjoint(&part, n), n);
    for (k = 0; k < 30; k++) {
        ck_assert_uint_ge(fl_partition_count(&part, k), conf.min_samples);
    }
    fl_partition_done(&part);
}

TEST_EACH(a_client_below_the_minimum_gets_it_exactly_and_no_other_client_gains, 2)
{
    size_t n = make_labels(10000, 10);
    struct fl_partition_conf conf = conf_for(40, 3);
    struct fl_partition free_sizes;
    struct fl_partition raised;
    size_t at_minimum = 0;
    size_t k;

    conf.min_samples = 1;
    free_sizes = make(methods[_i], &conf, n, 10);
    conf.min_samples = 120;
    raised = make(methods[_i], &conf, n, 10);
    for (k = 0; k < 40; k++) {
        size_t before = fl_partition_count(&free_sizes, k);
        size_t after = fl_partition_count(&raised, k);

        at_minimum += after == 120;
        ck_assert(before > 120 || after == 120);
        ck_assert(after == 120 || after <= before + 1);
    }
    ck_assert_uint_gt(at_minimum, 5);
    ck_assert_uint_lt(at_minimum, 40);
    fl_partition_done(&free_sizes);
    fl_partition_done(&raised);
}

TEST(sigma_0_gives_equal_sizes)
{
    size_t n = make_labels(1003, 10);
    struct fl_partition_conf conf = conf_for(10, 1);
    struct fl_partition part;
    size_t k;

    conf.sigma = 0.0;
    part = make("lognormal-sizes", &conf, n, 10);
    ck_assert_uint_eq(expect_disjoint(&part, n), n);
    for (k = 0; k < 10; k++) {
        ck_assert_uint_ge(fl_partition_count(&part, k), 100);
        ck_assert_uint_le(fl_partition_count(&part, k), 101);
    }
    fl_partition_done(&part);
}

/* Mean and standard deviation over the clients of f(size). */
static void moments(const struct fl_partition *part, double (*f)(double), double *ret_mean,
                    double *ret_deviation)
{
    double n = (double)part->n_clients;
    double sum = 0.0;
    double squares = 0.0;
    size_t k;

    for (k = 0; k < part->n_clients; k++) {
        double v = f((double)fl_partition_count(part, k));

        sum += v;
        squares += v * v;
    }
    *ret_mean = sum / n;
    *ret_deviation = sqrt(squares / n - sum / n * (sum / n));
}

static double itself(double v)
{
    return v;
}

/* Standard error of a deviation s over 1000 draws: s / sqrt(2000). */
TEST_EACH(the_logarithm_of_log_normal_sizes_has_deviation_sigma, 3)
{
    static const double sigmas[] = {0.1, 0.3, 0.6};
    size_t n = make_labels(N_MAX, 10);
    struct fl_partition_conf conf = conf_for(1000, 5);
    struct fl_partition part;
    double mean;
    double deviation;

    conf.sigma = sigmas[_i];
    conf.min_samples = 1;
    part = make("lognormal-sizes", &conf, n, 10);
    moments(&part, log, &mean, &deviation);
    ck_assert_double_eq_tol(deviation, sigmas[_i], 0.12 * sigmas[_i]);
    fl_partition_done(&part);
}

/* The variance of one of N parts of Dir(a, …, a) is (1/N)(1 - 1/N) / (N a + 1). */
TEST_EACH(dirichlet_sizes_have_the_variance_of_their_law, 3)
{
    static const double alphas[] = {1.0, 4.0, 20.0};
    size_t n = make_labels(N_MAX, 10);
    struct fl_partition_conf conf = conf_for(1000, 6);
    struct fl_partition part;
    double mean;
    double deviation;

    conf.alpha = alphas[_i];
    conf.min_samples = 1;
    part = make("dirichlet-sizes", &conf, n, 10);
    moments(&part, itself, &mean, &deviation);
    ck_assert_double_eq_tol(mean, 70.0, 1e-9);
    ck_assert_double_eq_tol(deviation / mean, sqrt(999.0 / (1000.0 * alphas[_i] + 1.0)),
                            0.15 / sqrt(alphas[_i]));
    fl_partition_done(&part);
}

/* A count of s samples with share q has variance s q (1 - q): 5 deviations for 2 x 10 x 10 counts.
 */
TEST_EACH(labels_are_those_of_a_random_sample_for_every_size, 2)
{
    size_t n = N_MAX;
    struct fl_partition_conf conf = conf_for(10, 8);
    struct fl_partition part;
    size_t of_set[10] = {0};
    size_t k;
    size_t c;
    size_t i;

    for (i = 0; i < n; i++) { /* Sorted: runs of the file have few labels. */
        labels[i] = (int32_t)(i * 10 / n);
        of_set[labels[i]]++;
    }
    part = make(methods[_i], &conf, n, 10);
    for (k = 0; k < 10; k++) {
        double size = (double)fl_partition_count(&part, k);
        size_t counts[10] = {0};

        for (i = part.start[k]; i < part.start[k + 1]; i++) {
            counts[labels[part.items[i]]]++;
        }
        for (c = 0; c < 10; c++) {
            double q = (double)of_set[c] / (double)n;

            ck_assert_double_eq_tol((double)counts[c], size * q, 5.0 * sqrt(size * q * (1.0 - q)));
        }
    }
    fl_partition_done(&part);
}

TEST_EACH(a_minimum_that_is_too_large_is_refused, 2)
{
    size_t n = make_labels(100, 10);
    struct fl_partition_conf conf = conf_for(10, 1);

    conf.min_samples = 11;
    expect_refused(methods[_i], &conf, n,
                   "10 clients with at least 11 samples each need more than the 100 samples");
}
