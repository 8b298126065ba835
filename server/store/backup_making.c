/* Opening and copying the files of a backup in progress. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "server/store/backup_impl.h"

int fl__making_folder(const char *path, struct fl_err *err)
{
    return mkdir(path, 0700) == 0 || errno == EEXIST
               ? FL_OK
               : fl__store_fail(err, "cannot create folder", path);
}

int fl__making_open(struct fl__making *m, const char *folder, const char *name, struct fl_err *err)
{
    char below[FL__BACKUP_NAME];
    char path[FL__STORE_PATH_MAX];
    struct fl__backup_file *f;
    int n = snprintf(below, sizeof(below), FL__BACKUP_STATE "/%s/%s", folder, name);
    int fd;
    int rv;

    if (n < 0 || (size_t)n >= sizeof(below)) {
        return fl_err_set(err, FL_ELIMIT, "name '%s' is too long", name);
    }
    rv = fl__store_join(path, m->b->dir, below + strlen(FL__BACKUP_STATE "/"), err);
    if (rv != FL_OK) {
        return rv;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? FL_OK
                               : fl__store_fail(err, "cannot open", path); /* Removed meanwhile. */
    }
    rv = fl__backup_add(&m->files, below, &f, err);
    if (rv != FL_OK) {
        (void)close(fd);
        return rv;
    }
    f->fd = fd;
    return FL_OK;
}

/* The folder of "state/models/x" may not exist in the target yet. */
int fl__making_place(const struct fl__making *m, const char *name, char path[FL__STORE_PATH_MAX],
                     struct fl_err *err)
{
    char *slash;
    int rv = fl__store_join(path, m->b->target, name, err);

    if (rv != FL_OK) {
        return rv;
    }
    slash = strrchr(path, '/');
    *slash = '\0';
    rv = fl__making_folder(path, err);
    *slash = '/';
    return rv;
}

int fl__making_copy(struct fl__making *m, struct fl__backup_file *f, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];
    uint64_t bytes = 0;
    int rv = fl__making_place(m, f->name, path, err);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__backup_copy(f->fd, f->name, path, 0600, f->sha256, &bytes, err);
    m->b->bytes += bytes;
done:
    (void)close(f->fd);
    f->fd = -1;
    return rv;
}

/* Hash a file that is in the target already and add it to the list. */
int fl__making_add(struct fl__making *m, const char *name, struct fl_err *err)
{
    struct fl__backup_file *f = NULL;
    char path[FL__STORE_PATH_MAX];
    uint64_t bytes = 0;
    int rv = fl__store_join(path, m->b->target, name, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__backup_add(&m->files, name, &f, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__backup_sum(path, f->sha256, &bytes, err);
    m->b->bytes += bytes;
    return rv;
}

int fl__making_forget(struct fl__making *m, size_t from, struct fl_err *err)
{
    char path[FL__STORE_PATH_MAX];

    while (m->files.n > from) {
        const struct fl__backup_file *f = &m->files.list[--m->files.n];
        int rv = fl__store_join(path, m->b->target, f->name, err);

        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_fs_remove(path);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "cannot remove '%s': %s", path, fl_strerror(rv));
        }
    }
    return FL_OK;
}
