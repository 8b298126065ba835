/* Checks whether a path can be used, without changing anything. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/owner.h"

int fl_fs_absolute(const char *path, char *out, size_t size, struct fl_err *err)
{
    char folder[PATH_MAX];
    int n;

    if (path[0] == '/') {
        n = snprintf(out, size, "%s", path);
    } else if (getcwd(folder, sizeof(folder)) == NULL) {
        return fl_err_set(err, fl_err_from_errno(errno), "the current folder: %s", strerror(errno));
    } else {
        n = snprintf(out, size, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, path);
    }
    return n >= 0 && (size_t)n < size
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "the path '%.100s…' is too long", path);
}

int fl_fs_denied(struct fl_err *err, int errnum, const char *what, const char *path)
{
    char owner[64];
    char own[64];
    struct stat st;

    if (errnum != EACCES || stat(path, &st) != 0 || st.st_uid == geteuid()) {
        return fl_err_set(err, fl_err_from_errno(errnum), "cannot %s '%s': %s", what, path,
                          strerror(errnum));
    }
    return fl_err_set(
        err, FL_EPERM,
        "cannot %s '%s': %s: it belongs to user '%s', and this program runs as '%s': run it as "
        "that user%s",
        what, path, strerror(errnum), fl_owner_name(st.st_uid, owner),
        fl_owner_name(geteuid(), own),
        geteuid() == 0 ? ""
                       : ", or, when no service of that user needs it, chown -R it to this one");
}

static int check_existing(const char *path, const char *what, struct fl_err *err)
{
    struct stat st;

    if (stat(path, &st) != 0) {
        return fl_err_set(err, fl_err_from_errno(errno), "cannot use folder '%s': %s", path,
                          strerror(errno));
    }
    if (!S_ISDIR(st.st_mode)) {
        return fl_err_set(err, FL_EEXIST, "'%s' is not a folder", path);
    }
    if (access(path, W_OK | X_OK) != 0) {
        char in[64];

        (void)snprintf(in, sizeof(in), "%s in folder", what);
        return fl_fs_denied(err, errno, in, path);
    }
    return FL_OK;
}

/* Replace `path` by its parent folder, in place; "." and "/" stay. */
static void go_up(char *path)
{
    size_t n = strlen(path);

    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    while (n > 0 && path[n - 1] != '/') {
        n--;
    }
    while (n > 1 && path[n - 1] == '/') {
        n--;
    }
    path[n] = '\0';
    if (n == 0) {
        (void)memcpy(path, ".", 2);
    }
}

int fl_fs_check_folder(const char *path, struct fl_err *err)
{
    char at[PATH_MAX];
    struct stat st;
    int rv;

    if (path[0] == '\0' || strlen(path) >= sizeof(at)) {
        return fl_err_set(err, FL_ELIMIT, "the path '%.100s' is empty or too long", path);
    }
    (void)memcpy(at, path, strlen(path) + 1);
    if (stat(at, &st) == 0) {
        return check_existing(at, "write", err);
    }
    while (stat(at, &st) != 0 && (errno == ENOENT || errno == ENOTDIR) && strcmp(at, "/") != 0 &&
           strcmp(at, ".") != 0)
    {
        go_up(at);
    }
    rv = check_existing(at, "create a folder", err);
    if (rv != FL_OK) {
        return fl_err_wrap(err, rv, "cannot make '%s'", path);
    }
    return FL_OK;
}

int fl_fs_check_place(const char *path, struct fl_err *err)
{
    char folder[PATH_MAX];

    if (strlen(path) >= sizeof(folder)) {
        return fl_err_set(err, FL_ELIMIT, "the path '%.100s…' is too long", path);
    }
    (void)memcpy(folder, path, strlen(path) + 1);
    go_up(folder);
    return check_existing(folder, "create a file", err);
}

int fl_fs_space(const char *path, struct fl_fs_room *ret)
{
    struct statvfs fs;

    if (statvfs(path, &fs) != 0) {
        return fl_err_from_errno(errno);
    }
    *ret = (struct fl_fs_room){.free = (uint64_t)fs.f_bavail * fs.f_frsize,
                               .size = (uint64_t)fs.f_blocks * fs.f_frsize};
    return FL_OK;
}
