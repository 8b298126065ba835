/* Partitions: who gets which samples. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/data/dataset.h"
#include "libfl/data/dirichlet.h"
#include "libfl/data/partition.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"
#include "tests/libfl/data/partition_fixture.h"

TEST_EACH(every_method_deals_every_sample_once_and_repeats_itself, 3)
{
    const struct fl_partition_ops *ops = fl_partition_at((size_t)_i);
    size_t n = make_labels(5003, 10);
    struct fl_partition_conf conf = conf_for(17, 42);
    struct fl_partition a = make(ops->name, &conf, n, 10);
    struct fl_partition b = make(ops->name, &conf, n, 10);
    struct fl_partition c;

    ck_assert_uint_eq(expect_disjoint(&a, n), n);
    ck_assert_mem_eq(a.start, b.start, 18 * sizeof(*a.start));
    ck_assert_mem_eq(a.items, b.items, n * sizeof(*a.items));
    conf.seed = 43;
    c = make(ops->name, &conf, n, 10);
    ck_assert_mem_ne(a.items, c.items, n * sizeof(*a.items));
    fl_partition_done(&a);
    fl_partition_done(&b);
    fl_partition_done(&c);
}

TEST(iid_shares_equally_to_within_one)
{
    size_t n = make_labels(1003, 10);
    struct fl_partition_conf conf = conf_for(10, 1);
    struct fl_partition part = make("iid", &conf, n, 10);
    size_t k;

    for (k = 0; k < 10; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), k < 3 ? 101 : 100);
    }
    fl_partition_done(&part);
}

TEST_EACH(iid_gives_exactly_the_size_asked_for, 3)
{
    /* AdaFL and FedLDF on CIFAR-10. */
    static const size_t counts[][2] = {{100, 500}, {50, 1000}, {50, 500}};
    size_t n = make_labels(50000, 10);
    size_t n_clients = counts[_i][0];
    struct fl_partition_conf conf = conf_for(n_clients, 1);
    struct fl_partition part;
    size_t k;

    conf.samples = counts[_i][1];
    part = make("iid", &conf, n, 10);
    ck_assert_uint_eq(expect_disjoint(&part, n), n_clients * counts[_i][1]);
    for (k = 0; k < n_clients; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), counts[_i][1]);
        ck_assert_uint_eq(count_classes(&part, k, 10), 10);
    }
    fl_partition_done(&part);
}

TEST(shards_give_a_client_few_classes)
{
    size_t n = make_labels(60000, 10);
    struct fl_partition_conf conf = conf_for(100, 1);
    struct fl_partition part = make("shards", &conf, n, 10);
    size_t two = 0;
    size_t k;

    for (k = 0; k < 100; k++) {
        size_t classes = count_classes(&part, k, 10);

        ck_assert_uint_eq(fl_partition_count(&part, k), 600);
        ck_assert_uint_le(classes, 4); /* A shard can straddle two classes. */
        two += classes == 2;
    }
    ck_assert_uint_gt(two, 50); /* and usually does not */
    fl_partition_done(&part);
}

TEST(a_shard_is_a_run_of_the_labels_sorted_stably)
{
    struct fl_partition_conf conf = conf_for(3, 5);
    struct fl_partition part;
    size_t k;

    /* Sorted stably: 1 3 5 | 0 2 4; with one shard each a client has two neighbours. */
    (void)memcpy(labels, (int32_t[]){1, 0, 1, 0, 1, 0}, 6 * sizeof(labels[0]));
    conf.shards_per_client = 1;
    part = make("shards", &conf, 6, 2);
    for (k = 0; k < 3; k++) {
        const uint32_t *items = part.items + part.start[k];

        ck_assert_uint_eq(fl_partition_count(&part, k), 2);
        ck_assert((items[0] == 1 && items[1] == 3) || (items[0] == 0 && items[1] == 5) ||
                  (items[0] == 2 && items[1] == 4));
    }
    fl_partition_done(&part);
}

/* FedLDF on CIFAR-10: 50 clients, alpha 1, nobody below 10 samples. */
TEST_EACH(fifty_clients_by_dirichlet_share_all_of_cifar_unequally, 10)
{
    size_t n = make_labels(50000, 10);
    struct fl_partition_conf conf = conf_for(50, (uint64_t)_i);
    struct fl_partition part = make("dirichlet", &conf, n, 10);
    size_t least = SIZE_MAX;
    size_t most = 0;
    size_t k;

    ck_assert_uint_eq(expect_disjoint(&part, n), 50000);
    for (k = 0; k < 50; k++) {
        size_t size = fl_partition_count(&part, k);

        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    ck_assert_uint_ge(least, 10);
    ck_assert_uint_lt(least, 700);
    ck_assert_uint_gt(most, 1400); /* The sizes are gamma like, 1000 with deviation 310. */
    fl_partition_done(&part);
}

TEST_EACH(dirichlet_keeps_the_minimum_whatever_alpha, 4)
{
    static const double alphas[] = {0.1, 0.5, 1.0, 100.0};
    size_t n = make_labels(10000, 10);
    struct fl_partition_conf conf = conf_for(20, 3);
    struct fl_partition part;
    size_t k;

    conf.alpha = alphas[_i];
    conf.min_samples = 60; /* More than the first draw gives. */
    part = make("dirichlet", &conf, n, 10);
    ck_assert_uint_eq(expect_disjoint(&part, n), n);
    for (k = 0; k < 20; k++) {
        ck_assert_uint_ge(fl_partition_count(&part, k), 60);
    }
    fl_partition_done(&part);
}

/* The mean share that a client's largest class has of its samples. */
static double skew(double alpha)
{
    size_t n = make_labels(20000, 10);
    struct fl_partition_conf conf = conf_for(10, 9);
    struct fl_partition part;
    double sum = 0.0;
    size_t k;
    size_t i;

    conf.alpha = alpha;
    conf.min_samples = 1;
    part = make("dirichlet", &conf, n, 10);
    for (k = 0; k < 10; k++) {
        size_t counts[10] = {0};
        size_t top = 0;

        for (i = part.start[k]; i < part.start[k + 1]; i++) {
            counts[labels[part.items[i]]]++;
        }
        for (i = 0; i < 10; i++) {
            top = counts[i] > top ? counts[i] : top;
        }
        sum += (double)top / (double)fl_partition_count(&part, k);
    }
    fl_partition_done(&part);
    return sum / 10.0;
}

TEST(smaller_alpha_is_more_skewed)
{
    double even = skew(1e4);
    double middle = skew(1.0);
    double skewed = skew(0.05);

    ck_assert_double_lt(even, 0.12);
    ck_assert_double_gt(middle, 0.2);
    ck_assert_double_gt(skewed, 0.6);
    ck_assert_double_lt(middle, skewed);
}

/* Mean and variance of Gamma(a, 1) are a and a; of one Dirichlet part 1/n and (1/n)(1-1/n)/(na+1).
 */
TEST_EACH(gamma_draws_have_the_moments_of_their_law, 5)
{
    static const double shapes[] = {0.05, 0.5, 1.0, 3.0, 50.0};
    double a = shapes[_i];
    struct fl_rng rng;
    double sum = 0.0;
    double squares = 0.0;
    size_t n = 200000;
    size_t i;

    fl_rng_seed(&rng, 11);
    for (i = 0; i < n; i++) {
        double g = exp(fl_log_gamma_draw(&rng, a));

        sum += g;
        squares += g * g;
    }
    sum /= (double)n;
    squares = squares / (double)n - sum * sum;
    ck_assert_double_eq_tol(sum, a, 6.0 * sqrt(a / (double)n));
    ck_assert_double_eq_tol(squares / a, 1.0, 0.05 + 0.1 / sqrt(a * 20));
}

TEST_EACH(dirichlet_draws_sum_to_one_for_any_alpha, 4)
{
    static const double alphas[] = {1e-4, 0.01, 1.0, 1e6};
    struct fl_rng rng;
    double p[50];
    int draw;
    size_t i;

    fl_rng_seed(&rng, 4);
    for (draw = 0; draw < 100; draw++) {
        double sum = 0.0;

        fl_dirichlet_draw(&rng, alphas[_i], p, 50);
        for (i = 0; i < 50; i++) {
            ck_assert(p[i] >= 0.0 && p[i] <= 1.0);
            sum += p[i];
        }
        ck_assert_double_eq_tol(sum, 1.0, 1e-12);
    }
}

TEST(what_cannot_be_shared_is_refused_with_the_reason)
{
    size_t n = make_labels(100, 10);
    struct fl_partition_conf conf = conf_for(0, 1);

    expect_refused("iid", &conf, n, "expected 1 to 1000000 clients, found 0");
    conf.n_clients = 101;
    expect_refused("iid", &conf, n, "101 clients cannot share 100 samples");
    conf.n_clients = 10;
    conf.samples = 11;
    expect_refused("iid", &conf, n,
                   "10 clients with 11 samples each need more than the 100 samples there are");
    conf.shards_per_client = 11;
    expect_refused("shards", &conf, n, "10 clients with 11 shards each need more than the 100");
    conf.min_samples = 11;
    expect_refused("dirichlet", &conf, n, "10 clients with at least 11 samples each need more");
    conf.min_samples = 10;
    conf.alpha = 0.01;
    expect_refused("dirichlet", &conf, n, "raise alpha, lower the minimum or take fewer clients");
}

TEST(options_have_defaults_ranges_and_help)
{
    const struct fl_partition_ops *ops;
    const struct fl_partition_option *option;
    struct fl_partition_conf conf;
    struct fl_err err = {0};
    size_t i;

    fl_partition_conf_init(&conf);
    ck_assert_uint_eq(conf.samples, 0);
    ck_assert_uint_eq(conf.shards_per_client, 2);
    ck_assert(conf.alpha == 1.0);
    ck_assert_uint_eq(conf.min_samples, 10);
    for (i = 0; (ops = fl_partition_at(i)) != NULL; i++) {
        ck_assert_ptr_eq(fl_partition_find(ops->name), ops);
        ck_assert_uint_gt(strlen(ops->help), 10);
        for (option = ops->options; option->name != NULL; option++) {
            ck_assert_uint_gt(strlen(option->help), 10);
            ck_assert(option->min <= option->def && option->def <= option->max);
        }
    }
    ck_assert_ptr_null(fl_partition_find("none"));
    option = fl_partition_find("dirichlet")->options;
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "0.25", &err), FL_OK);
    ck_assert(conf.alpha == 0.25);
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "0", &err), FL_ERANGE);
    ck_assert_str_eq(err.msg, "alpha: expected 0.0001 to 1000000, found '0'");
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "much", &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "alpha: expected a number, found 'much'");
    option = fl_partition_find("shards")->options;
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "3", &err), FL_OK);
    ck_assert_uint_eq(conf.shards_per_client, 3);
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "2.5", &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "shards-per-client: expected a whole number, found '2.5'");
}

TEST(mnist_shards_are_those_of_the_paper)
{
    const char *base = getenv("FL_DATA_DIR");
    struct fl_partition_conf conf = conf_for(100, 2024);
    struct fl_dataset *ds = NULL;
    struct fl_partition part;
    char path[T_PATH];
    size_t k;

    if (base == NULL || !fl_fs_exists(t_path(path, base, "mnist"))) {
        (void)printf("skipped: no mnist under $FL_DATA_DIR\n");
        return;
    }
    ck_assert_int_eq(fl_dataset_open(path, "train", &ds, NULL), FL_OK);
    (void)memcpy(labels, ds->y, ds->n * sizeof(*labels));
    fl_dataset_free(ds);
    part = make("shards", &conf, 60000, 10);
    ck_assert_uint_eq(expect_disjoint(&part, 60000), 60000);
    for (k = 0; k < 100; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), 600);
        ck_assert_uint_le(count_classes(&part, k, 10), 4);
    }
    fl_partition_done(&part);
}
