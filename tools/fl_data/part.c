/* Writes the folder of a client, and describes data in JSON. */
#include <stdlib.h>

#include "tools/fl_data/fl_data.h"

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

/* Writes `n` of the client's samples as the part `name`; into `pool` too, unless it is NULL. */
static int part_write(const struct client_job *job, const char *folder, const char *name,
                      const uint32_t *items, size_t n, struct fl_npy_part *pool, struct fl_err *err)
{
    struct fl_npy_part *part = NULL;
    size_t i;
    int rv = fl_npy_part_create(folder, name, job->ds, n, &part, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        rv = fl_npy_part_add(part, job->ds, items[i], err);
        if (rv != FL_OK) {
            goto fail;
        }
        rv = pool != NULL ? fl_npy_part_add(pool, job->ds, items[i], err) : FL_OK;
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return fl_npy_part_finish(part, err);
fail:
    fl_npy_part_abort(part);
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
                                 json_pack("{s:s, s:I, s:I, s:I, s:o}", "folder", job->name,
                                           "train", (json_int_t)(job->n - job->n_test), "test",
                                           (json_int_t)job->n_test, "noisy_labels",
                                           (json_int_t)job->n_noisy, "labels", labels)) == 0
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
    rv = fl_npy_part_norm(folder, job->ds, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (job->input != NULL) {
        rv = write_schema(folder, job->input, err);
        if (rv != FL_OK) {
            return rv;
        }
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
