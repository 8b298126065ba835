#ifndef FL_DATA_NPY_H
#define FL_DATA_NPY_H

/*
 * NPY, numpy's array format: a streaming writer. The shape is written first and the values are
 * appended as they are produced, so an array is never in memory as a whole.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/data/dataset.h"

#define FL_NPY_MAX_DIMS 4

enum fl_npy_type { FL_NPY_U8, FL_NPY_F32, FL_NPY_I32 };

struct fl_npy_writer;

/*
 * Create `path` for an array of `shape`; an existing file is replaced. Copies all arguments.
 * FL_EIO, FL_ENOSPC … name the file.
 */
FL_MUST_CHECK int fl_npy_create(const char *path, enum fl_npy_type type, const uint64_t *shape,
                                size_t n_dims, struct fl_npy_writer **ret, struct fl_err *err);
/* Append `n` values in C order; the caller must not exceed the shape. Borrows. */
FL_MUST_CHECK int fl_npy_add(struct fl_npy_writer *w, const void *values, size_t n,
                             struct fl_err *err);
/* Close the file; all values of the shape must have been added. Takes `w`, also on error. */
FL_MUST_CHECK int fl_npy_finish(struct fl_npy_writer *w, struct fl_err *err);
/* Abort: close and remove the file. Takes `w`; NULL is allowed. */
void fl_npy_abort(struct fl_npy_writer *w);

#endif
