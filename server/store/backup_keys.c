/* Copies the folder of keys and certificates into a backup. */

#include <stdio.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "server/store/backup_impl.h"

#define IDENTITY FL__BACKUP_IDENTITY
/* Retries after keys were renewed while being copied; never reached in practice. */
#define TRIES 1000

static const struct fl_db_kind any_db = {.what = "database"};

/* A database log or temporary file: databases are copied without them. */
static bool is_log(const char *name)
{
    return fl_str_ends_with(name, "-wal") || fl_str_ends_with(name, "-shm") ||
           fl_str_ends_with(name, "-journal") || fl_str_ends_with(name, ".tmp");
}

static int copy_identity(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    struct fl__making *m = ctx;
    char below[FL__BACKUP_NAME];
    char path[FL__STORE_PATH_MAX];
    char to[FL__STORE_PATH_MAX];
    struct fl_db db;
    struct stat st;
    size_t last = m->files.n;
    int n = snprintf(below, sizeof(below), FL__BACKUP_STATE "/" IDENTITY "/%s", name);
    int rv = fl__store_join(path, folder, name, err);

    if (rv != FL_OK || n < 0 || (size_t)n >= sizeof(below)) {
        return fl_err_set(err, FL_ELIMIT, "name '%s' is too long", name);
    }
    if (name[0] == '.' || is_log(name) || stat(path, &st) != 0 || !S_ISREG(st.st_mode)) {
        return FL_OK;
    }
    if (fl_str_ends_with(name, ".db")) {
        rv = fl__making_place(m, below, to, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_db_open_as_is(&db, &any_db, path, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_db_copy(&db, to, err);
        fl_db_close(&db);
        if (rv != FL_OK) {
            return rv;
        }
        return fl__making_add(m, below, err);
    }
    rv = fl__making_open(m, IDENTITY, name, err);
    if (rv != FL_OK) {
        return rv;
    }
    return m->files.n > last ? fl__making_copy(m, &m->files.list[last], err) : FL_OK;
}

/* Adds a file to a fingerprint of the folder, which changes when a file is replaced; files are
 * never modified in place. */
static int fingerprint_key_file(void *ctx, const char *folder, const char *name, struct fl_err *err)
{
    uint64_t *seen = ctx;
    char path[FL__STORE_PATH_MAX];
    struct stat st;
    int rv = fl__store_join(path, folder, name, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (name[0] != '.' && !is_log(name) && !fl_str_ends_with(name, ".db") && stat(path, &st) == 0) {
        *seen += ((uint64_t)st.st_ino * 1000003u) ^ (uint64_t)st.st_mtim.tv_sec * 31u ^
                 (uint64_t)st.st_mtim.tv_nsec ^ (uint64_t)st.st_size << 32;
    }
    return FL_OK;
}

/*
 * A certificate and its key are two files: when one was replaced meanwhile, all are copied again.
 */
int fl__backup_copy_keys(struct fl__making *m, struct fl_err *err)
{
    char folder[FL__STORE_PATH_MAX];
    unsigned i;
    int rv = fl__store_join(folder, m->b->dir, IDENTITY, err);

    if (rv != FL_OK || m->b->without_keys || !fl_fs_exists(folder)) {
        return rv;
    }
    for (i = 0; i < TRIES; i++) {
        uint64_t before = 0;
        uint64_t after = 0;
        size_t n = m->files.n;
        uint64_t bytes = m->b->bytes;

        rv = fl_fs_each(folder, fingerprint_key_file, &before, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_fs_each(folder, copy_identity, m, err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_fs_each(folder, fingerprint_key_file, &after, err);
        if (rv != FL_OK) {
            return rv;
        }
        if (before == after) {
            m->b->keys = true;
            return FL_OK;
        }
        rv = fl__making_forget(m, n, err);
        if (rv != FL_OK) {
            return rv;
        }
        m->b->bytes = bytes;
    }
    return fl_err_set(err, FL_EAGAIN, "'%s' changes all the time", folder);
}
