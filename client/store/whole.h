#ifndef FL_CLIENT_WHOLE_H
#define FL_CLIENT_WHOLE_H

/*
 * Atomic writing of files of the state folder that are too large to be copied together first:
 * written from several runs of memory, complete or absent after a crash, as with fl_fs_replace().
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"

struct fl_run {
    const void *data;
    size_t len;
};

/*
 * Write `path`.tmp, then rename; `sync`: fsync both, and the folder. On error `path` is unchanged.
 */
FL_MUST_CHECK int fl_whole_write(const char *path, const struct fl_run *runs, size_t n, bool sync,
                                 struct fl_err *err);

/*
 * Is `version` one of a later program, when this one supports up to `known`? A version far above is
 * damage.
 */
static inline bool fl_whole_is_newer(unsigned version, unsigned known)
{
    return version > known && version < known + 16;
}
/* Sets and returns FL_EVERSION: a file of a later program is neither read nor replaced. */
FL_MUST_CHECK int fl_whole_newer(const char *path, unsigned version, unsigned known,
                                 struct fl_err *err);

#endif
