#ifndef FL_DATA_NPY_IMPL_H
#define FL_DATA_NPY_IMPL_H

/* The header of an NPY array; private to libfl/data. */

#include <stdbool.h>

#include "libfl/data/npy.h"
#include "libfl/data/source.h"

struct fl__npy_header {
    char kind; /* 'u', 'i', 'f' or 'b' */
    size_t size;
    bool swap; /* big-endian in the file */
    uint64_t shape[FL_NPY_MAX_DIMS];
    size_t n_dims;
    char descr[16];
};

/* FL_EFORMAT, FL_EVERSION, FL_ELIMIT with a message that names the file. */
FL_MUST_CHECK int fl__npy_read_header(struct fl_source *src, struct fl__npy_header *h,
                                      struct fl_err *err);

#endif
