/* Reads data that fl-data partitioned into folders, into one set in memory. Called while the data
   is opened, under the lock of the cache (sim_data.c). */
#include <stdlib.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "libfl/json/json.h"
#include "tools/fl_sim/data/data_impl.h"

/* An entry of the manifest. */
struct entry {
    const char *name; /* name of its folder; borrowed from the manifest */
    uint64_t train, test;
};

struct folder {
    const char *path;
    json_t *manifest;
    struct entry *entries; /* sorted by name */
    size_t n;
};

static int folder_bad_manifest(const struct folder *f, struct fl_err *err, const char *what)
{
    return fl_err_set(err, FL_EFORMAT,
                      "'%s/" FL_SPLIT_MANIFEST "': %s; make the folder with fl-data", f->path,
                      what);
}

static int folder_by_name(const void *a, const void *b)
{
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static int folder_load_manifest(struct folder *f, struct fl_err *err)
{
    const json_t *clients;
    char path[FL__DATA_PATH];
    json_error_t why;
    size_t i;

    if (fl_fs_join(path, sizeof(path), f->path, FL_SPLIT_MANIFEST) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%.200s…' is too long", f->path);
    }
    f->manifest = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    if (f->manifest == NULL) {
        return fl_err_set(err, FL_EFORMAT, "'%s', line %d: %s", path, why.line, why.text);
    }
    clients = json_object_get(f->manifest, "clients");
    f->n = json_array_size(clients);
    if (f->n == 0 || f->n > FL_PARTITION_MAX_CLIENTS) {
        return folder_bad_manifest(f, err, "expected a list of clients");
    }
    f->entries = calloc(f->n, sizeof(*f->entries));
    if (f->entries == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for %zu clients", f->n);
    }
    for (i = 0; i < f->n; i++) {
        const json_t *client = json_array_get(clients, i);
        const char *name = json_string_value(json_object_get(client, "folder"));
        json_int_t train = json_integer_value(json_object_get(client, "train"));
        json_int_t test = json_integer_value(json_object_get(client, "test"));

        if (name == NULL || !fl_name_valid(name) || train < 1 || test < 0 ||
            (uint64_t)train > FL_DATA_MAX_SAMPLES || (uint64_t)test > FL_DATA_MAX_SAMPLES)
        {
            return folder_bad_manifest(
                f, err, "a client without a folder, or with invalid numbers of samples");
        }
        f->entries[i] =
            (struct entry){.name = name, .train = (uint64_t)train, .test = (uint64_t)test};
    }
    qsort(f->entries, f->n, sizeof(*f->entries), folder_by_name);
    for (i = 1; i < f->n; i++) {
        if (folder_by_name(&f->entries[i - 1], &f->entries[i]) == 0) {
            return folder_bad_manifest(f, err, "a client is listed twice");
        }
    }
    return FL_OK;
}

static bool folder_same_norm(const struct fl_dataset *a, const struct fl_dataset *b)
{
    return a->n_norm == b->n_norm &&
           (a->n_norm == 0 || (memcmp(a->mean, b->mean, a->n_norm * sizeof(*a->mean)) == 0 &&
                               memcmp(a->std, b->std, a->n_norm * sizeof(*a->std)) == 0));
}

/* Allocates the set for the samples of all clients, with the shape of the first part. */
static int folder_make_set(const struct folder *f, const struct fl_dataset *like,
                           struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_dataset *all = NULL;
    uint64_t total = 0;
    size_t k;
    int rv;

    for (k = 0; k < f->n; k++) {
        total += f->entries[k].train + f->entries[k].test;
    }
    if (total > FL_DATA_MAX_SAMPLES) {
        return fl_err_set(err, FL_ELIMIT, "'%s' has more samples than can be addressed", f->path);
    }
    rv = fl_dataset_create(like->type, (size_t)total, like->dims, like->n_dims, &all, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_dataset_copy_norm(all, like, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (like->n_targets > 0) {
        rv = fl_dataset_add_targets(all, like->n_targets, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    all->scale = like->scale;
    all->format = like->format;
    all->source = fl_str_dup(f->path); /* Only for messages: on an error the name stays unknown. */
    *ret = all;
    return FL_OK;
fail:
    fl_dataset_free(all);
    return rv;
}

/* Copies the part of a client behind the first `at` samples. */
static int folder_copy_part(const struct folder *f, size_t k, const char *part, uint64_t expected,
                            size_t at, struct fl_dataset **all, struct fl_err *err)
{
    char path[FL__DATA_PATH];
    struct fl_dataset *ds = NULL;
    size_t bytes;
    int rv = FL_OK;

    if (fl_fs_join(path, sizeof(path), f->path, f->entries[k].name) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%.200s…' is too long", f->path);
    }
    rv = fl_dataset_open(path, part, &ds, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (ds->n != expected) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "'%s': expected %llu samples as " FL_SPLIT_MANIFEST " says, found %zu",
                        ds->source, (unsigned long long)expected, ds->n);
    } else if (*all == NULL) {
        rv = folder_make_set(f, ds, all, err);
    } else if (!fl_dataset_alike(ds, *all) || !folder_same_norm(ds, *all)) {
        rv = fl_err_set(err, FL_ESHAPE,
                        "'%s': type, shape or standardisation are not those of client '%s'",
                        ds->source, f->entries[0].name);
    }
    if (rv != FL_OK) {
        goto done;
    }
    bytes = ds->dim * fl_dataset_value_size(ds);
    (void)memcpy((char *)(*all)->x + at * bytes, ds->x, ds->n * bytes);
    (void)memcpy((*all)->y + at, ds->y, ds->n * sizeof(*ds->y));
    if (ds->n_targets > 0) {
        (void)memcpy((*all)->target + at * ds->n_targets, ds->target,
                     ds->n * ds->n_targets * sizeof(*ds->target));
    }
    (*all)->classes = ds->classes > (*all)->classes ? ds->classes : (*all)->classes;
done:
    fl_dataset_free(ds);
    return rv;
}

static int folder_copy_clients(const struct folder *f, struct fl_sim_data *data, struct fl_err *err)
{
    struct fl_dataset **all = &data->samples->set.train;
    size_t used = 0;
    size_t k;
    int rv = fl__data_take_clients(data, f->n, FL_NAME_MAX, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (k = 0; k < f->n; k++) {
        const struct entry *e = &f->entries[k];

        FL_REQUIRE(fl_str_copy(data->names + k * data->name_size, data->name_size, e->name) ==
                   FL_OK);
        data->part.start[k] = used;
        data->n_test[k] = (uint32_t)e->test;
        rv = folder_copy_part(f, k, "train", e->train, used, all, err);
        if (rv != FL_OK) {
            return rv;
        }
        used += (size_t)e->train;
        if (e->test > 0) {
            rv = folder_copy_part(f, k, "test", e->test, used, all, err);
            if (rv != FL_OK) {
                return rv;
            }
            used += (size_t)e->test;
        }
    }
    data->part.start[f->n] = used;
    data->part.items = malloc((used + 1) * sizeof(*data->part.items));
    if (data->part.items == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory for %zu samples", used);
    }
    for (k = 0; k < used; k++) {
        data->part.items[k] = (uint32_t)k;
    }
    return FL_OK;
}

/* The folder of the server, which is optional. */
static int folder_copy_server(const struct folder *f, struct fl_sim_data *data, struct fl_err *err)
{
    struct fl_split_set *set = &data->samples->set;
    char path[FL__DATA_PATH];
    int rv = fl_fs_join(path, sizeof(path), f->path, FL_SPLIT_SERVER);

    if (rv != FL_OK || !fl_dataset_has(path, "test")) {
        return FL_OK;
    }
    rv = fl_dataset_open(path, "test", &set->test, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (!fl_dataset_alike(set->test, set->train)) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': type or shape are not those of the clients' samples",
                          set->test->source);
    }
    data->server = set->test;
    return FL_OK;
}

int fl__data_open_folder(const char *path, struct fl_sim_data *data, struct fl_err *err)
{
    struct folder f = {.path = path};
    int rv = folder_load_manifest(&f, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = folder_copy_clients(&f, data, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = folder_copy_server(&f, data, err);
done:
    free(f.entries);
    json_decref(f.manifest);
    return rv;
}
