/* Shared by all readers: limit checks before allocation, and a data set made of arrays. */
#include <inttypes.h>
#include <stdlib.h>

#include "libfl/data/format.h"

int fl__data_check_size(const char *name, uint64_t n, const uint64_t *dims, size_t n_dims,
                        size_t value_size, struct fl_err *err)
{
    uint64_t dim = 1;
    size_t i;

    if (n == 0) {
        return fl_err_set(err, FL_EFORMAT, "'%s': holds no sample", name);
    }
    if (n > FL_DATA_MAX_SAMPLES) {
        return fl_err_set(err, FL_ELIMIT,
                          "'%s': expected at most %" PRIu64 " samples, found %" PRIu64, name,
                          FL_DATA_MAX_SAMPLES, n);
    }
    for (i = 0; i < n_dims; i++) {
        if (dims[i] == 0) {
            return fl_err_set(err, FL_EFORMAT, "'%s': holds samples without values", name);
        }
        if (dims[i] > FL_DATA_MAX_DIM / dim) {
            return fl_err_set(err, FL_ELIMIT,
                              "'%s': expected at most %" PRIu64 " values a sample, found more",
                              name, FL_DATA_MAX_DIM);
        }
        dim *= dims[i];
    }
    if (n > FL_DATA_MAX_BYTES / (dim * value_size)) {
        return fl_err_set(err, FL_ELIMIT,
                          "'%s': expected at most %" PRIu64 " bytes of features, found %" PRIu64
                          " samples of %" PRIu64 " bytes",
                          name, FL_DATA_MAX_BYTES, n, dim * value_size);
    }
    return FL_OK;
}

size_t fl__dataset_count_classes(const int32_t *y, size_t n)
{
    int32_t top = -1;
    size_t i;

    for (i = 0; i < n; i++) {
        top = y[i] > top ? y[i] : top;
    }
    return (size_t)(top + 1);
}

int fl__dataset_adopt(const struct fl__arrays *arrays, struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_dataset *ds = NULL;
    int rv = fl_dataset_create(arrays->type, 0, arrays->dims, arrays->n_dims, &ds, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (arrays->target != NULL) {
        ds->y = calloc(arrays->n, sizeof(*ds->y));
        if (ds->y == NULL) {
            fl_dataset_free(ds);
            return fl_err_set(err, FL_ENOMEM, "data set of %zu samples: out of memory", arrays->n);
        }
        ds->target = arrays->target;
        ds->n_targets = arrays->n_targets;
    } else {
        ds->y = arrays->y;
    }
    ds->n = arrays->n;
    ds->x = arrays->x;
    ds->classes = fl__dataset_count_classes(ds->y, ds->n);
    *ret = ds;
    return FL_OK;
}
