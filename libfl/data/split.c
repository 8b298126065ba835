/*
 * Splits a data set into a federation (split.h): opens and transforms the input, partitions its
 * samples, and selects each client's test samples. Runs on the caller's thread; writing folders
 * is done by fl-data.
 */
#include "libfl/data/split.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/pick.h"

const char *const fl_split_standards[] = {[FL_STANDARDISE_AS_INPUT] = "as-input",
                                          [FL_STANDARDISE_NONE] = "none",
                                          [FL_STANDARDISE_PIXEL] = "pixel",
                                          [FL_STANDARDISE_CIFAR] = "cifar",
                                          NULL};
const char *const fl_split_pools[] = {
    [FL_POOL_AS_METHOD] = "as-method", [FL_POOL_NO] = "no", [FL_POOL_YES] = "yes", NULL};

const char *fl_dataset_type_name(const struct fl_dataset *ds)
{
    return ds->type == FL_DATA_U8 ? "uint8" : "float32";
}

const char *fl_split_name(char out[FL_SPLIT_NAME], size_t k, size_t n)
{
    size_t top;
    int digits = 3;

    for (top = 1000; n > top; top *= 10) {
        digits++;
    }
    (void)snprintf(out, FL_SPLIT_NAME, "client-%0*zu", digits, k);
    return out;
}

void fl_split_conf_method(struct fl_split_conf *conf, const struct fl_partition_ops *method)
{
    conf->method = method;
    conf->test_share = method->test_share;
}

void fl_split_conf_init(struct fl_split_conf *conf)
{
    *conf = (struct fl_split_conf){.method = NULL, .noise_clients = 1.0};
    fl_partition_conf_init(&conf->partition);
    fl_split_conf_method(conf, fl_partition_find("iid"));
}

/* --- the data to partition --- */

bool fl_split_pools_test(const struct fl_split_conf *conf)
{
    return conf->pool == FL_POOL_YES || (conf->pool == FL_POOL_AS_METHOD && conf->method->pools);
}

/* Both parts must have samples of one kind, and get the number of classes of both. */
static int split_check(const char *input, const struct fl_split_conf *conf,
                       const struct fl_split_set *set, struct fl_err *err)
{
    const struct fl_dataset *train = set->train;
    const struct fl_dataset *test = set->test;
    size_t classes;

    if (test == NULL) {
        return conf->pool == FL_POOL_YES
                   ? fl_err_set(err, FL_ENOENT, "pool is yes, but '%s' holds no test part", input)
                   : FL_OK;
    }
    if (!fl_dataset_alike(test, train)) {
        return fl_err_set(
            err, FL_ESHAPE,
            "'%s': train samples are %s of %zu x %zu x %zu with %zu values to be predicted, test "
            "samples %s of %zu x %zu x %zu with %zu",
            input, fl_dataset_type_name(train), train->dims[0], train->dims[1], train->dims[2],
            train->n_targets, fl_dataset_type_name(test), test->dims[0], test->dims[1],
            test->dims[2], test->n_targets);
    }
    classes = test->classes > train->classes ? test->classes : train->classes;
    set->test->classes = classes;
    set->train->classes = classes;
    return FL_OK;
}

/* Apply a change to the train part and, if present, to the test part. */
static int split_change_both(const struct fl_split_set *set,
                             int (*change)(struct fl_dataset *, struct fl_err *),
                             struct fl_err *err)
{
    int rv = change(set->train, err);

    if (rv != FL_OK) {
        return rv;
    }
    return set->test != NULL ? change(set->test, err) : FL_OK;
}

static int drop_norm(struct fl_dataset *ds, struct fl_err *err)
{
    const struct fl_dataset plain = {.n_norm = 0};

    return fl_dataset_copy_norm(ds, &plain, err);
}

static int split_standardise(const struct fl_split_set *set, enum fl_split_standardise how,
                             struct fl_err *err)
{
    int rv;

    switch (how) {
    case FL_STANDARDISE_AS_INPUT:
        break;
    case FL_STANDARDISE_NONE:
        return split_change_both(set, drop_norm, err);
    case FL_STANDARDISE_CIFAR:
        return split_change_both(set, fl_dataset_norm_cifar, err);
    /* The test part is standardised with the values of the train part. */
    case FL_STANDARDISE_PIXEL:
        rv = fl_dataset_norm_pixels(set->train, err);
        if (rv != FL_OK) {
            return rv;
        }
        return set->test != NULL ? fl_dataset_copy_norm(set->test, set->train, err) : FL_OK;
    }
    return FL_OK;
}

static int split_transform(const struct fl_split_conf *conf, struct fl_split_set *set,
                           struct fl_err *err)
{
    int rv;

    if (conf->crop > 0) {
        rv = fl_dataset_crop(set->train, (size_t)conf->crop, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (conf->crop > 0 && set->test != NULL) {
        rv = fl_dataset_crop(set->test, (size_t)conf->crop, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (fl_split_pools_test(conf) && set->test != NULL) {
        rv = fl_dataset_append(set->train, set->test, err);
        if (rv != FL_OK) {
            return rv;
        }
        fl_dataset_free(set->test);
        set->test = NULL;
        set->pooled = true;
    }
    return split_standardise(set, conf->standardise, err);
}

int fl_split_prepare(const char *input, const struct fl_split_conf *conf, struct fl_dataset *train,
                     struct fl_dataset *test, struct fl_split_set *ret, struct fl_err *err)
{
    struct fl_split_set set = {.train = train, .test = test};
    int rv = split_check(input, conf, &set, err);

    if (rv != FL_OK) {
        goto fail;
    }
    rv = split_transform(conf, &set, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = set;
    return FL_OK;
fail:
    fl_split_set_done(&set);
    return rv;
}

void fl_split_set_done(struct fl_split_set *set)
{
    fl_dataset_free(set->train);
    fl_dataset_free(set->test);
    *set = (struct fl_split_set){.train = NULL};
}

/* --- assignment to clients --- */

int fl_split_own_test(uint64_t seed, size_t client, double share, uint32_t *items, size_t n,
                      struct fl_err *err)
{
    size_t n_test = fl_dataset_split_count(n, share);
    uint32_t *tests = NULL;
    uint8_t *marks = NULL;
    struct fl_rng rng;
    size_t kept = 0;
    size_t moved = 0;
    size_t i;
    int rv;

    if (n_test == 0) {
        return FL_OK;
    }
    fl_rng_key(&rng, seed, FL_RNG_PARTITION, FL_PICK_LOCAL_TEST, client);
    rv = fl_pick_marks(&rng, n, n_test, &marks, err);
    if (rv != FL_OK) {
        return rv;
    }
    tests = malloc(n_test * sizeof(*tests));
    if (tests == NULL) {
        free(marks);
        return fl_err_set(err, FL_ENOMEM, "choosing among %zu samples: out of memory", n);
    }
    for (i = 0; i < n; i++) {
        if (marks[i] != 0) {
            tests[moved++] = items[i];
        } else {
            items[kept++] = items[i];
        }
    }
    (void)memcpy(items + kept, tests, n_test * sizeof(*tests));
    free(tests);
    free(marks);
    return FL_OK;
}

int fl_split_share(const struct fl_dataset *train, const struct fl_split_conf *conf,
                   struct fl_partition *ret, struct fl_err *err)
{
    struct fl_partition part = {.n_clients = 0};
    size_t k;
    int rv = fl_partition_make(conf->method, &conf->partition, train->y, train->n, train->classes,
                               &part, err);

    if (rv != FL_OK) {
        goto fail;
    }
    for (k = 0; k < part.n_clients; k++) {
        rv = fl_split_own_test(conf->partition.seed, k, conf->test_share,
                               part.items + part.start[k], fl_partition_count(&part, k), err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = part;
    return FL_OK;
fail:
    fl_partition_done(&part);
    return rv;
}
