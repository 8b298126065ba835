#include "client/store/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"

#define WHOLE_PATH 4096

static int whole_errno_error(struct fl_err *err, const char *what, const char *path)
{
    int saved = errno;

    return fl_err_set(err, fl_err_from_errno(saved), "cannot %s '%s': %s", what, path,
                      strerror(saved));
}

int fl_whole_newer(const char *path, unsigned version, unsigned known, struct fl_err *err)
{
    return fl_err_set(err, FL_EVERSION,
                      "'%s' has version %u of its format, this program supports up to %u: use the "
                      "newer program, or another state folder",
                      path, version, known);
}

int fl_whole_write(const char *path, const struct fl_run *runs, size_t n, bool sync,
                   struct fl_err *err)
{
    char tmp[WHOLE_PATH];
    int len = snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    uint64_t offset = 0;
    size_t i;
    int fd;
    int rv = FL_OK;

    if (len < 0 || (size_t)len >= sizeof(tmp)) {
        return fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", path);
    }
    fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0) {
        return whole_errno_error(err, "create", tmp);
    }
    for (i = 0; rv == FL_OK && i < n; i++) {
        rv = fl_fs_pwrite(fd, runs[i].data, runs[i].len, offset);
        offset += runs[i].len;
    }
    if (rv != FL_OK) {
        (void)fl_err_set(err, rv, "cannot write '%s': %s", tmp, fl_strerror(rv));
    } else if (sync && fsync(fd) != 0) {
        rv = whole_errno_error(err, "sync", tmp);
    }
    if (close(fd) != 0 && rv == FL_OK) {
        rv = whole_errno_error(err, "close", tmp);
    }
    if (rv == FL_OK) {
        rv = fl_fs_publish(tmp, path, sync, err);
    }
    if (rv != FL_OK) {
        (void)unlink(tmp);
    }
    return rv;
}
