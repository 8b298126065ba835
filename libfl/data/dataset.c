/*
 * Data sets in memory, views of them, and splits into two sets (dataset.h). Reading files is in
 * open.c and the format files, batches are made in gather.c, changes of a whole set in
 * transform.c.
 */
#include "libfl/data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "libfl/data/pick.h"

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

void fl_dataset_free(struct fl_dataset *ds)
{
    if (ds == NULL) {
        return;
    }
    if (ds->of == NULL) { /* Views borrow these. */
        free(ds->x);
        free(ds->y);
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

int fl_dataset_set_classes(struct fl_dataset *ds, size_t classes, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < ds->n; i++) {
        int32_t label = fl_dataset_label(ds, i);

        if ((size_t)label >= classes) {
            return fl_err_set(err, FL_ERANGE,
                              "'%s': sample %zu has label %" PRId32 ", expected one below %zu",
                              ds->source != NULL ? ds->source : ds->format, i, label, classes);
        }
    }
    ds->classes = classes;
    return FL_OK;
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

size_t fl_dataset_split_count(size_t n, double share)
{
    /* The small term makes 0.7 * 10 = 6.999… seven. */
    double keep = floor((1.0 - share) * (double)n + 1e-6);
    size_t moved = keep >= (double)n ? 0 : n - (size_t)keep;

    if (share <= 0.0 || n < 2) {
        return 0;
    }
    if (moved == 0) {
        return 1;
    }
    return moved < n ? moved : n - 1;
}

/* Move the samples marked in `taken` from `ds` to `rest`; both keep their order. */
static void dataset_move_rows(struct fl_dataset *ds, struct fl_dataset *rest, const uint8_t *taken)
{
    size_t bytes = ds->dim * fl_dataset_value_size(ds);
    uint8_t *from = ds->x;
    uint8_t *to = rest->x;
    size_t kept = 0;
    size_t moved = 0;
    size_t i;

    for (i = 0; i < ds->n; i++) {
        if (taken[i] != 0) {
            (void)memcpy(to + moved * bytes, from + i * bytes, bytes);
            rest->y[moved++] = ds->y[i];
        } else {
            if (kept != i) {
                (void)memcpy(from + kept * bytes, from + i * bytes, bytes);
            }
            ds->y[kept++] = ds->y[i];
        }
    }
    ds->n = kept;
}

/* Release memory after samples were moved; a failure is harmless. */
static void dataset_shrink(struct fl_dataset *ds)
{
    void *x = realloc(ds->x, ds->n * ds->dim * fl_dataset_value_size(ds));
    int32_t *y = realloc(ds->y, ds->n * sizeof(*y));

    ds->x = x != NULL ? x : ds->x;
    ds->y = y != NULL ? y : ds->y;
}

/* Create the set for the `moved` samples of `ds`, which is not a view. */
static int make_rest(const struct fl_dataset *ds, size_t moved, struct fl_dataset **ret,
                     struct fl_err *err)
{
    struct fl_dataset *rest = NULL;
    int rv = fl_dataset_create(ds->type, moved, ds->dims, ds->n_dims, &rest, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dataset_copy_norm(rest, ds, err);
    if (rv != FL_OK) {
        fl_dataset_free(rest);
        return rv;
    }
    rest->scale = ds->scale;
    rest->classes = ds->classes;
    rest->format = ds->format;
    if (ds->source != NULL) {
        /* Only used in messages, so a failure is ignored. */
        rest->source = fl_str_dup(ds->source);
    }
    *ret = rest;
    return FL_OK;
}

static int split_samples(struct fl_dataset *ds, const uint8_t *taken, size_t moved,
                         struct fl_dataset **ret_rest, struct fl_err *err)
{
    int rv = make_rest(ds, moved, ret_rest, err);

    if (rv == FL_OK && moved > 0) {
        dataset_move_rows(ds, *ret_rest, taken);
        dataset_shrink(ds);
    }
    return rv;
}

/* split_samples() for a view: only its list of samples is split. */
static int split_view(struct fl_dataset *ds, const uint8_t *taken, size_t moved,
                      struct fl_dataset **ret_rest, struct fl_err *err)
{
    uint32_t *kept = calloc(ds->n - moved + 1, sizeof(*kept));
    uint32_t *moved_items = calloc(moved + 1, sizeof(*moved_items));
    struct fl_dataset *rest = NULL;
    size_t n_kept = 0;
    size_t n_moved = 0;
    size_t i;
    int rv = kept == NULL || moved_items == NULL
                 ? fl_err_set(err, FL_ENOMEM, "view of %zu samples: out of memory", ds->n)
                 : fl_dataset_view(ds->of, moved_items, moved, &rest, err);

    if (rv != FL_OK) {
        free(kept);
        free(moved_items);
        return rv;
    }
    for (i = 0; i < ds->n; i++) {
        if (taken[i] != 0) {
            moved_items[n_moved++] = ds->items[i];
        } else {
            kept[n_kept++] = ds->items[i];
        }
    }
    free(ds->own_items);
    ds->own_items = kept;
    ds->items = kept;
    ds->n = n_kept;
    rest->own_items = moved_items;
    rest->classes = ds->classes;
    rest->augment = FL_AUGMENT_NONE; /* As for a set that is not a view. */
    *ret_rest = rest;
    return FL_OK;
}

int fl_dataset_split(struct fl_dataset *ds, double share, uint64_t seed,
                     struct fl_dataset **ret_rest, struct fl_err *err)
{
    uint8_t *taken = NULL;
    struct fl_rng rng;
    size_t moved;
    int rv;

    if (!(share >= 0.0 && share < 1.0)) {
        return fl_err_set(err, FL_ERANGE, "cannot split off a share of %g: expected 0 <= share < 1",
                          share);
    }
    moved = fl_dataset_split_count(ds->n, share);
    fl_rng_key(&rng, seed, FL_RNG_PARTITION, FL_PICK_SPLIT, 0);
    rv = fl_pick_marks(&rng, ds->n, moved, &taken, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = (ds->of != NULL ? split_view : split_samples)(ds, taken, moved, ret_rest, err);
    free(taken);
    return rv;
}
