/*
 * Opens a database without changing it, and copies a database while other connections write to it.
 * One thread per connection.
 */

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/str.h"
#include "libfl/db/db_impl.h"

int fl_db_open_as_is(struct fl_db *db, const struct fl_db_kind *kind, const char *path,
                     struct fl_err *err)
{
    /* With read-only flags SQLite would not read the WAL that a killed process left. */
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int rv;

    *db = (struct fl_db){.kind = kind, .path = fl_str_dup(path)};
    if (db->path == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s '%s': out of memory", kind->what, path);
    }
    if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) {
        rv = fl_db_error(db, err);
        goto fail;
    }
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_busy_timeout(db->handle, FL__DB_BUSY_MS);
    /* Otherwise the last connection to close would checkpoint the WAL into the file. */
    if (sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) != SQLITE_OK ||
        sqlite3_exec(db->handle, "PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON", NULL,
                     NULL, NULL) != SQLITE_OK)
    {
        rv = fl_db_error(db, err);
        goto fail;
    }
    rv = fl__db_sums_prepare(db, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    fl_db_close(db);
    return rv;
}

int fl_db_first_row(const struct fl_db_kind *kind, const char *path, const char *sql, char *text,
                    size_t size, uint64_t *ret_number, struct fl_err *err)
{
    struct fl_db db;
    sqlite3_stmt *st = NULL;
    int rc = SQLITE_ERROR;
    int rv = fl_db_open_as_is(&db, kind, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (sqlite3_prepare_v2(db.handle, sql, -1, &st, NULL) == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc == SQLITE_ROW) {
        const char *found = (const char *)sqlite3_column_text(st, 0);

        *ret_number = (uint64_t)sqlite3_column_int64(st, 1);
        rv = found != NULL ? fl_str_copy(text, size, found) : FL_ENOMEM;
    } else {
        rv = rc == SQLITE_DONE ? FL_ENOENT : fl_db_error(&db, err);
    }
    (void)sqlite3_finalize(st);
    fl_db_close(&db);
    return rv;
}

int fl_db_verify(struct fl_db *db, struct fl_err *err)
{
    int rv = fl__db_integrity_check(db, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl__db_sums_check(db, err);
}

int fl_db_copy(struct fl_db *db, const char *path, struct fl_err *err)
{
    struct fl_db to = {.kind = db->kind};
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    sqlite3_backup *backup;
    int rc;
    int rv;

    if (fd < 0) {
        rv = fl_err_from_errno(errno);
        return fl_err_set(err, rv, "cannot create '%s': %s", path, strerror(errno));
    }
    rv = fl_db_open_as_is(&to, db->kind, path, err);
    if (rv != FL_OK) {
        goto done;
    }
    /* All pages in one step, so that the snapshot of `db` does not change in between. */
    backup = sqlite3_backup_init(to.handle, "main", db->handle, "main");
    if (backup == NULL) {
        rv = fl_db_error(&to, err);
        goto done;
    }
    do { /* Busy: another connection is checkpointing the original. */
        rc = sqlite3_backup_step(backup, -1);
        if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED) {
            (void)sqlite3_sleep(1);
        }
    } while (rc == SQLITE_BUSY || rc == SQLITE_LOCKED);
    rc = sqlite3_backup_finish(backup); /* says how the steps ended */
    rv = rc == SQLITE_OK ? FL_OK : fl_db_error(&to, err);
    if (rv != FL_OK) {
        goto done;
    }
    /* The copied header says WAL mode; the copy must not need a WAL. */
    if (sqlite3_exec(to.handle, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK) {
        rv = fl_db_error(&to, err);
        goto done;
    }
    fl_db_close(&to); /* before the sync: closing may write */
    if (fsync(fd) != 0) {
        rv = fl_err_from_errno(errno);
        (void)fl_err_set(err, rv, "cannot sync '%s': %s", path, strerror(errno));
    }
done:
    fl_db_close(&to);
    (void)close(fd);
    return rv;
}
