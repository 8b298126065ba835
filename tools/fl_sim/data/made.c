/*
 * Makes data in memory: a partition of a loaded data set, or a generated federation. Called while
 * the data is opened, under the lock of the cache (sim_data.c). Partitions are read from their file
 * when they were made before.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/fl_sim/data/data_impl.h"

int fl__data_take_clients(struct fl_sim_data *data, size_t n, size_t name_size, struct fl_err *err)
{
    data->part.n_clients = n;
    data->name_size = name_size;
    data->names = calloc(n, name_size);
    data->n_test = calloc(n, sizeof(*data->n_test));
    if (data->part.start == NULL) {
        data->part.start = calloc(n + 1, sizeof(*data->part.start));
    }
    return data->names != NULL && data->n_test != NULL && data->part.start != NULL
               ? FL_OK
               : fl_err_set(err, FL_ENOMEM, "out of memory for %zu clients", n);
}

/* Names and test counts by the rules of fl-data. */
static int made_describe(struct fl_sim_data *data, double test_share, struct fl_err *err)
{
    size_t n = data->part.n_clients;
    char name[FL_SPLIT_NAME];
    size_t size = strlen(fl_split_name(name, 0, n)) + 1;
    size_t k;
    int rv = fl__data_take_clients(data, n, size, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (k = 0; k < n; k++) {
        (void)memcpy(data->names + k * size, fl_split_name(name, k, n), size);
        data->n_test[k] =
            (uint32_t)fl_dataset_split_count(fl_partition_count(&data->part, k), test_share);
    }
    return FL_OK;
}

/* The server's test set is the test samples of all clients, if there are any. */
static int made_pool_tests(struct fl_sim_data *data, struct fl_err *err)
{
    size_t total = 0;
    size_t used = 0;
    size_t k;
    int rv;

    for (k = 0; k < data->part.n_clients; k++) {
        total += data->n_test[k];
    }
    if (total == 0) {
        return FL_OK;
    }
    data->server_items = malloc(total * sizeof(*data->server_items));
    if (data->server_items == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for %zu test samples", total);
    }
    for (k = 0; k < data->part.n_clients; k++) {
        (void)memcpy(data->server_items + used,
                     data->part.items + data->part.start[k + 1] - data->n_test[k],
                     data->n_test[k] * sizeof(*data->server_items));
        used += data->n_test[k];
    }
    rv = fl_dataset_view(data->samples->set.train, data->server_items, total, &data->server_view,
                         err);
    if (rv != FL_OK) {
        return rv;
    }
    data->server = data->server_view;
    return FL_OK;
}

/* --- a data set --- */

int fl__data_open_set(const struct fl_sim_data_conf *conf, struct fl__samples *ret,
                      struct fl_err *err)
{
    struct fl_import import = {.train = NULL};
    int rv = fl_import_any(conf->path, &conf->import, &import, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (import.train == NULL) {
        fl_import_done(&import);
        return fl_err_set(err, FL_ENOENT, "folder '%s' contains no train part", conf->path);
    }
    ret->skipped = import.skipped;
    rv = fl_split_prepare(conf->path, &conf->split, import.train, import.test, &ret->set, err);
    import.train = import.test = NULL; /* taken */
    fl_import_done(&import);
    return rv;
}

/* --- partition --- */

/* Reads the partition from its file, or makes and stores it. */
static int made_partition(const struct fl_split_conf *conf, const char *keep,
                          struct fl_sim_data *data, struct fl_err *err)
{
    const struct fl_dataset *train = data->samples->set.train;
    struct fl__data_key key;
    int rv;

    if (keep == NULL) {
        return fl_split_share(train, conf, &data->part, err);
    }
    rv = fl__data_partition_key(train, conf, &key, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__data_read_partition(keep, &key, conf->partition.n_clients, train->n, &data->part, err);
    if (rv != FL_ENOENT) {
        return rv;
    }
    rv = fl_split_share(train, conf, &data->part, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl__data_write_partition(keep, &key, &data->part, err);
}

int fl__data_share(const struct fl_split_conf *conf, const char *keep, struct fl_sim_data *data,
                   struct fl_err *err)
{
    struct fl_split_noise noise;
    int rv = made_partition(conf, keep, data, err);

    if (rv != FL_OK) {
        return rv;
    }
    /* Not in the file of the partition: it follows from that and the seed. */
    rv = fl_split_noise(data->samples->set.train, conf, &data->part, &noise, err);
    if (rv != FL_OK) {
        return rv;
    }
    data->labels = noise.labels;
    noise.labels = NULL;
    fl_split_noise_done(&noise);
    rv = made_describe(data, conf->test_share, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (data->samples->set.pooled) {
        return made_pool_tests(data, err);
    }
    data->server = data->samples->set.test;
    return FL_OK;
}

/* --- data of a program --- */

/* `n` samples that only count: one value of 0 each. */
static int made_blank(size_t n, struct fl_dataset **ret, struct fl_err *err)
{
    const size_t dim = 1;
    int rv = fl_dataset_create(FL_DATA_U8, n, &dim, 1, ret, err);

    if (rv != FL_OK) {
        return rv;
    }
    (*ret)->classes = 1;
    return FL_OK;
}

/* Asks for the counts of all clients; `part->items` are not yet set. */
static int made_count(const struct fl_sim_data_conf *conf, struct fl_sim_data *data,
                      uint64_t *ret_server, struct fl_err *err)
{
    struct fl_partition *part = &data->part;
    char name[FL_SPLIT_NAME];
    uint64_t train = 0;
    uint64_t test = 0;
    size_t k;
    int rv;

    for (k = 0; k < conf->n_clients; k++) {
        rv = conf->count(conf->ctx, k, fl_split_name(name, k, conf->n_clients), conf->n_clients,
                         &train, &test, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (train == 0 || train > UINT32_MAX || test > UINT32_MAX ||
            part->start[k] + train + test > UINT32_MAX)
        {
            return fl_err_set(err, FL_ERANGE,
                              "the program counts %llu training and %llu test samples of '%s': "
                              "expected at least 1 to train on, and below 2^32 of all clients",
                              (unsigned long long)train, (unsigned long long)test, name);
        }
        part->start[k + 1] = part->start[k] + (size_t)(train + test);
        data->n_test[k] = (uint32_t)test;
        (void)memcpy(data->names + k * data->name_size, name, data->name_size);
    }
    return conf->count(conf->ctx, k, NULL, conf->n_clients, &train, ret_server, err);
}

int fl__data_open_program(const struct fl_sim_data_conf *conf, struct fl_sim_data *data,
                          struct fl_err *err)
{
    char name[FL_SPLIT_NAME];
    size_t size = strlen(fl_split_name(name, 0, conf->n_clients)) + 1;
    struct fl_partition *part = &data->part;
    uint64_t n_server = 0;
    size_t total;
    size_t i;
    int rv;

    FL_REQUIRE(conf->count != NULL);
    rv = fl__data_take_clients(data, conf->n_clients, size, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = made_count(conf, data, &n_server, err);
    if (rv != FL_OK) {
        return rv;
    }
    total = part->start[conf->n_clients];
    part->items = malloc(total * sizeof(*part->items));
    if (part->items == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for %zu samples", total);
    }
    for (i = 0; i < total; i++) {
        part->items[i] = (uint32_t)i;
    }
    rv = made_blank(total, &data->samples->set.train, err);
    if (rv != FL_OK || n_server == 0) {
        return rv;
    }
    rv = made_blank((size_t)n_server, &data->samples->set.test, err);
    if (rv != FL_OK) {
        return rv;
    }
    data->server = data->samples->set.test;
    return FL_OK;
}

/* --- Synthetic(alpha, beta) --- */

/* One set with the samples of all clients, one after the other. */
static int made_generate(const struct fl_synthetic *gen, struct fl_sim_data *data,
                         struct fl_err *err)
{
    const size_t dim = FL_SYNTHETIC_FEATURES;
    struct fl_partition *part = &data->part;
    size_t total = 0;
    size_t i;
    int rv;

    for (i = 0; i < part->n_clients; i++) {
        part->start[i] = total;
        total += fl_synthetic_size(gen, i);
    }
    part->start[part->n_clients] = total;
    part->items = malloc((total + 1) * sizeof(*part->items));
    if (part->items == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for %zu samples", total);
    }
    for (i = 0; i < total; i++) {
        part->items[i] = (uint32_t)i;
    }
    rv = fl_dataset_create(FL_DATA_F32, total, &dim, 1, &data->samples->set.train, err);
    if (rv != FL_OK) {
        return rv;
    }
    data->samples->set.train->classes = FL_SYNTHETIC_CLASSES;
    return FL_OK;
}

int fl__data_open_synthetic(const struct fl_synthetic_conf *conf, double test_share,
                            struct fl_sim_data *data, struct fl_err *err)
{
    const struct fl_dataset *all;
    struct fl_partition *part = &data->part;
    struct fl_synthetic *gen = NULL;
    size_t k;
    int rv = fl_synthetic_create(conf, &gen, err);

    if (rv != FL_OK) {
        return rv;
    }
    part->n_clients = conf->n_clients;
    part->start = calloc(conf->n_clients + 1, sizeof(*part->start));
    rv = part->start != NULL
             ? made_generate(gen, data, err)
             : fl_err_set(err, FL_ENOMEM, "out of memory for %zu clients", conf->n_clients);
    if (rv != FL_OK) {
        goto done;
    }
    all = data->samples->set.train;
    for (k = 0; k < data->part.n_clients; k++) {
        struct fl_dataset *ds = NULL;
        size_t at = data->part.start[k];

        rv = fl_synthetic_next(gen, &ds, err);
        if (rv != FL_OK) {
            goto done;
        }
        (void)memcpy((float *)all->x + at * all->dim, ds->x, ds->n * ds->dim * sizeof(float));
        (void)memcpy(all->y + at, ds->y, ds->n * sizeof(*ds->y));
        fl_dataset_free(ds);
    }
    for (k = 0; k < conf->n_clients; k++) {
        rv = fl_split_own_test(conf->seed, k, test_share, part->items + part->start[k],
                               fl_partition_count(part, k), err);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = made_describe(data, test_share, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = made_pool_tests(data, err);
done:
    fl_synthetic_free(gen);
    return rv;
}
