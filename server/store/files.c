/* Files that are served: opened once, read from anywhere in them, closed by the last user. */

#include "server/store/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/files_p.h"

struct fl_file {
    atomic_uint refs;
    int fd;                /* -1: that of `whole` */
    struct fl_file *whole; /* counted; NULL when this is the whole file */
    uint64_t start;
    uint64_t size;
};

int fl_file_open(const char *path, struct fl_file **ret, struct fl_err *err)
{
    struct fl_file *f = calloc(1, sizeof(*f));
    struct stat st;

    if (f == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s", fl_strerror(FL_ENOMEM));
    }
    atomic_init(&f->refs, 1);
    f->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (f->fd < 0 || fstat(f->fd, &st) != 0) {
        int saved = errno;

        fl_file_unref(f);
        return fl_err_set(err, fl_err_from_errno(saved), "cannot open '%s': %s", path,
                          strerror(saved));
    }
    f->size = st.st_size > 0 ? (uint64_t)st.st_size : 0;
    *ret = f;
    return FL_OK;
}

struct fl_file *fl__file_part(struct fl_file *file, uint64_t start, uint64_t size)
{
    struct fl_file *f = calloc(1, sizeof(*f));

    FL_REQUIRE(file->whole == NULL && start <= file->size && size <= file->size - start);
    if (f == NULL) {
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->fd = -1;
    f->whole = fl_file_ref(file);
    f->start = start;
    f->size = size;
    return f;
}

struct fl_file *fl_file_ref(struct fl_file *file)
{
    (void)atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
    return file;
}

void fl_file_unref(struct fl_file *file)
{
    if (file == NULL || atomic_fetch_sub_explicit(&file->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    fl_file_unref(file->whole);
    free(file);
}

uint64_t fl_file_size(const struct fl_file *file)
{
    return file->size;
}

int fl__file_fd(const struct fl_file *file)
{
    return file->whole != NULL ? file->whole->fd : file->fd;
}

int fl_file_read(const struct fl_file *file, uint64_t offset, void *out, size_t len)
{
    if (offset > file->size || len > file->size - offset) {
        return FL_EFORMAT;
    }
    return fl_fs_pread(fl__file_fd(file), out, len, file->start + offset);
}
