#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/str.h"
#include "libfl/data/npy.h"

/* Alignment of the data, as numpy's, for memory mapping. */
#define ALIGN 64

/* Values are written without conversion. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the descr strings say little-endian");

struct fl_npy_writer {
    FILE *file;
    char *path;
    size_t value_size;
    uint64_t left; /* values not yet added */
};

static int npy_write_error(const struct fl_npy_writer *w, const char *what, struct fl_err *err)
{
    int saved = errno;

    return fl_err_set(err, fl_err_from_errno(saved), "%s '%s': %s", what, w->path, strerror(saved));
}

/* Magic, version 1.0, length, and a Python dict padded with blanks to the alignment. */
static int npy_write_header(struct fl_npy_writer *w, enum fl_npy_type type, const uint64_t *shape,
                            size_t n_dims, struct fl_err *err)
{
    static const char *const descr[] = {
        [FL_NPY_U8] = "|u1", [FL_NPY_F32] = "<f4", [FL_NPY_I32] = "<i4"};
    char dims[FL_NPY_MAX_DIMS * 24] = "";
    char head[4 * ALIGN];
    size_t used = 0;
    size_t total;
    size_t i;
    int n;

    for (i = 0; i < n_dims; i++) {
        /* A tuple of one element needs a comma. */
        n = snprintf(dims + used, sizeof(dims) - used, "%s%" PRIu64 "%s", i > 0 ? " " : "",
                     shape[i], i + 1 < n_dims || n_dims == 1 ? "," : "");
        used += (size_t)n;
    }
    (void)memcpy(head, "\x93NUMPY\x01\x00", 8);
    n = snprintf(head + 10, sizeof(head) - 10,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr[type], dims);
    total = (10 + (size_t)n + 1 + ALIGN - 1) / ALIGN * ALIGN;
    FL_REQUIRE(total <= sizeof(head));
    (void)memset(head + 10 + n, ' ', total - 10 - (size_t)n);
    head[total - 1] = '\n';
    head[8] = (char)((total - 10) & 0xff);
    head[9] = (char)((total - 10) >> 8);
    return fwrite(head, 1, total, w->file) == total ? FL_OK
                                                    : npy_write_error(w, "cannot write", err);
}

int fl_npy_create(const char *path, enum fl_npy_type type, const uint64_t *shape, size_t n_dims,
                  struct fl_npy_writer **ret, struct fl_err *err)
{
    struct fl_npy_writer *w;
    size_t i;
    int rv;

    FL_REQUIRE(n_dims >= 1 && n_dims <= FL_NPY_MAX_DIMS);
    w = calloc(1, sizeof(*w));
    if (w == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot write it", path);
    }
    w->value_size = type == FL_NPY_U8 ? 1 : 4;
    w->left = 1;
    for (i = 0; i < n_dims; i++) {
        FL_REQUIRE(shape[i] == 0 || w->left <= UINT64_MAX / shape[i]);
        w->left *= shape[i];
    }
    w->path = fl_str_dup(path);
    if (w->path == NULL) {
        free(w);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot write it", path);
    }
    w->file = fopen(path, "wbe");
    if (w->file == NULL) {
        rv = npy_write_error(w, "cannot create", err);
        free(w->path);
        free(w);
        return rv;
    }
    rv = npy_write_header(w, type, shape, n_dims, err);
    if (rv != FL_OK) {
        fl_npy_abort(w);
        return rv;
    }
    *ret = w;
    return FL_OK;
}

int fl_npy_add(struct fl_npy_writer *w, const void *values, size_t n, struct fl_err *err)
{
    FL_REQUIRE(n <= w->left);
    if (fwrite(values, w->value_size, n, w->file) != n) {
        return npy_write_error(w, "cannot write", err);
    }
    w->left -= n;
    return FL_OK;
}

int fl_npy_finish(struct fl_npy_writer *w, struct fl_err *err)
{
    int rv = FL_OK;

    FL_REQUIRE(w->left == 0);
    if (fclose(w->file) != 0) {
        rv = npy_write_error(w, "cannot write", err);
        (void)unlink(w->path);
    }
    free(w->path);
    free(w);
    return rv;
}

void fl_npy_abort(struct fl_npy_writer *w)
{
    if (w == NULL) {
        return;
    }
    (void)fclose(w->file); /* The file is removed, so errors do not matter. */
    (void)unlink(w->path);
    free(w->path);
    free(w);
}
