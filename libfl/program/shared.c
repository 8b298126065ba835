#include "libfl/program/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/fs.h"

/* Linux 5.1; older headers lack the name. */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static const char *shared_name(const struct fl_shared *s)
{
    return s->kind == FL_SHARED_WEIGHTS ? "weights" : "result";
}

static int shared_error(const struct fl_shared *s, const char *what, int errnum, struct fl_err *err)
{
    return fl_err_set(err, fl_err_from_errno(errnum), "shared memory for the program (%s): %s: %s",
                      shared_name(s), what, strerror(errnum));
}

int fl_shared_create(enum fl_shared_kind kind, struct fl_shared *ret, struct fl_err *err)
{
    struct fl_shared s = {.kind = kind, .fd = -1, .theirs = -1};
    int rv;

    s.fd = memfd_create(kind == FL_SHARED_WEIGHTS ? "fl-weights" : "fl-result",
                        MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (s.fd < 0) {
        return shared_error(&s, "memfd_create", errno, err);
    }
    if (kind == FL_SHARED_WEIGHTS) {
        char path[64];

        /*
         * Seals are set together with the size. Until then this prevents a program from mapping the
         * weights writable: such a mapping would survive the seals.
         */
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", s.fd);
        s.theirs = open(path, O_RDONLY | O_CLOEXEC);
        rv = s.theirs >= 0 ? FL_OK : shared_error(&s, path, errno, err);
        if (rv != FL_OK) {
            fl_shared_done(&s);
            return rv;
        }
    } else {
        s.theirs = s.fd;
    }
    *ret = s;
    return FL_OK;
}

void fl_shared_done(struct fl_shared *s)
{
    if (s->map != NULL) {
        (void)munmap(s->map, s->bytes);
    }
    if (s->theirs >= 0 && s->theirs != s->fd) {
        (void)close(s->theirs);
    }
    if (s->fd >= 0) {
        (void)close(s->fd);
    }
    *s = (struct fl_shared){.fd = -1, .theirs = -1};
}

int fl_shared_size(struct fl_shared *s, size_t bytes, size_t used, struct fl_err *err)
{
    int seals;
    int rv;

    FL_REQUIRE(s->bytes == 0 && bytes > 0 && used > 0 && used <= bytes);
    if (ftruncate(s->fd, (off_t)bytes) != 0) {
        return shared_error(s, "ftruncate", errno, err);
    }
    do {
        rv = posix_fallocate(s->fd, 0, (off_t)used);
    } while (rv == EINTR);
    if (rv != 0) {
        return shared_error(s, "posix_fallocate", rv, err);
    }
    if (s->kind == FL_SHARED_WEIGHTS) {
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd, 0);

        if (map == MAP_FAILED) {
            return shared_error(s, "mmap", errno, err);
        }
        s->map = map;
    }
    s->bytes = bytes;
    seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    seals |= s->kind == FL_SHARED_WEIGHTS ? F_SEAL_FUTURE_WRITE : 0;
    if (fcntl(s->fd, F_ADD_SEALS, seals) == 0) {
        return FL_OK;
    }
    return errno == EPERM
               ? fl_err_set(
                     err, FL_EPROTO,
                     "the program has sealed the shared memory (%s) itself, which is not allowed",
                     shared_name(s))
               : shared_error(s, "F_ADD_SEALS", errno, err);
}

int fl_shared_write(struct fl_shared *s, size_t offset, const void *data, size_t len,
                    struct fl_err *err)
{
    int rv;

    FL_REQUIRE(offset <= s->bytes && len <= s->bytes - offset);
    if (s->map != NULL) {
        (void)memcpy(s->map + offset, data, len);
        return FL_OK;
    }
    rv = fl_fs_pwrite(s->fd, data, len, offset);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "shared memory for the program (%s): %s", shared_name(s),
                          fl_strerror(rv));
    }
    return FL_OK;
}

int fl_shared_read(const struct fl_shared *s, size_t offset, void *data, size_t len,
                   struct fl_err *err)
{
    int rv;

    FL_REQUIRE(offset <= s->bytes && len <= s->bytes - offset);
    rv = fl_fs_pread(s->fd, data, len, offset);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "shared memory for the program (%s): %s", shared_name(s),
                          fl_strerror(rv));
    }
    return FL_OK;
}
