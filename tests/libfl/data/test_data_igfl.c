/* The partitions of IGFL: cross-silo shards of different labels, cross-device Dir(rho q). */
#include <math.h>

#include "tests/lib/suites.h"
#include "tests/libfl/data/partition_fixture.h"

/* Labels class by class, `sizes[c]` of each, as a sorted file has them. */
static size_t fill(const size_t *sizes, size_t classes)
{
    size_t n = 0;
    size_t c;
    size_t i;

    for (c = 0; c < classes; c++) {
        ck_assert_uint_le(n + sizes[c], N_MAX);
        for (i = 0; i < sizes[c]; i++) {
            labels[n++] = (int32_t)c;
        }
    }
    return n;
}

/* How many samples of each class client `k` has. */
static void histogram(const struct fl_partition *part, size_t k, size_t *counts, size_t classes)
{
    size_t i;

    (void)memset(counts, 0, classes * sizeof(*counts));
    for (i = part->start[k]; i < part->start[k + 1]; i++) {
        counts[labels[part->items[i]]]++;
    }
}

static bool same(const struct fl_partition *a, const struct fl_partition *b)
{
    size_t n = a->start[a->n_clients];

    return b->start[b->n_clients] == n &&
           memcmp(a->start, b->start, (a->n_clients + 1) * sizeof(*a->start)) == 0 &&
           memcmp(a->items, b->items, n * sizeof(*a->items)) == 0;
}

/* --- B: cross-silo --- */

TEST_EACH(silo_gives_ten_clients_two_cifar_shards_of_different_labels, 20)
{
    static const size_t cifar[10] = {5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000, 5000};
    size_t n = fill(cifar, 10);
    struct fl_partition_conf conf = conf_for(10, (uint64_t)_i);
    struct fl_partition part = make("silo", &conf, n, 10);
    size_t counts[10];
    size_t k;
    size_t c;

    ck_assert_uint_eq(expect_disjoint(&part, n), 50000);
    for (k = 0; k < 10; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), 5000);
        histogram(&part, k, counts, 10);
        for (c = 0; c < 10; c++) {
            ck_assert_msg(counts[c] == 0 || counts[c] == 2500, "client %zu has %zu of label %zu", k,
                          counts[c], c);
        }
    }
    fl_partition_done(&part);
}

TEST(silo_of_a_hundred_clients_keeps_every_label_in_one_shard)
{
    static const size_t sizes[10] = {6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000};
    size_t n = fill(sizes, 10);
    struct fl_partition_conf conf = conf_for(100, 3);
    struct fl_partition part;
    size_t counts[10];
    size_t k;
    size_t c;

    conf.shards_per_client = 4;
    part = make("silo", &conf, n, 10);
    ck_assert_uint_eq(expect_disjoint(&part, n), n);
    for (k = 0; k < 100; k++) {
        histogram(&part, k, counts, 10);
        for (c = 0; c < 10; c++) {
            ck_assert(counts[c] == 0 || counts[c] == 150);
        }
    }
    fl_partition_done(&part);
}

/* A careless deal hands out the common labels early and ends with clients that get one twice. */
TEST(silo_keeps_in_mind_what_the_last_clients_need)
{
    static const size_t sizes[10] = {60, 60, 60, 60, 60, 60, 48, 48, 48, 36};
    size_t n = fill(sizes, 10);
    struct fl_partition_conf conf = conf_for(60, 5);
    struct fl_partition part;
    size_t k;

    conf.shards_per_client = 9;
    part = make("silo", &conf, n, 10);
    for (k = 0; k < 60; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), 9);
        ck_assert_uint_eq(count_classes(&part, k, 10), 9);
    }
    fl_partition_done(&part);
}

/* Class sizes that no shard size divides: a shard can straddle, yet no label is in two shards. */
TEST_EACH(silo_shards_that_straddle_share_no_label_on_a_client, 20)
{
    static const size_t sizes[10] = {1005, 974, 1032, 1016, 999, 937, 1030, 1001, 1025, 981};
    size_t n = fill(sizes, 10);
    struct fl_partition_conf conf = conf_for(10, (uint64_t)_i);
    struct fl_partition part = make("silo", &conf, n, 10);
    size_t k;
    size_t i;

    ck_assert_uint_eq(expect_disjoint(&part, n), 10000);
    for (k = 0; k < 10; k++) {
        const uint32_t *items = part.items + part.start[k];

        /* Two runs of 500 of the sorted labels; the labels of the first end below the second's. */
        ck_assert_uint_eq(fl_partition_count(&part, k), 1000);
        for (i = 0; i < 500; i++) {
            ck_assert_uint_eq(items[i], items[0] + i);
            ck_assert_uint_eq(items[500 + i], items[500] + i);
        }
        ck_assert_int_lt(labels[items[499]], labels[items[500]]);
    }
    fl_partition_done(&part);
}

TEST(silo_takes_any_shard_size_and_leaves_the_rest)
{
    static const size_t sizes[4] = {300, 300, 300, 300};
    size_t n = fill(sizes, 4);
    struct fl_partition_conf conf = conf_for(5, 1);
    struct fl_partition part;
    size_t counts[4];
    size_t k;
    size_t c;

    conf.shard_size = 50;
    conf.shards_per_client = 3;
    part = make("silo", &conf, n, 4);
    ck_assert_uint_eq(expect_disjoint(&part, n), 750);
    for (k = 0; k < 5; k++) {
        histogram(&part, k, counts, 4);
        for (c = 0; c < 4; c++) {
            ck_assert(counts[c] == 0 || counts[c] == 50);
        }
    }
    conf.shard_size = 100;
    expect_refused("silo", &conf, n,
                   "5 clients with 3 shards of 100 samples each need more than the 1200 samples");
    fl_partition_done(&part);
}

TEST(silo_says_when_labels_cannot_differ)
{
    size_t n = fill((const size_t[]){100}, 1);
    struct fl_partition_conf conf = conf_for(10, 1);

    expect_refused("silo", &conf, n,
                   "10 clients cannot get 2 shards of different labels each: 20 of the 20 shards "
                   "begin with label 0");
    n = fill((const size_t[]){120, 40, 40}, 3);
    expect_refused("silo", &conf, n, "12 of the 20 shards begin with label 0");
    /* Each label begins one shard, but both shards hold label 1. */
    n = fill((const size_t[]){1, 2, 1}, 3);
    conf.n_clients = 1;
    expect_refused("silo", &conf, n, "no draw gave each of 1 clients 2 shards of different");
    conf.n_clients = 3;
    expect_refused("silo", &conf, n, "3 clients with 2 shards each need more than the 4 samples");
}

TEST(silo_follows_the_seed)
{
    static const size_t sizes[10] = {500, 500, 500, 500, 500, 500, 500, 500, 500, 500};
    size_t n = fill(sizes, 10);
    struct fl_partition_conf conf = conf_for(10, 8);
    struct fl_partition a = make("silo", &conf, n, 10);
    struct fl_partition b = make("silo", &conf, n, 10);
    struct fl_partition c;

    conf.seed = 9;
    c = make("silo", &conf, n, 10);
    ck_assert(same(&a, &b));
    ck_assert(!same(&a, &c));
    fl_partition_done(&a);
    fl_partition_done(&b);
    fl_partition_done(&c);
}

/* --- C: cross-device --- */

static struct fl_partition device(double rho, enum fl_partition_prior prior, size_t n,
                                  size_t clients, size_t classes, uint64_t seed)
{
    struct fl_partition_conf conf = conf_for(clients, seed);

    conf.rho = rho;
    conf.prior = prior;
    return make("device", &conf, n, classes);
}

TEST_EACH(device_sizes_are_equal_whatever_rho, 4)
{
    static const double rhos[] = {0.0001, 0.1, 1.0, 1000.0};
    size_t n = make_labels(50000, 10);
    struct fl_partition part = device(rhos[_i], FL_PARTITION_RHO_OVER_C, n, 100, 10, 2);
    size_t k;

    ck_assert_uint_eq(expect_disjoint(&part, n), 50000);
    for (k = 0; k < 100; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), 500);
    }
    fl_partition_done(&part);
}

/* 62 classes shared by 100 as EMNIST is: floor(n / 100) each, the rest to nobody. */
TEST(device_size_is_the_floor_of_an_equal_share)
{
    size_t n = make_labels(6979 * 8 + 7, 62);
    struct fl_partition part = device(0.1, FL_PARTITION_RHO_OVER_C, n, 8, 62, 1);
    struct fl_partition_conf conf = conf_for(8, 1);
    size_t k;

    ck_assert_uint_eq(expect_disjoint(&part, n), 6979 * 8);
    for (k = 0; k < 8; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), 6979);
    }
    fl_partition_done(&part);
    conf.samples = 100;
    part = make("device", &conf, n, 62);
    ck_assert_uint_eq(expect_disjoint(&part, n), 800);
    fl_partition_done(&part);
    conf.samples = 6980;
    expect_refused("device", &conf, n, "8 clients with 6980 samples each need more than the 55839");
}

/* Mean share of the largest label of a client, over clients whose pools were far from empty. */
static double top_share(double rho, enum fl_partition_prior prior)
{
    size_t n = make_labels(60000, 10);
    double sum = 0.0;
    uint64_t seed;

    for (seed = 0; seed < 200; seed++) {
        struct fl_partition_conf conf = conf_for(4, seed);
        struct fl_partition part;
        size_t counts[10];
        size_t top;
        size_t k;
        size_t c;

        conf.rho = rho;
        conf.prior = prior;
        conf.samples = 1000; /* Four clients cannot empty a pool of 6 000. */
        part = make("device", &conf, n, 10);
        for (k = 0; k < 4; k++) {
            histogram(&part, k, counts, 10);
            for (top = 0, c = 0; c < 10; c++) {
                top = counts[c] > top ? counts[c] : top;
            }
            sum += (double)top / 4000.0;
        }
        fl_partition_done(&part);
    }
    return sum / 200.0;
}

/* Statistics of hundreds of partitions, each made as the others of this file are. */
TEST(device_concentration_is_rho_over_the_labels_or_rho)
{
    /* rho over ten labels is what rho / 10 per label is, and not what rho per label is. */
    double over = top_share(0.1, FL_PARTITION_RHO_OVER_C);
    double tenth = top_share(0.01, FL_PARTITION_RHO);
    double plain = top_share(0.1, FL_PARTITION_RHO);

    ck_assert_double_eq_tol(over, tenth, 1e-12);
    ck_assert_double_gt(over, 0.93); /* "nearly one class per client" */
    ck_assert_double_lt(plain, 0.85);
    ck_assert_double_gt(plain, 0.55);
    ck_assert_double_lt(top_share(1e5, FL_PARTITION_RHO_OVER_C), 0.15);
}

/* Var of a share under Dir(a, …, a) over C labels: (C - 1) / (C^2 (C a + 1)). */
TEST(device_shares_have_the_variance_of_their_law)
{
    size_t n = make_labels(60000, 10);
    double squares = 0.0;
    uint64_t seed;

    for (seed = 0; seed < 400; seed++) {
        struct fl_partition_conf conf = conf_for(3, seed);
        struct fl_partition part;
        size_t counts[10];
        size_t k;
        size_t c;

        conf.rho = 5.0;
        conf.samples = 2000;
        part = make("device", &conf, n, 10);
        for (k = 0; k < 3; k++) {
            histogram(&part, k, counts, 10);
            for (c = 0; c < 10; c++) {
                squares += pow((double)counts[c] / 2000.0 - 0.1, 2.0) / (400.0 * 3.0 * 10.0);
            }
        }
        fl_partition_done(&part);
    }
    ck_assert_double_eq_tol(squares, 9.0 / (100.0 * (5.0 + 1.0)), 0.001);
}

/* A tenth of a client's wish is there; it gets all of that, and the rest from what is left. */
TEST(device_goes_on_when_a_pool_is_empty)
{
    size_t n = fill((const size_t[]){10, 0, 990}, 3);
    struct fl_partition part = device(0.0001, FL_PARTITION_RHO_OVER_C, n, 10, 3, 4);
    size_t counts[3];
    size_t got[3] = {0};
    size_t k;

    ck_assert_uint_eq(expect_disjoint(&part, n), 1000);
    for (k = 0; k < 10; k++) {
        histogram(&part, k, counts, 3);
        ck_assert_uint_eq(fl_partition_count(&part, k), 100);
        got[0] += counts[0];
        got[2] += counts[2];
    }
    ck_assert_uint_eq(got[0], 10);
    ck_assert_uint_eq(got[2], 990);
    fl_partition_done(&part);
}

/*
 * With so small a rho one label has all of the probability. A client that wants the emptied
 * label draws from the two others by their sizes, 1 to 3. (Now and then a second share does not
 * underflow to 0; then one label has all the rest.)
 */
TEST(device_draws_by_pool_size_when_no_share_is_left)
{
    size_t n = fill((const size_t[]){10, 1000, 3000}, 3);
    size_t mixed = 0;
    uint64_t seed;

    for (seed = 0; seed < 60; seed++) {
        struct fl_partition_conf conf = conf_for(1, seed);
        struct fl_partition part;
        size_t counts[3];

        conf.rho = 0.0003;
        conf.samples = 1010;
        part = make("device", &conf, n, 3);
        histogram(&part, 0, counts, 3);
        if (counts[0] == 10 && counts[1] > 0 && counts[1] < 1000) {
            ck_assert_double_eq_tol((double)counts[1] / 1000.0, 0.25, 0.06);
            mixed++;
        }
        fl_partition_done(&part);
    }
    ck_assert_uint_gt(mixed, 5);
}

TEST(device_of_one_label_is_a_random_share)
{
    size_t n = fill((const size_t[]){1000}, 1);
    struct fl_partition part = device(0.1, FL_PARTITION_RHO_OVER_C, n, 10, 1, 1);

    ck_assert_uint_eq(expect_disjoint(&part, n), 1000);
    ck_assert_uint_gt(part.items[99] - part.items[0], 99); /* not a run of the file */
    fl_partition_done(&part);
}

TEST(device_follows_the_seed)
{
    size_t n = make_labels(5000, 10);
    struct fl_partition a = device(0.1, FL_PARTITION_RHO_OVER_C, n, 10, 10, 1);
    struct fl_partition b = device(0.1, FL_PARTITION_RHO_OVER_C, n, 10, 10, 1);
    struct fl_partition c = device(0.1, FL_PARTITION_RHO_OVER_C, n, 10, 10, 2);

    ck_assert(same(&a, &b));
    ck_assert(!same(&a, &c));
    fl_partition_done(&a);
    fl_partition_done(&b);
    fl_partition_done(&c);
}

TEST(dirichlet_prior_is_one_of_two_words)
{
    const struct fl_partition_option *option = fl_partition_find("device")->options;
    struct fl_partition_conf conf = conf_for(1, 1);
    struct fl_err err = {0};

    while (strcmp(option->name, "dirichlet-prior") != 0) {
        option++;
    }
    ck_assert_uint_eq(conf.prior, FL_PARTITION_RHO_OVER_C);
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "rho", &err), FL_OK);
    ck_assert_uint_eq(conf.prior, FL_PARTITION_RHO);
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "rho_over_C", &err), FL_OK);
    ck_assert_uint_eq(conf.prior, FL_PARTITION_RHO_OVER_C);
    ck_assert_int_eq(fl_partition_option_set(option, &conf, "q", &err), FL_EINVAL);
    ck_assert_str_eq(err.msg, "dirichlet-prior: expected one of rho_over_C, rho, found 'q'");
}
