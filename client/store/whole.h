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

/* Is `version` that of a later program, when this one knows up to `known`? One that is far above is
   damage. */
static inline bool fl_whole_is_newer(unsigned version, unsigned known)
{
    return version > known && version < known + 16;
}
/* FL_EVERSION: a file of a later program is neither read nor replaced. */
FL_MUST_CHECK int fl_whole_newer(const char *path, unsigned version, unsigned known,
                                 struct fl_err *err);

#endif
