/*
 * The folder of an identity: access checks, its lock, and the atomic replacement of one identity by
 * another (steps in client_identity.h). Blocking, on the caller's thread. It does not check
 * certificates.
 */

#include "client/identity/folder_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/identity/client_identity.h"
#include "libfl/base/fs.h"

int fl__identity_path(char out[FL__PATH_MAX], const char *dir, const char *name, struct fl_err *err)
{
    return fl_fs_join(out, FL__PATH_MAX, dir, name) == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "path '%s' is too long", dir);
}

/* --- access checks --- */

int fl__folder_check(const char *dir, struct fl_err *err)
{
    struct stat st;

    if (stat(dir, &st) != 0) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot use folder '%s': %s", dir,
                          strerror(saved));
    }
    if (!S_ISDIR(st.st_mode)) {
        return fl_err_set(err, FL_EPERM, "'%s': expected the folder of an identity, found a file",
                          dir);
    }
    if (st.st_uid != geteuid() && st.st_uid != 0) {
        return fl_err_set(
            err, FL_EPERM,
            "'%s': expected a folder of this user (uid %ld), found one of uid %ld: its "
            "owner can change this identity; %s",
            dir, (long)geteuid(), (long)st.st_uid,
            geteuid() == 0 ? "run this as that user" : "chown it, or run this as that user");
    }
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return fl_err_set(err, FL_EPERM,
                          "'%s': expected mode 0700, found %04o: others can change this identity; "
                          "chmod 700 '%s'",
                          dir, (unsigned)(st.st_mode & 07777), dir);
    }
    return FL_OK;
}

int fl__folder_take(const char *dir, int *ret_lock, struct fl_err *err)
{
    char parent[FL__PATH_MAX];
    const char *slash = strrchr(dir, '/');
    int rv;

    if (slash != NULL && slash != dir && (size_t)(slash - dir) < sizeof(parent)) {
        (void)memcpy(parent, dir, (size_t)(slash - dir));
        parent[slash - dir] = '\0';
        rv = fl_fs_mkdirs(parent, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        int saved = errno;

        return fl_err_set(err, fl_err_from_errno(saved), "cannot create folder '%s': %s", dir,
                          strerror(saved));
    }
    rv = fl__folder_check(dir, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_lock_dir(dir, ret_lock, err);
}

/* --- replacing the identity --- */

/* Rename `from` to `to`; a missing `from` was renamed before. */
static int rename_file(const char *dir, const char *from, const char *to, struct fl_err *err)
{
    char a[FL__PATH_MAX];
    char b[FL__PATH_MAX];
    int rv = fl__identity_path(a, dir, from, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__identity_path(b, dir, to, err);
    if (rv != FL_OK) {
        return rv;
    }
    return fl_fs_exists(a) ? fl_fs_publish(a, b, /* sync= */ true, err) : FL_OK;
}

/* The steps after the commit. */
static int folder_finish_install(const char *dir, struct fl_err *err)
{
    int rv = rename_file(dir, FL__NEXT_ROOTS, FL__ROOTS, err);

    if (rv != FL_OK) {
        return rv;
    }
    return rename_file(dir, FL__NEXT_KEY, FL__KEY, err);
}

int fl__folder_install(const char *dir, const struct fl_chain *chain, const struct fl_chain *roots,
                       struct fl_err *err)
{
    char path[FL__PATH_MAX];
    int rv = fl__identity_path(path, dir, FL__NEXT_ROOTS, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_save(roots, path, /* sync= */ true, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__identity_path(path, dir, FL__CERTIFICATE, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_chain_save(chain, path, /* sync= */ true, err);
    if (rv != FL_OK) {
        return rv;
    }
    return folder_finish_install(dir, err);
}

int fl__folder_settle(const char *dir, struct fl_err *err)
{
    struct fl_chain *chain = NULL;
    struct fl_key *key = NULL;
    char path[FL__PATH_MAX];
    int rv = fl__identity_path(path, dir, FL__NEXT_KEY, err);

    if (rv != FL_OK || !fl_fs_exists(path)) {
        return rv;
    }
    /*
     * Unreadable files are reported when the identity is loaded, or made again by the next request.
     */
    if (fl_key_load(path, &key, NULL) == FL_OK &&
        fl__identity_path(path, dir, FL__CERTIFICATE, NULL) == FL_OK && fl_fs_exists(path) &&
        fl_chain_load(path, &chain, NULL) == FL_OK && fl_chain_fits(chain, key, NULL) == FL_OK)
    {
        rv = folder_finish_install(dir, err);
    }
    fl_chain_unref(chain);
    fl_key_unref(key);
    return rv;
}

int fl_client_identity_settle(const char *dir, struct fl_err *err)
{
    int lock = -1;
    int rv;

    if (!fl_fs_exists(dir)) {
        return FL_OK;
    }
    rv = fl__folder_take(dir, &lock, err);
    if (rv == FL_EINUSE) { /* The process that joins or renews now makes these steps itself. */
        return FL_OK;
    }
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__folder_settle(dir, err);
    (void)close(lock);
    return rv;
}
