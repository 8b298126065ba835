#ifndef FL_FUZZ_DATA_H
#define FL_FUZZ_DATA_H

/* What must hold of every set that a reader accepted, and of every refusal. */

#include <math.h>
#include <stdlib.h>

#include "libfl/data/format.h"

static inline void check_set(int rv, struct fl_dataset *ds, const struct fl_err *err)
{
    size_t *counts;
    size_t sum = 0;
    size_t i;
    float *x;

    if (rv != FL_OK) {
        FL_REQUIRE(ds == NULL && err->code == rv && err->msg[0] != '\0');
        return;
    }
    FL_REQUIRE(ds->n > 0 && ds->dim == ds->dims[0] * ds->dims[1] * ds->dims[2]);
    FL_REQUIRE(ds->classes > 0 && ds->classes <= FL_DATA_MAX_LABEL + 1);
    counts = calloc(ds->classes, sizeof(*counts));
    x = calloc(ds->dim, sizeof(*x));
    FL_REQUIRE(counts != NULL && x != NULL);
    fl_dataset_histogram(ds, counts);
    for (i = 0; i < ds->classes; i++) {
        sum += counts[i];
    }
    FL_REQUIRE(sum == ds->n && counts[ds->classes - 1] > 0);
    fl_dataset_gather(ds, &(uint32_t){(uint32_t)ds->n - 1}, 1, x, NULL);
    for (i = 0; i < ds->dim; i++) {
        FL_REQUIRE(isfinite(x[i]));
    }
    free(counts);
    free(x);
    fl_dataset_free(ds);
}

/* Two files in one input: two bytes say how long the first is. */
static inline void split_input(const uint8_t *data, size_t size, struct fl_source *x,
                               struct fl_source *y)
{
    size_t rest = size - 2;
    size_t first = (size_t)data[0] | (size_t)data[1] << 8;

    first = first < rest ? first : rest;
    fl__source_mem(x, "x", data + 2, first);
    fl__source_mem(y, "y", data + 2 + first, rest - first);
}

#endif
