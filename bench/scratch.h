#ifndef FL_BENCH_SCRATCH_H
#define FL_BENCH_SCRATCH_H

/* A folder for one run of a benchmark. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/fs.h"

/* Where temporary files go unless an option says otherwise. */
static inline const char *scratch_parent(void)
{
    const char *folder = getenv("TMPDIR");

    return folder != NULL ? folder : "/tmp";
}

/* "<parent>/NAME-…" in `out`. */
static inline int scratch_make(const char *parent, const char *name, char *out, size_t size,
                               struct fl_err *err)
{
    int n = snprintf(out, size, "%s/%s-XXXXXX", parent, name);

    if (n < 0 || (size_t)n >= size) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", parent);
    }
    return mkdtemp(out) != NULL
               ? FL_OK
               : fl_err_set(err, fl_err_from_errno(errno), "cannot make a folder in '%s'", parent);
}

/* With all that is in it; what cannot be removed is said. */
static inline void scratch_remove(const char *path)
{
    struct fl_err err = {0};

    if (fl_fs_remove_tree(path, &err) != FL_OK) {
        (void)fprintf(stderr, "%s\n", err.msg);
    }
}

#endif
