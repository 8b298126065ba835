/*
 * CIFAR-10 binary: no header; records of one label byte, then 1,024 red, green and blue
 * bytes, row by row.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/format.h"

#define CLASSES     10
#define PICTURE     3072
#define RECORD      (1 + PICTURE)
#define READ_AHEAD  64
#define FIRST_GRANT 1024

/* Reserve memory for `n` samples in total. */
static int cifar_reserve(struct fl_dataset *ds, size_t n, const char *name, struct fl_err *err)
{
    uint8_t *x;
    int32_t *y;

    if (n > FL_DATA_MAX_SAMPLES || n > FL_DATA_MAX_BYTES / PICTURE) {
        return fl_err_set(err, FL_ELIMIT, "'%s': too many records, above the limit of a data set",
                          name);
    }
    x = realloc(ds->x, n * PICTURE);
    if (x == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its records", name);
    }
    ds->x = x;
    y = realloc(ds->y, n * sizeof(*y));
    if (y == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its records", name);
    }
    ds->y = y;
    return FL_OK;
}

static int cifar_add_records(struct fl_dataset *ds, const uint8_t *raw, size_t n, const char *name,
                             uint64_t first, struct fl_err *err)
{
    uint8_t *x = ds->x;
    size_t i;

    for (i = 0; i < n; i++, raw += RECORD) {
        if (raw[0] >= CLASSES) {
            return fl_err_set(err, FL_ERANGE,
                              "'%s': record %" PRIu64 " has label %u, expected 0 to %d", name,
                              first + i, (unsigned)raw[0], CLASSES - 1);
        }
        ds->y[ds->n] = raw[0];
        (void)memcpy(x + ds->n * PICTURE, raw + 1, PICTURE);
        ds->n++;
    }
    return FL_OK;
}

int fl__cifar_append(struct fl_source *src, struct fl_dataset *ds, struct fl_err *err)
{
    uint8_t *raw = malloc((size_t)READ_AHEAD * RECORD);
    size_t cap = ds->n;
    uint64_t first = 0;
    size_t got = 0;
    int rv = FL_OK;

    if (raw == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot read it", src->name);
    }
    do {
        size_t n;

        rv = fl__source_read(src, raw, (size_t)READ_AHEAD * RECORD, &got, err);
        if (rv != FL_OK) {
            goto out;
        }
        n = got / RECORD;
        if (ds->n + n > cap) {
            cap = ds->n + (ds->n / 2 > FIRST_GRANT ? ds->n / 2 : FIRST_GRANT);
            rv = cifar_reserve(ds, cap, src->name, err);
            if (rv != FL_OK) {
                goto out;
            }
        }
        rv = cifar_add_records(ds, raw, n, src->name, first, err);
        if (rv != FL_OK) {
            goto out;
        }
        first += n;
    } while (got == (size_t)READ_AHEAD * RECORD);
    if (got % RECORD != 0) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "'%s': truncated: expected whole records of %d bytes, found %zu bytes "
                        "after record %" PRIu64,
                        src->name, RECORD, got % RECORD, first);
    } else if (src->cut || first == 0) {
        rv = fl_err_set(err, FL_EFORMAT, "'%s': %s", src->name,
                        src->cut ? "the gzip stream is cut short" : "holds no record");
    } else {
        rv = cifar_reserve(ds, ds->n, src->name, err); /* Release the surplus capacity. */
    }
    ds->classes = fl__dataset_count_classes(ds->y, ds->n);
out:
    free(raw);
    return rv;
}
