/* Label noise of a partition: which labels are replaced, how many, and which data is refused. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/split.h"
#include "tests/lib/suites.h"

#define SAMPLES 1013

/* Sample i has the value i and the class i mod `classes`. */
static struct fl_dataset *numbered_set(size_t n, size_t classes)
{
    struct fl_dataset *ds = NULL;
    size_t i;

    ck_assert_int_eq(fl_dataset_create(FL_DATA_F32, n, (const size_t[]){1}, 1, &ds, NULL), FL_OK);
    for (i = 0; i < n; i++) {
        ((float *)ds->x)[i] = (float)i;
        ds->y[i] = (int32_t)(i % classes);
    }
    ds->classes = classes;
    return ds;
}

struct rig {
    struct fl_dataset *train;
    struct fl_split_conf conf;
    struct fl_partition part;
    struct fl_split_noise noise;
};

static void rig_init(struct rig *r, size_t n, size_t classes, size_t n_clients)
{
    *r = (struct rig){.train = numbered_set(n, classes)};
    fl_split_conf_init(&r->conf);
    r->conf.partition.n_clients = n_clients;
    r->conf.partition.seed = 5;
    r->conf.test_share = 0.2;
}

static void draw(struct rig *r)
{
    struct fl_err err = {0};

    fl_partition_done(&r->part);
    fl_split_noise_done(&r->noise);
    ck_assert_int_eq(fl_split_share(r->train, &r->conf, &r->part, NULL), FL_OK);
    ck_assert_msg(fl_split_noise(r->train, &r->conf, &r->part, &r->noise, &err) == FL_OK, "%s",
                  err.msg);
}

static void rig_done(struct rig *r)
{
    fl_split_noise_done(&r->noise);
    fl_partition_done(&r->part);
    fl_dataset_free(r->train);
}

/* Training samples of client `k`. */
static size_t training(const struct rig *r, size_t k)
{
    size_t n = fl_partition_count(&r->part, k);

    return n - fl_dataset_split_count(n, r->conf.test_share);
}

/* Labels of samples `from` … `to` - 1 of client `k` that differ from those of the set. */
static size_t replaced(const struct rig *r, size_t k, size_t from, size_t to)
{
    size_t n = 0;
    size_t i;

    for (i = from; i < to; i++) {
        uint32_t at = r->part.items[r->part.start[k] + i];

        ck_assert_int_ge(r->noise.labels[at], 0);
        ck_assert_int_lt(r->noise.labels[at], (int32_t)r->train->classes);
        n += r->noise.labels[at] != r->train->y[at];
    }
    return n;
}

TEST_EACH(the_numbers_of_noisy_clients_and_of_replaced_labels_are_exact, 5)
{
    static const struct {
        double clients, share;
        size_t n_clients; /* of 10 */
    } cases[] = {{0.3, 0.25, 3}, {1.0, 0.1, 10}, {0.25, 1.0, 3}, {0.04, 0.5, 0}, {0.5, 0.003, 5}};
    size_t noisy = 0;
    size_t labels = 0;
    size_t k;
    struct rig r;

    rig_init(&r, SAMPLES, 7, 10);
    r.conf.noise_clients = cases[_i].clients;
    r.conf.noise_share = cases[_i].share;
    draw(&r);
    ck_assert_uint_eq(r.noise.n_clients, cases[_i].n_clients);
    for (k = 0; k < 10; k++) {
        size_t n = training(&r, k);
        size_t expected = (size_t)floor(cases[_i].share * (double)n + 0.5);
        size_t found = replaced(&r, k, 0, n);

        ck_assert(found == expected || found == 0);
        ck_assert_uint_eq(fl_split_noise_count(&r.noise, k), found);
        ck_assert_uint_eq(replaced(&r, k, n, fl_partition_count(&r.part, k)), 0); /* tests */
        noisy += found > 0;
        labels += found;
    }
    ck_assert_uint_eq(noisy, cases[_i].share < 0.005 ? 0 : cases[_i].n_clients);
    ck_assert_uint_eq(r.noise.n_labels, labels);
    rig_done(&r);
}

TEST(samples_that_no_client_has_keep_their_labels)
{
    size_t changed = 0;
    size_t i;
    struct rig r;

    rig_init(&r, SAMPLES, 7, 10);
    r.conf.partition.samples = 50;
    r.conf.noise_share = 1.0;
    draw(&r);
    for (i = 0; i < SAMPLES; i++) {
        changed += r.noise.labels[i] != r.train->y[i];
        ck_assert_int_eq(r.train->y[i], (int32_t)(i % 7)); /* The set is not changed. */
    }
    ck_assert_uint_eq(changed, 10 * 40);
    rig_done(&r);
}

TEST(the_seed_of_the_partition_decides_the_noise)
{
    struct fl_split_noise first;
    size_t k;
    struct rig r;

    rig_init(&r, SAMPLES, 7, 10);
    r.conf.noise_clients = 0.5;
    r.conf.noise_share = 0.3;
    draw(&r);
    first = r.noise;
    r.noise = (struct fl_split_noise){.labels = NULL};
    draw(&r);
    ck_assert_mem_eq(first.labels, r.noise.labels, SAMPLES * sizeof(*first.labels));
    ck_assert_mem_eq(first.noisy, r.noise.noisy, 10 * sizeof(*first.noisy));
    /* Another share leaves the choice of the clients. */
    r.conf.noise_share = 0.6;
    draw(&r);
    for (k = 0; k < 10; k++) {
        ck_assert_int_eq(first.noisy[k] > 0, r.noise.noisy[k] > 0);
    }
    r.conf.noise_share = 0.3;
    r.conf.partition.seed++;
    draw(&r);
    ck_assert_mem_ne(first.labels, r.noise.labels, SAMPLES * sizeof(*first.labels));
    ck_assert_mem_ne(first.noisy, r.noise.noisy, 10 * sizeof(*first.noisy));
    fl_split_noise_done(&first);
    rig_done(&r);
}

/* 4000 labels of class 0, each other class with probability 1/4: 1000 with deviation 27.4. */
TEST(every_other_class_is_equally_likely)
{
    size_t counts[5] = {0};
    size_t c;
    size_t i;
    struct rig r;

    rig_init(&r, 20000, 5, 4);
    r.conf.test_share = 0.0;
    r.conf.noise_share = 1.0;
    draw(&r);
    for (i = 0; i < 20000; i += 5) {
        counts[r.noise.labels[i]]++;
    }
    ck_assert_uint_eq(counts[0], 0);
    for (c = 1; c < 5; c++) {
        ck_assert_double_eq_tol((double)counts[c], 1000.0, 5.0 * 27.4);
    }
    rig_done(&r);
}

TEST(without_a_share_labels_are_those_of_the_set)
{
    struct rig r;

    rig_init(&r, SAMPLES, 1, 10); /* One class is enough without noise. */
    draw(&r);
    ck_assert_ptr_null(r.noise.labels);
    ck_assert_uint_eq(r.noise.n_labels + r.noise.n_clients + fl_split_noise_count(&r.noise, 3), 0);
    rig_done(&r);
}

TEST_EACH(noise_needs_two_classes_and_no_values_to_be_predicted, 2)
{
    static const char *const says[] = {
        "'the data set': label noise replaces a label by another class: expected at least 2 "
        "classes, found 1",
        "'the data set': label noise replaces classes, and samples have 3 values to be predicted"};
    struct fl_err err = {0};
    struct rig r;

    rig_init(&r, SAMPLES, 1, 10);
    if (_i == 1) {
        ck_assert_int_eq(fl_dataset_add_targets(r.train, 3, NULL), FL_OK);
    }
    draw(&r);
    r.conf.noise_share = 0.1;
    ck_assert_int_eq(fl_split_noise(r.train, &r.conf, &r.part, &r.noise, &err), FL_ESHAPE);
    ck_assert_msg(strncmp(err.msg, says[_i], strlen(says[_i])) == 0, "%s", err.msg);
    rig_done(&r);
}

TEST(both_parts_of_a_view_that_is_split_have_its_labels)
{
    int32_t other[SAMPLES];
    uint32_t items[100];
    struct fl_dataset *ds = numbered_set(SAMPLES, 7);
    struct fl_dataset *parts[2] = {NULL, NULL};
    int32_t y;
    float x;
    uint32_t i;
    size_t p;

    for (i = 0; i < SAMPLES; i++) {
        other[i] = (int32_t)(i % 5);
    }
    for (i = 0; i < 100; i++) {
        items[i] = i * 3;
    }
    ck_assert_int_eq(fl_dataset_view(ds, items, 100, &parts[0], NULL), FL_OK);
    fl_dataset_relabel(parts[0], other);
    ck_assert_int_eq(fl_dataset_split(parts[0], 0.4, 1, &parts[1], NULL), FL_OK);
    for (p = 0; p < 2; p++) {
        ck_assert_uint_eq(parts[p]->n, p == 0 ? 60 : 40);
        for (i = 0; i < parts[p]->n; i++) {
            fl_dataset_gather(parts[p], &i, 1, &x, &y);
            ck_assert_int_eq(y, (int32_t)x % 5);
            ck_assert_int_eq(fl_dataset_label(parts[p], i), y);
        }
        fl_dataset_free(parts[p]);
    }
    fl_dataset_free(ds);
}
