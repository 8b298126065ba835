/*
 * Writes the parts of a client as NPY files: features, labels and the standardisation. One thread
 * per part.
 */
#include <stdlib.h>

#include "libfl/base/fs.h"
#include "libfl/data/npy.h"
#include "tools/fl_data/fl_data.h"

struct part {
    struct fl_npy_writer *x;
    struct fl_npy_writer *y;
};

const char *norm_name(const struct fl_dataset *ds)
{
    return ds->n_norm == 0         ? "none"
           : ds->n_norm == ds->dim ? "value"
           : ds->n_norm == 1       ? "all"
                                   : "channel";
}

json_t *shape_json(const struct fl_dataset *ds)
{
    json_t *shape = json_array();
    size_t i;

    for (i = 0; i < ds->n_dims; i++) {
        (void)json_array_append_new(shape, json_integer((json_int_t)ds->dims[i]));
    }
    return shape;
}

/* The file of the labels, or that of the features. */
static int part_open_file(const char *folder, const char *name, const struct fl_dataset *like,
                          size_t n, bool labels, struct fl_npy_writer **ret, struct fl_err *err)
{
    const uint64_t shape[4] = {n, like->dims[0], like->dims[1], like->dims[2]};
    char path[PATH_SIZE];
    int len = snprintf(path, sizeof(path), "%s/%s-%s.npy", folder, name, labels ? "y" : "x");

    if (len < 0 || (size_t)len >= sizeof(path)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", folder);
    }
    return labels ? fl_npy_create(path, FL_NPY_I32, shape, 1, ret, err)
                  : fl_npy_create(path, like->type == FL_DATA_U8 ? FL_NPY_U8 : FL_NPY_F32, shape,
                                  1 + like->n_dims, ret, err);
}

int part_open(const char *folder, const char *name, const struct fl_dataset *like, size_t n,
              struct part **ret, struct fl_err *err)
{
    struct part *part = calloc(1, sizeof(*part));
    int rv;

    if (part == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory writing into '%s'", folder);
    }
    rv = part_open_file(folder, name, like, n, /* labels= */ false, &part->x, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = part_open_file(folder, name, like, n, /* labels= */ true, &part->y, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = part;
    return FL_OK;
fail:
    part_abort(part);
    return rv;
}

int part_add(struct part *part, const struct fl_dataset *ds, size_t i, struct fl_err *err)
{
    int32_t label = fl_dataset_label(ds, i);
    int rv = fl_npy_add(part->x, fl_dataset_row(ds, i), ds->dim, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_npy_add(part->y, &label, 1, err);
}

int part_close(struct part *part, struct fl_err *err)
{
    int rv = fl_npy_finish(part->x, err);

    part->x = NULL;
    if (rv != FL_OK) {
        part_abort(part);
        return rv;
    }
    rv = fl_npy_finish(part->y, err);
    free(part);
    return rv;
}

void part_abort(struct part *part)
{
    if (part == NULL) {
        return;
    }
    fl_npy_abort(part->x);
    fl_npy_abort(part->y);
    free(part);
}

int write_norm(const char *folder, const struct fl_dataset *ds, struct fl_err *err)
{
    const uint64_t shape[2] = {2, ds->n_norm};
    char path[PATH_SIZE];
    struct fl_npy_writer *w = NULL;
    int rv;

    if (ds->n_norm == 0) {
        return FL_OK;
    }
    rv = fl_fs_join(path, sizeof(path), folder, "norm.npy");
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "path '%s' is too long", folder);
    }
    rv = fl_npy_create(path, FL_NPY_F32, shape, 2, &w, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_npy_add(w, ds->mean, ds->n_norm, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_npy_add(w, ds->std, ds->n_norm, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return fl_npy_finish(w, err);
fail:
    fl_npy_abort(w);
    return rv;
}

/* Writes `n` of the client's samples as the part `name`; into `pool` too, unless it is NULL. */
static int part_write(const struct client_job *job, const char *folder, const char *name,
                      const uint32_t *items, size_t n, struct part *pool, struct fl_err *err)
{
    struct part *part = NULL;
    size_t i;
    int rv = part_open(folder, name, job->ds, n, &part, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        rv = part_add(part, job->ds, items[i], err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = pool != NULL ? part_add(pool, job->ds, items[i], err) : FL_OK;
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return part_close(part, err);
fail:
    part_abort(part);
    return rv;
}

static int part_describe(const struct client_job *job, json_t *manifest)
{
    size_t *counts = calloc(job->ds->classes + 1, sizeof(*counts));
    json_t *labels = json_object();
    char name[32];
    size_t i;

    if (counts == NULL || labels == NULL) {
        free(counts);
        json_decref(labels);
        return FL_ENOMEM;
    }
    for (i = 0; i < job->n; i++) {
        counts[fl_dataset_label(job->ds, job->items[i])]++;
    }
    for (i = 0; i < job->ds->classes; i++) {
        if (counts[i] > 0) {
            (void)snprintf(name, sizeof(name), "%zu", i);
            (void)json_object_set_new(labels, name, json_integer((json_int_t)counts[i]));
        }
    }
    free(counts);
    return json_array_append_new(manifest,
                                 json_pack("{s:s, s:I, s:I, s:o}", "folder", job->name, "train",
                                           (json_int_t)(job->n - job->n_test), "test",
                                           (json_int_t)job->n_test, "labels", labels)) == 0
               ? FL_OK
               : FL_ENOMEM;
}

int write_client(const struct client_job *job, json_t *manifest, struct fl_err *err)
{
    size_t n_train = job->n - job->n_test;
    char folder[PATH_SIZE];
    int rv = output_folder(job->out, job->name, folder, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = write_norm(folder, job->ds, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = part_write(job, folder, "train", job->items, n_train, NULL, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (job->n_test > 0) {
        rv = part_write(job, folder, "test", job->items + n_train, job->n_test, job->pool, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return part_describe(job, manifest) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ENOMEM, "out of memory for the manifest");
}
