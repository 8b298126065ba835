/*
 * Splits a data set, or a view of one, into two sets (dataset.h). Runs on the caller's thread
 * before the set is shared.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/rng.h"
#include "libfl/base/str.h"
#include "libfl/data/dataset.h"
#include "libfl/data/pick.h"

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
    size_t k = ds->n_targets;
    uint8_t *from = ds->x;
    uint8_t *to = rest->x;
    size_t kept = 0;
    size_t moved = 0;
    size_t i;

    for (i = 0; i < ds->n; i++) {
        if (taken[i] != 0) {
            (void)memcpy(to + moved * bytes, from + i * bytes, bytes);
            if (k > 0) {
                (void)memcpy(rest->target + moved * k, ds->target + i * k, k * sizeof(*ds->target));
            }
            rest->y[moved++] = ds->y[i];
        } else {
            if (kept != i) {
                (void)memcpy(from + kept * bytes, from + i * bytes, bytes);
            }
            if (kept != i && k > 0) {
                (void)memcpy(ds->target + kept * k, ds->target + i * k, k * sizeof(*ds->target));
            }
            ds->y[kept++] = ds->y[i];
        }
    }
    ds->n = kept;
}

static int split_samples(struct fl_dataset *ds, const uint8_t *taken, size_t moved,
                         struct fl_dataset **ret_rest, struct fl_err *err)
{
    struct fl_dataset *rest = NULL;
    int rv;

    /* Create the set for the `moved` samples of `ds`, which is not a view. */
    rv = fl_dataset_create(ds->type, moved, ds->dims, ds->n_dims, &rest, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dataset_copy_norm(rest, ds, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (ds->n_targets > 0) {
        rv = fl_dataset_add_targets(rest, ds->n_targets, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rest->scale = ds->scale;
    rest->classes = ds->classes;
    rest->format = ds->format;
    if (ds->source != NULL) {
        /* Only used in messages, so a failure is ignored. */
        rest->source = fl_str_dup(ds->source);
    }
    *ret_rest = rest;
    if (moved > 0) {
        void *x;
        int32_t *y;

        dataset_move_rows(ds, *ret_rest, taken);
        /* Release memory after samples were moved; a failure is harmless. */
        x = realloc(ds->x, ds->n * ds->dim * fl_dataset_value_size(ds));
        y = realloc(ds->y, ds->n * sizeof(*y));
        ds->x = x != NULL ? x : ds->x;
        ds->y = y != NULL ? y : ds->y;
    }
    return FL_OK;
fail:
    fl_dataset_free(rest);
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
    rest->y = ds->y; /* Those of fl_dataset_relabel() too. */
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
