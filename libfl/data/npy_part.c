#include "libfl/data/npy_part.h"

#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/fs.h"
#include "libfl/data/npy.h"

#define NPY_PART_PATH 4096

struct fl_npy_part {
    struct fl_npy_writer *x;
    struct fl_npy_writer *y;
};

/* The file of the labels, or that of the features. */
static int npy_part_open(const char *folder, const char *name, const struct fl_dataset *like,
                         size_t n, bool labels, struct fl_npy_writer **ret, struct fl_err *err)
{
    const uint64_t shape[4] = {n, like->dims[0], like->dims[1], like->dims[2]};
    const uint64_t targets[2] = {n, like->n_targets};
    char path[NPY_PART_PATH];
    int len = snprintf(path, sizeof(path), "%s/%s-%s.npy", folder, name, labels ? "y" : "x");

    if (len < 0 || (size_t)len >= sizeof(path)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", folder);
    }
    if (labels && like->n_targets > 0) {
        return fl_npy_create(path, FL_NPY_F32, targets, 2, ret, err);
    }
    return labels ? fl_npy_create(path, FL_NPY_I32, shape, 1, ret, err)
                  : fl_npy_create(path, like->type == FL_DATA_U8 ? FL_NPY_U8 : FL_NPY_F32, shape,
                                  1 + like->n_dims, ret, err);
}

int fl_npy_part_create(const char *folder, const char *name, const struct fl_dataset *like,
                       size_t n, struct fl_npy_part **ret, struct fl_err *err)
{
    struct fl_npy_part *part = calloc(1, sizeof(*part));
    int rv;

    if (part == NULL) {
        return fl_err_set(err, FL_ENOMEM, "out of memory writing into '%s'", folder);
    }
    rv = npy_part_open(folder, name, like, n, /* labels= */ false, &part->x, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = npy_part_open(folder, name, like, n, /* labels= */ true, &part->y, err);
    if (rv != FL_OK) {
        goto fail;
    }
    *ret = part;
    return FL_OK;
fail:
    fl_npy_part_abort(part);
    return rv;
}

int fl_npy_part_add(struct fl_npy_part *part, const struct fl_dataset *ds, size_t i,
                    struct fl_err *err)
{
    int32_t label = fl_dataset_label(ds, i);
    int rv = fl_npy_add(part->x, fl_dataset_row(ds, i), ds->dim, err);

    if (rv != FL_OK) {
        return rv;
    }
    return ds->n_targets > 0 ? fl_npy_add(part->y, fl_dataset_target(ds, i), ds->n_targets, err)
                             : fl_npy_add(part->y, &label, 1, err);
}

int fl_npy_part_finish(struct fl_npy_part *part, struct fl_err *err)
{
    int rv = fl_npy_finish(part->x, err);

    part->x = NULL;
    if (rv != FL_OK) {
        fl_npy_part_abort(part);
        return rv;
    }
    rv = fl_npy_finish(part->y, err);
    free(part);
    return rv;
}

void fl_npy_part_abort(struct fl_npy_part *part)
{
    if (part == NULL) {
        return;
    }
    fl_npy_abort(part->x);
    fl_npy_abort(part->y);
    free(part);
}

int fl_npy_part_write(const char *folder, const char *name, const struct fl_dataset *ds,
                      struct fl_err *err)
{
    struct fl_npy_part *part = NULL;
    size_t i;
    int rv = fl_npy_part_create(folder, name, ds, ds->n, &part, err);

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < ds->n; i++) {
        rv = fl_npy_part_add(part, ds, i, err);
        if (rv != FL_OK) {
            fl_npy_part_abort(part);
            return rv;
        }
    }
    return fl_npy_part_finish(part, err);
}

int fl_npy_part_norm(const char *folder, const struct fl_dataset *ds, struct fl_err *err)
{
    const uint64_t shape[2] = {2, ds->n_norm};
    char path[NPY_PART_PATH];
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
