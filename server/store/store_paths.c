/* Paths in a state folder, and the message of a failed system call on one. Any thread. */

#include <errno.h>
#include <string.h>

#include "libfl/base/fs.h"
#include "server/store/store_impl.h"

int fl__store_join(char out[FL__STORE_PATH_MAX], const char *a, const char *b, struct fl_err *err)
{
    return fl_fs_join(out, FL__STORE_PATH_MAX, a, b) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", a);
}

int fl__store_fail(struct fl_err *err, const char *what, const char *path)
{
    int saved = errno;

    return fl_err_set(err, fl_err_from_errno(saved), "%s '%s': %s", what, path, strerror(saved));
}
