#ifndef FL_UNIT_PARTITION_FIXTURE_H
#define FL_UNIT_PARTITION_FIXTURE_H

/* What the tests of partitions share: labels to split, and the rules that every split keeps. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/partition.h"

#define N_MAX 70000

static int32_t labels[N_MAX];

/* Class sizes that no shard size divides, as in real sets, in a shuffled order. */
static inline size_t make_labels(size_t n, size_t classes)
{
    size_t i;

    ck_assert_uint_le(n, N_MAX);
    for (i = 0; i < n; i++) {
        labels[i] = (int32_t)((i * 7919 + i * i % 31) % classes);
    }
    return n;
}

static inline struct fl_partition make(const char *method, const struct fl_partition_conf *conf,
                                       size_t n, size_t classes)
{
    struct fl_partition part = {.n_clients = 0};
    struct fl_err err = {0};
    int rv = fl_partition_make(fl_partition_find(method), conf, labels, n, classes, &part, &err);

    ck_assert_msg(rv == FL_OK, "%s: %s", method, err.msg);
    return part;
}

static inline struct fl_partition_conf conf_for(size_t n_clients, uint64_t seed)
{
    struct fl_partition_conf conf;

    fl_partition_conf_init(&conf);
    conf.n_clients = n_clients;
    conf.seed = seed;
    return conf;
}

/* Lists rise, no sample is in two of them; returns how many samples are dealt. */
static inline size_t expect_disjoint(const struct fl_partition *part, size_t n)
{
    uint8_t *seen = calloc(n, 1);
    size_t k;
    size_t i;

    ck_assert_ptr_nonnull(seen);
    ck_assert_uint_eq(part->start[0], 0);
    for (k = 0; k < part->n_clients; k++) {
        ck_assert_uint_lt(part->start[k], part->start[k + 1]);
        for (i = part->start[k]; i < part->start[k + 1]; i++) {
            ck_assert_uint_lt(part->items[i], n);
            ck_assert_uint_eq(seen[part->items[i]], 0);
            seen[part->items[i]] = 1;
            ck_assert(i == part->start[k] || part->items[i] > part->items[i - 1]);
        }
    }
    free(seen);
    return part->start[part->n_clients];
}

static inline size_t count_classes(const struct fl_partition *part, size_t k, size_t classes)
{
    uint8_t *seen = calloc(classes, 1);
    size_t n = 0;
    size_t i;

    ck_assert_ptr_nonnull(seen);
    for (i = part->start[k]; i < part->start[k + 1]; i++) {
        n += seen[labels[part->items[i]]] == 0;
        seen[labels[part->items[i]]] = 1;
    }
    free(seen);
    return n;
}

static inline void expect_refused(const char *method, const struct fl_partition_conf *conf,
                                  size_t n, const char *message)
{
    struct fl_partition part = {.n_clients = 7};
    struct fl_err err = {0};

    ck_assert_int_eq(fl_partition_make(fl_partition_find(method), conf, labels, n, 10, &part, &err),
                     FL_ERANGE);
    ck_assert_msg(strstr(err.msg, message) != NULL, "message \"%s\" lacks \"%s\"", err.msg,
                  message);
    ck_assert_uint_eq(part.n_clients, 7);
}

#endif
