/*
 * Files and folders: reading, atomic replacement, syncing, listing, removing, folder locks. Any
 * thread, blocking. Checks without changes are in fs_check.c.
 */

#include "libfl/base/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "libfl/base/clock.h"
#include "libfl/base/str.h"

#define FL_FS_PATH_MAX 4096
#define LOCK_WAIT_MS   10000
#define LOCK_NAP_MS    20

static _Thread_local atomic_uint_fast64_t *fs_since_ms; /* of this thread; NULL: not watched */

void fl_fs_watch(atomic_uint_fast64_t *since_ms)
{
    fs_since_ms = since_ms;
}

static void fs_io_begins(void)
{
    if (fs_since_ms != NULL) {
        atomic_store_explicit(fs_since_ms, fl_clock_ms(), memory_order_relaxed);
    }
}

static void fs_io_ended(void)
{
    if (fs_since_ms != NULL) {
        atomic_store_explicit(fs_since_ms, 0, memory_order_relaxed);
    }
}

static int fs_fsync(int fd)
{
    int rv;

    fs_io_begins();
    rv = fsync(fd);
    fs_io_ended();
    return rv;
}

int fl_fs_fdatasync(int fd)
{
    int rv;

    fs_io_begins();
    rv = fdatasync(fd);
    fs_io_ended();
    return rv;
}

static int fs_fail(struct fl_err *err, const char *what, const char *path)
{
    int saved = errno;

    return fl_err_set(err, fl_err_from_errno(saved), "%s '%s': %s", what, path, strerror(saved));
}

int fl_fs_join(char *out, size_t size, const char *a, const char *b)
{
    int n = snprintf(out, size, "%s/%s", a, b);

    return n >= 0 && (size_t)n < size ? FL_OK : FL_ELIMIT;
}

static int parent_of(const char *path, char *out, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash == NULL ? 1 : slash == path ? 1 : (size_t)(slash - path);

    if (len >= size) {
        return FL_ELIMIT;
    }
    (void)memcpy(out, slash == NULL ? "." : path, len);
    out[len] = '\0';
    return FL_OK;
}

/*
 * A new folder, with all that is synced in it, is durable only when its parent is synced. The sync
 * is skipped when the parent cannot be opened for reading or its file system cannot sync folders.
 */
static int fs_make_folder(const char *path, struct fl_err *err)
{
    char parent[FL_FS_PATH_MAX];
    int rv = FL_OK;
    int fd;

    if (mkdir(path, 0750) != 0) {
        return errno == EEXIST ? FL_OK : fs_fail(err, "cannot create folder", path);
    }
    fd = parent_of(path, parent, sizeof(parent)) == FL_OK
             ? open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
             : -1;
    if (fd >= 0) {
        rv = fs_fsync(fd) == 0 || errno == EINVAL ? FL_OK
                                                  : fs_fail(err, "cannot sync folder", parent);
        (void)close(fd);
    }
    return rv;
}

int fl_fs_mkdirs(const char *path, struct fl_err *err)
{
    char part[FL_FS_PATH_MAX];
    struct stat st;
    size_t i;
    int rv;

    if (strlen(path) >= sizeof(part)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    (void)memcpy(part, path, strlen(path) + 1);
    for (i = 1; part[i] != '\0'; i++) {
        if (part[i] == '/') {
            part[i] = '\0';
            rv = fs_make_folder(part, err);
            part[i] = '/';
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    rv = fs_make_folder(part, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (stat(part, &st) != 0) {
        return fs_fail(err, "cannot use folder", part);
    }
    if (!S_ISDIR(st.st_mode)) {
        return fl_err_set(err, FL_EEXIST, "'%s' is not a folder", part);
    }
    return FL_OK;
}

int fl_fs_read(const char *path, size_t max, struct fl_buf *ret_buf, struct fl_err *err)
{
    struct fl_buf buf;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int rv = FL_OK;

    if (fd < 0) {
        return fs_fail(err, "cannot open", path);
    }
    fl_buf_init(&buf, max < SIZE_MAX ? max + 1 : max);
    for (;;) {
        ssize_t n;

        if (buf.len > max) {
            rv = fl_err_set(err, FL_ELIMIT, "'%s' is longer than %zu bytes", path, max);
            break;
        }
        rv = fl_buf_reserve(&buf, buf.max - buf.len < 65536 ? buf.max - buf.len : 65536);
        if (rv != FL_OK) {
            (void)fl_err_set(err, rv, "cannot read '%s': %s", path, fl_strerror(rv));
            break;
        }
        n = read(fd, buf.data + buf.len, buf.cap - buf.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            rv = fs_fail(err, "cannot read", path);
            break;
        }
        if (n == 0) {
            break;
        }
        buf.len += (size_t)n;
    }
    (void)close(fd);
    if (rv != FL_OK) {
        fl_buf_done(&buf);
        return rv;
    }
    *ret_buf = buf;
    return FL_OK;
}

int fl_fs_pwrite(int fd, const void *data, size_t len, uint64_t offset)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n;

        fs_io_begins();
        n = pwrite(fd, p, len, (off_t)offset);
        fs_io_ended();
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fl_err_from_errno(errno);
        }
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return FL_OK;
}

int fl_fs_pread(int fd, void *data, size_t len, uint64_t offset)
{
    char *p = data;

    while (len > 0) {
        ssize_t n;

        fs_io_begins();
        n = pread(fd, p, len, (off_t)offset);
        fs_io_ended();
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fl_err_from_errno(errno);
        }
        if (n == 0) {
            return FL_EFORMAT;
        }
        p += n;
        len -= (size_t)n;
        offset += (uint64_t)n;
    }
    return FL_OK;
}

int fl_fs_sync_dir(const char *path, struct fl_err *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rv = FL_OK;

    if (fd < 0) {
        return fs_fail(err, "cannot open folder", path);
    }
    if (fs_fsync(fd) != 0) {
        rv = fs_fail(err, "cannot sync folder", path);
    }
    (void)close(fd);
    return rv;
}

int fl_fs_publish(const char *tmp, const char *path, bool sync, struct fl_err *err)
{
    char parent[FL_FS_PATH_MAX];

    if (rename(tmp, path) != 0) {
        return fs_fail(err, "cannot rename to", path);
    }
    if (!sync) {
        return FL_OK;
    }
    if (parent_of(path, parent, sizeof(parent)) != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    return fl_fs_sync_dir(parent, err);
}

static int fs_write_runs(int fd, const char *tmp, const struct fl_fs_run *runs, size_t n, bool sync,
                         struct fl_err *err)
{
    uint64_t offset = 0;
    size_t i;
    int rv;

    for (i = 0; i < n; i++) {
        rv = fl_fs_pwrite(fd, runs[i].data, runs[i].len, offset);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "cannot write '%s': %s", tmp, fl_strerror(rv));
        }
        offset += runs[i].len;
    }
    return sync && fs_fsync(fd) != 0 ? fs_fail(err, "cannot sync", tmp) : FL_OK;
}

int fl_fs_replace_runs(const char *path, const struct fl_fs_run *runs, size_t n, bool sync,
                       struct fl_err *err)
{
    char tmp[FL_FS_PATH_MAX];
    int len = snprintf(tmp, sizeof(tmp), "%s.tmp", path);
    int fd;
    int rv;

    if (len < 0 || (size_t)len >= sizeof(tmp)) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", path);
    }
    fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0) {
        return fs_fail(err, "cannot create", tmp);
    }
    rv = fs_write_runs(fd, tmp, runs, n, sync, err);
    if (close(fd) != 0 && rv == FL_OK) {
        rv = fs_fail(err, "cannot close", tmp);
    }
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_fs_publish(tmp, path, sync, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    (void)unlink(tmp);
    return rv;
}

int fl_fs_replace(const char *path, const void *data, size_t len, bool sync, struct fl_err *err)
{
    const struct fl_fs_run run = {data, len};

    return fl_fs_replace_runs(path, &run, 1, sync, err);
}

int fl_fs_remove(const char *path)
{
    return unlink(path) == 0 || errno == ENOENT ? FL_OK : fl_err_from_errno(errno);
}

static int fs_remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

int fl_fs_remove_tree(const char *path, struct fl_err *err)
{
    if (nftw(path, fs_remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 || errno == ENOENT) {
        return FL_OK;
    }
    return fs_fail(err, "cannot remove", path);
}

bool fl_fs_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

int fl_fs_each(const char *folder, fl_fs_each_cb *cb, void *ctx, struct fl_err *err)
{
    struct dirent *entry;
    DIR *d = opendir(folder);
    int rv = FL_OK;

    if (d == NULL) {
        return errno == ENOENT ? FL_OK : fs_fail(err, "cannot open folder", folder);
    }
    while ((entry = readdir(d)) != NULL) {
        rv = cb(ctx, folder, entry->d_name, err);
        if (rv != FL_OK) {
            goto done;
        }
    }
done:
    (void)closedir(d);
    return rv;
}

struct removal {
    fl_fs_goes_cb *goes;
    const void *ctx;
    int first;
};

static int remove_one(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct removal *r = ctx;
    char path[FL_FS_PATH_MAX];
    int rv;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || !r->goes(r->ctx, name)) {
        return FL_OK;
    }
    rv = fl_fs_join(path, sizeof(path), folder, name);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl_fs_remove(path);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    if (r->first == FL_OK) {
        r->first =
            fl_err_set(err, rv, "cannot remove '%s' in '%s': %s", name, folder, fl_strerror(rv));
    }
    return FL_OK;
}

int fl_fs_remove_each(const char *folder, fl_fs_goes_cb *goes, const void *ctx, struct fl_err *err)
{
    struct removal r = {.goes = goes, .ctx = ctx, .first = FL_OK};
    int rv = fl_fs_each(folder, remove_one, &r, err);

    if (rv != FL_OK) {
        return rv;
    }
    return r.first;
}

int fl_fs_lock_dir(const char *dir, int *ret_fd, struct fl_err *err)
{
    char path[FL_FS_PATH_MAX];
    char text[32] = "";
    int fd;
    int n;

    if (fl_fs_join(path, sizeof(path), dir, ".lock") != FL_OK) {
        return fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
    }
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    if (fd < 0) {
        int saved = errno;

        return fl_fs_exists(path) ? fl_fs_denied(err, saved, "open lock file", path)
                                  : fl_fs_denied(err, saved, "make a lock file in folder", dir);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        ssize_t got = pread(fd, text, sizeof(text) - 1, 0);

        text[got > 0 ? (size_t)got : 0] = '\0';
        (void)close(fd);
        return fl_err_set(err, FL_EINUSE,
                          "folder '%s' is in use by process %s: stop that one first (systemctl "
                          "status %s says what it is), or use another folder",
                          dir, text[0] != '\0' ? text : "(unknown)", text);
    }
    n = snprintf(text, sizeof(text), "%ld", (long)getpid());
    if (ftruncate(fd, 0) != 0 || fl_fs_pwrite(fd, text, (size_t)n, 0) != FL_OK) {
        int rv = fs_fail(err, "cannot write lock file", path);

        (void)close(fd);
        return rv;
    }
    *ret_fd = fd;
    return FL_OK;
}

long fl_fs_lock_holder(const char *dir)
{
    char path[FL_FS_PATH_MAX];
    char text[32] = "";
    uint64_t pid = 0;
    bool held;
    int fd;

    if (fl_fs_join(path, sizeof(path), dir, ".lock") != FL_OK) {
        return 0;
    }
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    held = flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!held || pread(fd, text, sizeof(text) - 1, 0) <= 0 || fl_str_to_u64(text, &pid) != FL_OK) {
        pid = 0;
    }
    (void)close(fd);
    return (long)pid;
}

int fl_fs_lock_dir_wait(const char *dir, int *ret_fd, struct fl_err *err)
{
    const struct timespec nap = {.tv_nsec = LOCK_NAP_MS * 1000000L};
    int rv = fl_fs_lock_dir(dir, ret_fd, err);
    int i;

    for (i = 0; rv == FL_EINUSE && i < LOCK_WAIT_MS / LOCK_NAP_MS; i++) {
        (void)nanosleep(&nap, NULL);
        rv = fl_fs_lock_dir(dir, ret_fd, err);
    }
    return rv;
}
