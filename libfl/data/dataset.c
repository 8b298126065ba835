/*
 * Data sets in memory and views of them (dataset.h). Reading files is in open.c and the format
 * files, batches are made in gather.c, changes of a whole set in transform.c, splits into two sets
 * in dataset_split.c.
 */
#include "libfl/data/dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

size_t fl_dataset_value_size(const struct fl_dataset *ds)
{
    return ds->type == FL_DATA_U8 ? sizeof(uint8_t) : sizeof(float);
}

const void *fl_dataset_row(const struct fl_dataset *ds, size_t i)
{
    FL_REQUIRE(i < ds->n);
    return (const uint8_t *)ds->x + fl_dataset_place(ds, i) * ds->dim * fl_dataset_value_size(ds);
}

int32_t fl_dataset_label(const struct fl_dataset *ds, size_t i)
{
    FL_REQUIRE(i < ds->n);
    return ds->y[fl_dataset_place(ds, i)];
}

int fl_dataset_create(enum fl_data_type type, size_t n, const size_t *dims, size_t n_dims,
                      struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_dataset *ds;
    uint64_t bytes;
    size_t i;

    FL_REQUIRE(n_dims == 1 || n_dims == 3);
    ds = calloc(1, sizeof(*ds));
    if (ds == NULL) {
        return fl_err_set(err, FL_ENOMEM, "data set: out of memory");
    }
    *ds = (struct fl_dataset){
        .type = type,
        .n = n,
        .dims = {1, 1, 1},
        .n_dims = n_dims,
        .dim = 1,
        .scale = type == FL_DATA_U8 ? 1.0F / 255.0F : 1.0F,
        .format = "memory",
    };
    for (i = 0; i < n_dims; i++) {
        FL_REQUIRE(dims[i] > 0);
        ds->dims[i] = dims[i];
        if (dims[i] > FL_DATA_MAX_DIM / ds->dim) {
            fl_dataset_free(ds);
            return fl_err_set(err, FL_ELIMIT, "samples of more than %" PRIu64 " values",
                              FL_DATA_MAX_DIM);
        }
        ds->dim *= dims[i];
    }
    bytes = (uint64_t)ds->dim * fl_dataset_value_size(ds);
    if (n > FL_DATA_MAX_SAMPLES || n > FL_DATA_MAX_BYTES / bytes) {
        fl_dataset_free(ds);
        return fl_err_set(err, FL_ELIMIT,
                          "%zu samples of %" PRIu64 " bytes are more than a data set may hold", n,
                          bytes);
    }
    if (n > 0) {
        ds->x = calloc(n, (size_t)bytes);
        ds->y = calloc(n, sizeof(*ds->y));
        if (ds->x == NULL || ds->y == NULL) {
            fl_dataset_free(ds);
            return fl_err_set(err, FL_ENOMEM,
                              "data set of %zu samples of %" PRIu64 " bytes: out of memory", n,
                              bytes);
        }
    }
    *ret = ds;
    return FL_OK;
}

int fl_dataset_add_targets(struct fl_dataset *ds, size_t n, struct fl_err *err)
{
    FL_REQUIRE(ds->of == NULL && ds->n_targets == 0 && n > 0);
    if (n > FL_DATA_MAX_DIM || ds->n > FL_DATA_MAX_BYTES / sizeof(float) / n) {
        return fl_err_set(
            err, FL_ELIMIT,
            "%zu samples with %zu values to be predicted are more than a data set may "
            "hold",
            ds->n, n);
    }
    ds->target = calloc(ds->n > 0 ? ds->n : 1, n * sizeof(*ds->target));
    if (ds->target == NULL) {
        return fl_err_set(err, FL_ENOMEM, "values to be predicted for %zu samples: out of memory",
                          ds->n);
    }
    ds->n_targets = n;
    ds->classes = 1;
    return FL_OK;
}

const float *fl_dataset_target(const struct fl_dataset *ds, size_t i)
{
    FL_REQUIRE(i < ds->n && ds->n_targets > 0);
    return ds->target + fl_dataset_place(ds, i) * ds->n_targets;
}

bool fl_dataset_shape_note(const struct fl_dataset *ds, char *out, size_t size)
{
    if (ds->n_dims != 3 || ds->dims[2] > 4 || ds->dims[1] <= ds->dims[2]) {
        return false;
    }
    (void)snprintf(
        out, size,
        "samples are read as %zu channels of %zu x %zu, which looks like channels last; "
        "expected (channels, height, width): transpose the array if this is not intended",
        ds->dims[0], ds->dims[1], ds->dims[2]);
    return true;
}

void fl_dataset_free(struct fl_dataset *ds)
{
    if (ds == NULL) {
        return;
    }
    if (ds->of == NULL) { /* Views borrow these. */
        free(ds->x);
        free(ds->y);
        free(ds->target);
        free(ds->mean);
        free(ds->std);
        free(ds->source);
    }
    free(ds->own_items);
    free(ds);
}

int fl_dataset_view(const struct fl_dataset *of, const uint32_t *items, size_t n,
                    struct fl_dataset **ret, struct fl_err *err)
{
    struct fl_dataset *view = malloc(sizeof(*view));

    FL_REQUIRE(of->of == NULL && (items != NULL || n == 0));
    if (view == NULL) {
        return fl_err_set(err, FL_ENOMEM, "view of %zu samples: out of memory", n);
    }
    *view = *of;
    view->of = of;
    view->items = items;
    view->n = n;
    *ret = view;
    return FL_OK;
}

void fl_dataset_relabel(struct fl_dataset *view, int32_t *y)
{
    FL_REQUIRE(view->of != NULL && view->n_targets == 0);
    view->y = y;
}

void fl_dataset_histogram(const struct fl_dataset *ds, size_t *counts)
{
    size_t i;

    for (i = 0; i < ds->classes; i++) {
        counts[i] = 0;
    }
    for (i = 0; i < ds->n; i++) {
        counts[fl_dataset_label(ds, i)]++;
    }
}
