/* The image federations of FedMCSA: two labels a client, the published sizes. */
#include <stdio.h>

#include "libfl/base/fs.h"
#include "libfl/data/dataset.h"
#include "libfl/data/numpy_rng.h"
#include "tests/lib/data_files.h"
#include "tests/lib/suites.h"
#include "tests/libfl/data/partition_fixture.h"

/* Samples per label of the 70 000 MNIST images. */
static const size_t mnist_classes[10] = {6903, 7877, 6990, 7141, 6824,
                                         6313, 6876, 7293, 6825, 6958};

/* MNIST: samples of the first and the second label of each client. */
static const size_t mnist_sizes[20][2] = {{2441, 2671}, {2358, 2630}, {1721, 2169}, {2043, 2211},
                                          {1506, 1710}, {1127, 1946}, {1070, 2202}, {1934, 1080},
                                          {1364, 2518}, {2480, 1878}, {1575, 1367}, {841, 715},
                                          {1101, 1102}, {1255, 598},  {574, 1208},  {1760, 1893},
                                          {2721, 1594}, {2068, 1962}, {2214, 1966}, {2265, 2162}};

/* Labels in a mixed order, sizes[c] of label c. */
static size_t fill_mixed(const size_t sizes[10])
{
    size_t left[10];
    size_t n = 0;
    size_t before;
    size_t c;

    (void)memcpy(left, sizes, sizeof(left));
    do {
        before = n;
        for (c = 0; c < 10; c++) {
            if (left[c] > 0) {
                ck_assert_uint_lt(n, N_MAX);
                labels[n++] = (int32_t)c;
                left[c]--;
            }
        }
    } while (n > before);
    return n;
}

static void expect_mnist(const struct fl_partition *part, size_t n)
{
    size_t least = SIZE_MAX;
    size_t most = 0;
    size_t k;
    size_t i;

    ck_assert_uint_eq(expect_disjoint(part, n), 70000);
    for (k = 0; k < 20; k++) {
        size_t size = fl_partition_count(part, k);
        size_t train = size - fl_dataset_split_count(size, 0.25);
        size_t got[2] = {0, 0};

        for (i = part->start[k]; i < part->start[k + 1]; i++) {
            int32_t label = labels[part->items[i]];

            ck_assert(label == (int32_t)(2 * k % 10) || label == (int32_t)((2 * k + 1) % 10));
            got[label == (int32_t)(2 * k % 10) ? 0 : 1]++;
        }
        ck_assert_uint_eq(got[0], mnist_sizes[k][0]);
        ck_assert_uint_eq(got[1], mnist_sizes[k][1]);
        ck_assert_uint_eq(train, size * 3 / 4);
        least = train < least ? train : least;
        most = train > most ? train : most;
    }
    ck_assert_uint_eq(least, 1167);
    ck_assert_uint_eq(most, 3834);
}

TEST_EACH(twenty_mnist_clients_have_the_published_counts, 2)
{
    size_t n = fill_mixed(mnist_classes);
    struct fl_partition_conf conf = conf_for(20, (uint64_t)_i); /* The seed has no say in this. */
    struct fl_partition part = make("pairs", &conf, n, 10);

    expect_mnist(&part, n);
    fl_partition_done(&part);
}

TEST(the_samples_of_a_label_come_in_the_order_of_the_file)
{
    size_t n = fill_mixed(mnist_classes);
    struct fl_partition_conf conf = conf_for(20, 1);
    struct fl_partition part = make("pairs", &conf, n, 10);
    uint32_t next[10] = {0}; /* behind the last sample of the label that is dealt */
    size_t k;
    size_t i;

    for (k = 0; k < 20; k++) {
        uint32_t last[10] = {0};

        for (i = part.start[k]; i < part.start[k + 1]; i++) {
            int32_t label = labels[part.items[i]];

            ck_assert_uint_ge(part.items[i], next[label]);
            last[label] = part.items[i] + 1;
        }
        for (i = 0; i < 10; i++) {
            next[i] = last[i] > 0 ? last[i] : next[i];
        }
    }
    fl_partition_done(&part);
}

TEST(the_mnist_files_give_the_published_counts)
{
    const char *base = getenv("FL_DATA_DIR");
    struct fl_partition_conf conf = conf_for(20, 1);
    struct fl_dataset *train = NULL;
    struct fl_dataset *test = NULL;
    struct fl_partition part;
    char path[T_PATH];

    if (base == NULL || !fl_fs_exists(t_path(path, base, "mnist"))) {
        (void)printf("skipped: no mnist under $FL_DATA_DIR\n");
        return;
    }
    ck_assert_int_eq(fl_dataset_open(path, "train", &train, NULL), FL_OK);
    ck_assert_int_eq(fl_dataset_open(path, "test", &test, NULL), FL_OK);
    ck_assert_uint_eq(train->n + test->n, 70000);
    (void)memcpy(labels, train->y, train->n * sizeof(*labels));
    (void)memcpy(labels + train->n, test->y, test->n * sizeof(*labels));
    part = make("pairs", &conf, 70000, 10);
    expect_mnist(&part, 70000);
    fl_partition_done(&part);
    fl_dataset_free(train);
    fl_dataset_free(test);
}

/* Smallest, largest and sum of the clients' sizes, and how many clients have one label only. */
static void expect_totals(const struct fl_partition *part, size_t total, size_t least, size_t most,
                          size_t single)
{
    size_t lo = SIZE_MAX;
    size_t hi = 0;
    size_t one = 0;
    size_t k;

    for (k = 0; k < 20; k++) {
        size_t n = fl_partition_count(part, k);

        lo = n < lo ? n : lo;
        hi = n > hi ? n : hi;
        one += count_classes(part, k, 10) == 1;
    }
    ck_assert_uint_eq(part->start[20], total);
    ck_assert_uint_eq(lo, least);
    ck_assert_uint_eq(hi, most);
    ck_assert_uint_eq(one, single);
}

/* Labels (i, i + 1 mod 10), as both released programs deal them. */
static void expect_neighbours(const struct fl_partition *part)
{
    size_t k;
    size_t i;

    for (k = 0; k < 20; k++) {
        for (i = part->start[k]; i < part->start[k + 1]; i++) {
            int32_t label = labels[part->items[i]];

            ck_assert(label == (int32_t)(k % 10) || label == (int32_t)((k + 1) % 10));
        }
    }
}

TEST(fashion_mnist_as_released_uses_a_fifth_of_the_images)
{
    static const size_t classes[10] = {7000, 7000, 7000, 7000, 7000, 7000, 7000, 7000, 7000, 7000};
    /* The totals that the released program prints before it splits off the test parts. */
    static const size_t sizes[20] = {2395, 3232, 2056, 1785, 1145, 1308, 785, 291, 316, 110,
                                     224,  102,  83,   28,   11,   24,   16,  38,  18,  33};
    size_t n = fill_mixed(classes);
    struct fl_partition_conf conf = conf_for(20, 1);
    struct fl_partition part;
    size_t k;

    conf.variant = FL_PARTITION_FMNIST;
    part = make("pairs", &conf, n, 10);
    (void)expect_disjoint(&part, n);
    expect_neighbours(&part);
    expect_totals(&part, 14000, 11, 3232, 0);
    for (k = 0; k < 20; k++) {
        ck_assert_uint_eq(fl_partition_count(&part, k), sizes[k]);
    }
    fl_partition_done(&part);
}

/*
 * The program for Fashion-MNIST fills a slot only when a sample of the class stays behind. Its
 * sizes come from the labels 0 and 1, so label 5 can be made just as large as what it gives.
 */
TEST(fashion_mnist_as_released_never_takes_the_last_sample_of_a_label)
{
    size_t classes[10] = {7000, 7000, 7000, 7000, 7000, 7000, 7000, 7000, 7000, 7000};
    size_t n = fill_mixed(classes);
    struct fl_partition_conf conf = conf_for(20, 1);
    struct fl_partition part;
    size_t last;

    conf.variant = FL_PARTITION_FMNIST;
    part = make("pairs", &conf, n, 10);
    classes[5] = 0;
    for (size_t i = 0; i < part.start[20]; i++) {
        classes[5] += labels[part.items[i]] == 5;
    }
    last = 0; /* The last slot of label 5 is the first of client 15. */
    for (size_t i = part.start[15]; i < part.start[16]; i++) {
        last += labels[part.items[i]] == 5;
    }
    fl_partition_done(&part);
    ck_assert_uint_gt(last, 0);
    n = fill_mixed(classes);
    part = make("pairs", &conf, n, 10);
    ck_assert_uint_eq(part.start[20], 14000 - last);
    fl_partition_done(&part);
}

TEST(cifar_as_released_leaves_five_clients_with_one_label)
{
    static const size_t classes[10] = {6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000};
    size_t n = fill_mixed(classes);
    struct fl_partition_conf conf = conf_for(20, 1);
    struct fl_partition part;

    conf.variant = FL_PARTITION_CIFAR;
    part = make("pairs", &conf, n, 10);
    (void)expect_disjoint(&part, n);
    expect_neighbours(&part);
    expect_totals(&part, 53248, 1094, 5252, 5);
    fl_partition_done(&part);
}

TEST_EACH(any_number_of_clients_and_labels_gets_pairs_in_turn, 5)
{
    static const size_t counts[][2] = {{1, 10}, {3, 4}, {7, 3}, {5, 2}, {12, 10}};
    size_t n_clients = counts[_i][0];
    size_t classes = counts[_i][1];
    size_t n = make_labels(5000, classes);
    struct fl_partition_conf conf = conf_for(n_clients, 1);
    struct fl_partition part = make("pairs", &conf, n, classes);
    size_t k;
    size_t i;

    (void)expect_disjoint(&part, n);
    for (k = 0; k < n_clients; k++) {
        for (i = part.start[k]; i < part.start[k + 1]; i++) {
            size_t label = (size_t)labels[part.items[i]];

            ck_assert(label == 2 * k % classes || label == (2 * k + 1) % classes);
        }
    }
    /* Every sample of every label that a client has is dealt. */
    ck_assert_uint_eq(part.start[n_clients] == n, 2 * n_clients >= classes);
    fl_partition_done(&part);
}

TEST(the_size_seed_decides_the_sizes)
{
    size_t n = make_labels(5000, 10);
    struct fl_partition_conf conf = conf_for(20, 1);
    struct fl_partition a = make("pairs", &conf, n, 10);
    struct fl_partition b;
    struct fl_partition c;

    ck_assert_uint_eq(conf.size_seed, 1);
    conf.seed = 2;
    b = make("pairs", &conf, n, 10);
    conf.size_seed = 2;
    c = make("pairs", &conf, n, 10);
    ck_assert_mem_eq(a.start, b.start, 21 * sizeof(*a.start));
    ck_assert_mem_ne(a.start, c.start, 21 * sizeof(*a.start));
    fl_partition_done(&a);
    fl_partition_done(&b);
    fl_partition_done(&c);
}

TEST(what_cannot_be_paired_is_refused_with_the_reason)
{
    size_t n = make_labels(100, 10);
    struct fl_partition_conf conf = conf_for(20, 1);
    struct fl_partition part;
    struct fl_err err = {0};

    (void)memset(labels, 0, sizeof(labels[0]) * 3);
    ck_assert_int_eq(
        fl_partition_make(fl_partition_find("pairs"), &conf, labels, 100, 1, &part, &err),
        FL_ERANGE);
    ck_assert_str_eq(err.msg, "clients with two labels need data with two labels, found 1");
    n = fill_mixed((const size_t[]){30, 30, 1, 30, 30, 30, 30, 30, 30, 30});
    expect_refused("pairs", &conf, n, "label 2 has 1 samples, too few to be cut for 4 clients");
    conf.n_clients = 1;
    n = fill_mixed((const size_t[]){0, 0, 9, 0, 0, 0, 0, 0, 0, 0});
    expect_refused("pairs", &conf, n, "client 0 would get no samples: the classes are too small");
    n = make_labels(100, 10);
    conf.n_clients = 19;
    conf.variant = FL_PARTITION_CIFAR;
    expect_refused("pairs", &conf, n,
                   "as released there are 20 clients and 10 labels, found 19 and 10");
}

/* As many bits of the next word as n - 1 has, until the number is below n. */
TEST(bounded_draws_are_those_of_numpy)
{
    struct fl_numpy_rng rng;

    /* The words of RandomState(1) are 1791095845, 4282876139, 3093770124, 4005303368. */
    fl_numpy_rng_seed(&rng, 1);
    ck_assert_uint_eq(fl_numpy_rng_below(&rng, 1), 0); /* without a draw */
    ck_assert_uint_eq(fl_numpy_rng_below(&rng, 1u << 31), 1791095845u);
    /* 4282876139 mod 4 is 3, too large, and is thrown away. */
    ck_assert_uint_eq(fl_numpy_rng_below(&rng, 3), 3093770124u % 4);
    ck_assert_uint_eq(fl_numpy_rng_below(&rng, 1000001), 4005303368u % (1u << 20));
}
