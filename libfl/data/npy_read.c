/*
 * Reads NPY arrays as data sets and standardisations; the header is parsed in npy_header.c. Runs
 * on the caller's thread.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/data/format.h"
#include "libfl/data/npy_impl.h"

#define CHUNK 4096 /* values converted at a time */

/* One little-endian word of the value's bytes. */
static uint64_t load_word(const uint8_t *raw, const struct fl__npy_header *h)
{
    uint64_t word = 0;
    size_t i;

    for (i = 0; i < h->size; i++) {
        word |= (uint64_t)raw[h->swap ? h->size - 1 - i : i] << (8 * i);
    }
    return word;
}

static double load_float(const uint8_t *raw, const struct fl__npy_header *h)
{
    uint64_t word = load_word(raw, h);
    uint32_t half = (uint32_t)word;
    double d;
    float f;

    if (h->size == 4) {
        (void)memcpy(&f, &half, sizeof(f));
        return (double)f;
    }
    (void)memcpy(&d, &word, sizeof(d));
    return d;
}

static int64_t load_int(const uint8_t *raw, const struct fl__npy_header *h)
{
    uint64_t word = load_word(raw, h);
    unsigned unused = (unsigned)(64 - 8 * h->size);

    if (h->kind == 'i') { /* sign extension */
        return (int64_t)(word << unused) >> unused;
    }
    return word > INT64_MAX ? INT64_MAX : (int64_t)word;
}

typedef int (*convert_cb)(const struct fl_source *src, const struct fl__npy_header *h,
                          const uint8_t *raw, size_t n, uint64_t first, void *out,
                          struct fl_err *err);

static int npy_to_floats(const struct fl_source *src, const struct fl__npy_header *h,
                         const uint8_t *raw, size_t n, uint64_t first, void *out,
                         struct fl_err *err)
{
    float *x = out;
    size_t i;

    for (i = 0; i < n; i++) {
        x[i] = (float)load_float(raw + i * h->size, h);
        if (!isfinite(x[i])) {
            uint64_t dim = 1;
            size_t d;

            for (d = 1; d < h->n_dims; d++) {
                dim *= h->shape[d];
            }
            return fl_err_set(
                err, FL_ENUMERIC,
                "'%s': sample %" PRIu64 ", value %" PRIu64 ": expected a finite number, found %g",
                src->name, (first + i) / dim, (first + i) % dim, load_float(raw + i * h->size, h));
        }
    }
    return FL_OK;
}

static int npy_to_labels(const struct fl_source *src, const struct fl__npy_header *h,
                         const uint8_t *raw, size_t n, uint64_t first, void *out,
                         struct fl_err *err)
{
    int32_t *y = out;
    size_t i;

    for (i = 0; i < n; i++) {
        int64_t label = load_int(raw + i * h->size, h);

        if (label < 0 || label > FL_DATA_MAX_LABEL) {
            return fl_err_set(err, FL_ERANGE,
                              "'%s': sample %" PRIu64 " has label %" PRId64 ", expected 0 to %d",
                              src->name, first + i, label, FL_DATA_MAX_LABEL);
        }
        y[i] = (int32_t)label;
    }
    return FL_OK;
}

/*
 * Read `count` values and convert each to 4 bytes. When the size of the file is known and was
 * checked, memory is allocated at once, otherwise it grows with the data read.
 */
static int read_converted(struct fl_source *src, const struct fl__npy_header *h, uint64_t count,
                          convert_cb convert, void **ret, struct fl_err *err)
{
    uint64_t expected = src->pos + count * h->size;
    uint64_t cap = src->size == UINT64_MAX && count > 1u << 20 ? 1u << 20 : count;
    uint64_t done = 0;
    uint8_t *out = NULL;
    uint8_t raw[CHUNK * 8];
    int rv;

    if (!fl__source_may_have(src, count * h->size)) {
        return fl__source_truncated(src, expected, err);
    }
    do {
        uint8_t *grown = realloc(out, cap > 0 ? (size_t)cap * 4 : 1);

        if (grown == NULL) {
            rv = fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its values", src->name);
            goto fail;
        }
        out = grown;
        while (done < cap) {
            size_t n = cap - done < CHUNK ? (size_t)(cap - done) : CHUNK;
            size_t got = 0;

            rv = fl__source_read(src, raw, n * h->size, &got, err);
            if (rv != FL_OK) {
                goto fail;
            }
            if (got < n * h->size) {
                rv = fl__source_truncated(src, expected, err);
                goto fail;
            }
            rv = convert(src, h, raw, n, done, out + done * 4, err);
            if (rv != FL_OK) {
                goto fail;
            }
            done += n;
        }
        cap = cap > count / 2 ? count : cap * 2;
    } while (done < count);
    *ret = out;
    return FL_OK;
fail:
    free(out);
    return rv;
}

/* Read the header of the features: samples, and {channels, height, width} or {features}. */
static int read_x_header(struct fl_source *src, struct fl__npy_header *h, size_t *dims,
                         size_t *ret_n_dims, struct fl_err *err)
{
    size_t i;
    int rv = fl__npy_read_header(src, h, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!(h->kind == 'u' && h->size == 1) && h->kind != 'f') {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected features of type uint8, float32 or float64, found '%s'",
                          src->name, h->descr);
    }
    if (h->n_dims < 2) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected shape (n, d), (n, h, w) or (n, c, h, w), found %zu "
                          "dimension(s)",
                          src->name, h->n_dims);
    }
    if (h->n_dims == 4 && h->shape[1] > 4 && h->shape[2] > 4 &&
        (h->shape[3] == 1 || h->shape[3] == 3 || h->shape[3] == 4))
    {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected shape (n, channels, height, width), found (%" PRIu64
                          ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
                          "), which looks like channels last: save numpy.ascontiguousarray("
                          "a.transpose(0, 3, 1, 2)) instead",
                          src->name, h->shape[0], h->shape[1], h->shape[2], h->shape[3]);
    }
    rv = fl__data_check_size(src->name, h->shape[0], h->shape + 1, h->n_dims - 1,
                             h->size == 1 ? 1 : 4, err);
    if (rv != FL_OK) {
        return rv;
    }
    dims[0] = dims[1] = dims[2] = 1;
    for (i = 1; i < h->n_dims; i++) {
        dims[h->n_dims == 3 ? i : i - 1] = (size_t)h->shape[i];
    }
    *ret_n_dims = h->n_dims == 2 ? 1 : 3;
    return FL_OK;
}

/* Check the header of the labels, integers, or of the values to be predicted, floats. */
static int npy_check_y(const struct fl_source *src, const struct fl__npy_header *h, uint64_t n,
                       const char *x_name, struct fl_err *err)
{
    bool values = h->kind == 'f';
    uint64_t width = h->n_dims == 2 ? h->shape[1] : 1;

    if (h->kind == 'b') {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected labels of an integer type, or values to be predicted of "
                          "a float type, found '%s'",
                          src->name, h->descr);
    }
    if (h->n_dims < 1 || h->n_dims > 2 || width == 0 || (!values && width != 1)) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected shape (n,)%s, found %zu dimension(s) of '%s'", src->name,
                          values ? " or (n, k)" : "", h->n_dims, h->descr);
    }
    if (h->shape[0] != n) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s' holds %" PRIu64 " samples but '%s' holds %" PRIu64 " labels",
                          x_name, n, src->name, h->shape[0]);
    }
    return values ? fl__data_check_size(src->name, n, &width, 1, sizeof(float), err) : FL_OK;
}

/* The labels into arrays->y, or values to be predicted into arrays->target. */
static int read_y(struct fl_source *src, uint64_t n, const char *x_name, struct fl__arrays *arrays,
                  struct fl_err *err)
{
    struct fl__npy_header h;
    void *y = NULL;
    bool values;
    uint64_t width;
    int rv = fl__npy_read_header(src, &h, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = npy_check_y(src, &h, n, x_name, err);
    if (rv != FL_OK) {
        return rv;
    }
    values = h.kind == 'f';
    width = h.n_dims == 2 ? h.shape[1] : 1;
    rv = read_converted(src, &h, n * width, values ? npy_to_floats : npy_to_labels, &y, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__source_expect_end(src, err);
    if (rv != FL_OK) {
        free(y);
        return rv;
    }
    arrays->target = values ? y : NULL;
    arrays->n_targets = values ? (size_t)width : 0;
    arrays->y = values ? NULL : y;
    return FL_OK;
}

int fl__npy_read(struct fl_source *x_src, struct fl_source *y_src, struct fl_dataset **ret,
                 struct fl_err *err)
{
    size_t dims[3] = {1, 1, 1};
    size_t n_dims = 0;
    uint64_t count;
    struct fl__npy_header h;
    struct fl__arrays arrays = {.dims = dims};
    int rv = read_x_header(x_src, &h, dims, &n_dims, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = read_y(y_src, h.shape[0], x_src->name, &arrays, err);
    if (rv != FL_OK) {
        return rv;
    }
    count = h.shape[0] * dims[0] * dims[1] * dims[2];
    rv = h.size == 1 ? fl__source_read_new(x_src, count, &arrays.x, err)
                     : read_converted(x_src, &h, count, npy_to_floats, &arrays.x, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__source_expect_end(x_src, err);
    if (rv != FL_OK) {
        goto fail;
    }
    arrays.type = h.size == 1 ? FL_DATA_U8 : FL_DATA_F32;
    arrays.n = (size_t)h.shape[0];
    arrays.n_dims = n_dims;
    rv = fl__dataset_adopt(&arrays, ret, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    free(arrays.x);
    free(arrays.y);
    free(arrays.target);
    return rv;
}

int fl__norm_read(struct fl_source *src, struct fl_dataset *ds, struct fl_err *err)
{
    struct fl__npy_header h;
    void *values = NULL;
    size_t n;
    int rv = fl__npy_read_header(src, &h, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (h.kind != 'f' || h.n_dims != 2 || h.shape[0] != 2 || h.shape[1] > ds->dim) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected the means and the deviations as float32 of shape (2, m), "
                          "m at most %zu; found %s with %zu dimension(s)",
                          src->name, ds->dim, h.descr, h.n_dims);
    }
    n = (size_t)h.shape[1];
    rv = read_converted(src, &h, 2 * n, npy_to_floats, &values, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__source_expect_end(src, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_dataset_set_norm(ds, values, (const float *)values + n, n, err);
    if (rv != FL_OK) {
        (void)fl_err_wrap(err, rv, "'%s'", src->name);
    }
done:
    free(values);
    return rv;
}
