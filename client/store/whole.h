#ifndef FL_CLIENT_WHOLE_H
#define FL_CLIENT_WHOLE_H

/*
 * Files of the state folder that are too large to be copied together first: written from
 * several runs of memory, and found whole or not at all after a crash, as with
 * fl_fs_replace().
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"

struct fl_run {
    const void *data;
    size_t len;
};

/* Write `path`.tmp, rename; with `sync` fsync both, and the folder. On error `path` is as it was.
 */
FL_MUST_CHECK int fl_whole_write(const char *path, const struct fl_run *runs, size_t n, bool sync,
                                 struct fl_err *err);

#endif
