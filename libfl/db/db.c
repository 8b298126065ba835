/*
 * SQLite connections: opening, pragmas, permissions of the files, prepared statements,
 * transactions. One thread per connection. Schema and migrations are in schema.c, checksums
 * in row_checksums.c, copies in copy.c.
 */
#include "libfl/db/db.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/base/str.h"
#include "libfl/db/db_impl.h"

#define PATH_MAX_BYTES 4200

/* Indexes of the own statements, after those of the kind. */
enum { BEGIN, COMMIT, N_OWN };

static const char *const own_statements[] = {[BEGIN] = "BEGIN IMMEDIATE", [COMMIT] = "COMMIT"};

/*
 * SQLite would create a file that all users can read, and -wal and -shm with the same mode. So the
 * file is created here first with `mode`, and an existing file (a copy, for example) loses the
 * permissions of other users, and those of the group unless `mode` has some.
 */
static int make_private(const char *path, unsigned mode, const char *what, struct fl_err *err)
{
    static const char *const more[] = {"", "-wal", "-shm"};
    char name[PATH_MAX_BYTES];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, (mode_t)mode);
    unsigned most = (mode & 070) != 0 ? 0770 : 0700; /* possibly given on purpose */
    size_t i;

    if (fd < 0) {
        char text[80];

        (void)snprintf(text, sizeof(text), "write %s", what);
        return fl_fs_denied(err, errno, text, path);
    }
    (void)close(fd);
    for (i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        struct stat st;
        int n = snprintf(name, sizeof(name), "%s%s", path, more[i]);

        if (n > 0 && (size_t)n < sizeof(name) && stat(name, &st) == 0 &&
            (st.st_mode & 0777 & ~most) != 0) {
            (void)chmod(name, st.st_mode & most); /* Best effort: only the owner may do this. */
        }
    }
    return FL_OK;
}

/* "PRAGMA integrity_check(1)" returns "ok" or the first defect, including those of indexes. */
int fl__db_integrity_check(struct fl_db *db, struct fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->handle, "PRAGMA integrity_check(1)", -1, &st, NULL);
    int rv = FL_OK;

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc != SQLITE_ROW) {
        rv = fl_db_error(db, err);
    } else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0) {
        rv = fl_err_set(err, FL_EFORMAT, "%s '%s' is damaged: %s", db->kind->what, db->path,
                        (const char *)sqlite3_column_text(st, 0));
    }
    (void)sqlite3_finalize(st); /* repeats the error of the step */
    return rv;
}

/* In WAL mode FULL syncs the log at a commit, including all earlier commits. */
static int set_sync(struct fl_db *db, enum fl_db_sync sync)
{
    static const char *const sql[] = {[FL_DB_SYNC_FULL] = "PRAGMA synchronous = FULL",
                                      [FL_DB_SYNC_NORMAL] = "PRAGMA synchronous = NORMAL",
                                      [FL_DB_SYNC_NEVER] = "PRAGMA synchronous = OFF"};

    return sqlite3_exec(db->handle, sql[sync], NULL, NULL, NULL);
}

/*
 * FULL: a commit survives a power failure; NORMAL: a crash of the process. Neither mode can corrupt
 * the database in WAL mode. OFF: a crash of the process cannot corrupt it, a power failure can.
 */
static int set_up(struct fl_db *db, struct fl_err *err)
{
    static const char pragmas[] =
        "PRAGMA journal_mode = WAL;"
        "PRAGMA wal_autocheckpoint = 1000;"     /* pages: 4 MB */
        "PRAGMA journal_size_limit = 16777216;" /* of a log that was longer */
        "PRAGMA foreign_keys = ON;"
        "PRAGMA trusted_schema = OFF;"
        "PRAGMA cell_size_check = ON;"
        "PRAGMA cache_size = -32768;" /* enough for the records of 100 000 clients */
        "PRAGMA temp_store = MEMORY;";
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_busy_timeout(db->handle, FL__DB_BUSY_MS);
    /* SQLite silently opens a file without write permission as read-only. */
    if (sqlite3_db_readonly(db->handle, "main") == 1) {
        return fl_err_set(err, FL_EPERM, "%s '%s' is read-only", db->kind->what, db->path);
    }
    if (sqlite3_exec(db->handle, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
        set_sync(db, db->sync) != SQLITE_OK)
    {
        return fl_db_error(db, err);
    }
    return FL_OK;
}

static int prepare_all(struct fl_db *db, struct fl_err *err)
{
    size_t n = db->kind->n_statements;
    size_t i;

    db->statements = calloc(n + N_OWN, sizeof(sqlite3_stmt *));
    if (db->statements == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s '%s': out of memory", db->kind->what, db->path);
    }
    for (i = 0; i < n + N_OWN; i++) {
        const char *sql = i < n ? db->kind->statements[i] : own_statements[i - n];

        if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &db->statements[i],
                               NULL) != SQLITE_OK)
        {
            return fl_db_error(db, err);
        }
    }
    return FL_OK;
}

int fl_db_open(struct fl_db *db, const struct fl_db_kind *kind, const char *path,
               enum fl_db_sync sync, struct fl_err *err)
{
    static int (*const steps[])(struct fl_db *, struct fl_err *) = {set_up,
                                                                    fl__db_integrity_check,
                                                                    fl__db_sums_prepare,
                                                                    fl__db_sums_check,
                                                                    fl__db_schema_update,
                                                                    fl__db_sums_keep,
                                                                    prepare_all};
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    size_t i;
    int rv;

    *db = (struct fl_db){.kind = kind, .path = fl_str_dup(path), .sync = sync};
    if (db->path == NULL) {
        return fl_err_set(err, FL_ENOMEM, "%s '%s': out of memory", kind->what, path);
    }
    rv = make_private(path, kind->mode, kind->what, err);
    if (rv != FL_OK) {
        goto fail;
    }
    if (sqlite3_open_v2(path, &db->handle, flags, NULL) != SQLITE_OK) {
        rv = fl_db_error(db, err);
        goto fail;
    }
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        rv = steps[i](db, err);
        if (rv != FL_OK) {
            goto fail;
        }
    }
    return FL_OK;
fail:
    fl_db_close(db);
    return rv;
}

void fl_db_close(struct fl_db *db)
{
    size_t i;

    for (i = 0; db->statements != NULL && i < db->kind->n_statements + N_OWN; i++) {
        (void)sqlite3_finalize(db->statements[i]);
    }
    free(db->statements);
    (void)sqlite3_close_v2(db->handle);
    free(db->path);
    *db = (struct fl_db){0};
}

size_t fl_db_changes(const struct fl_db *db)
{
    return (size_t)sqlite3_changes(db->handle);
}

uint64_t fl_db_last_row(const struct fl_db *db)
{
    return (uint64_t)sqlite3_last_insert_rowid(db->handle);
}

struct fl_query fl_db_query(struct fl_db *db, size_t which)
{
    return (struct fl_query){.db = db, .st = db->statements[which], .rc = SQLITE_OK};
}

static void note_error(struct fl_query *q, int rc)
{
    if (q->rc == SQLITE_OK) {
        q->rc = rc;
    }
}

/* Parameters with a name are those of fl_db_row_bind(). */
static int query_param(struct fl_query *q)
{
    const char *name;

    do {
        name = sqlite3_bind_parameter_name(q->st, ++q->param);
    } while (name != NULL && name[0] == ':');
    return q->param;
}

/* SQLite has only signed integers: the bits are stored, and the upper half reads back correctly. */
void fl_query_u64(struct fl_query *q, uint64_t value)
{
    note_error(q, sqlite3_bind_int64(q->st, query_param(q), (sqlite3_int64)value));
}

void fl_query_text(struct fl_query *q, const char *text)
{
    note_error(q, sqlite3_bind_text(q->st, query_param(q), text, -1, SQLITE_STATIC));
}

void fl_query_blob(struct fl_query *q, const void *data, size_t len)
{
    int param = query_param(q);

    note_error(q, data == NULL ? sqlite3_bind_null(q->st, param)
                               : sqlite3_bind_blob64(q->st, param, data, (sqlite3_uint64)len,
                                                     SQLITE_STATIC));
}

int fl_query_next(struct fl_query *q, struct fl_err *err)
{
    int rc = q->rc == SQLITE_OK ? sqlite3_step(q->st) : q->rc;

    if (rc == SQLITE_ROW) {
        return FL_OK;
    }
    return rc == SQLITE_DONE ? FL_ENOENT : fl_db_error(q->db, err);
}

void fl_query_reset(struct fl_query *q)
{
    (void)sqlite3_reset(q->st); /* repeats the error of the last step */
    (void)sqlite3_clear_bindings(q->st);
}

int fl_query_run(struct fl_query *q, struct fl_err *err)
{
    int rv = fl_query_next(q, err);

    fl_query_reset(q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

int fl_query_number(struct fl_query *q, uint64_t *ret, struct fl_err *err)
{
    int rv = fl_query_next(q, err);

    *ret = 0;
    if (rv != FL_OK) {
        goto done;
    }
    *ret = (uint64_t)sqlite3_column_int64(q->st, 0);
done:
    fl_query_reset(q);
    return rv;
}

const char *fl_query_string(struct fl_query *q)
{
    const unsigned char *text = sqlite3_column_text(q->st, 0);

    return text != NULL ? (const char *)text : "";
}

int fl_db_begin(struct fl_db *db, struct fl_err *err)
{
    struct fl_query q = fl_db_query(db, db->kind->n_statements + BEGIN);

    return fl_query_run(&q, err);
}

int fl_db_begin_durable(struct fl_db *db, struct fl_err *err)
{
    int rv;

    if (db->sync == FL_DB_SYNC_NORMAL) {
        if (set_sync(db, FL_DB_SYNC_FULL) != SQLITE_OK) {
            return fl_db_error(db, err);
        }
        db->durable_once = true;
    }
    rv = fl_db_begin(db, err);
    if (rv != FL_OK) {
        return fl_db_end(db, rv, err);
    }
    return FL_OK;
}

int fl_db_end(struct fl_db *db, int rv, struct fl_err *err)
{
    struct fl_query q = fl_db_query(db, db->kind->n_statements + COMMIT);

    if (rv != FL_OK) {
        goto done;
    }
    rv = fl_query_run(&q, err);
done:
    /* An error leaves the transaction open; but some (disk full) roll back automatically. */
    if (sqlite3_get_autocommit(db->handle) == 0) {
        /* Report the first error. */
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    }
    if (db->durable_once) {
        (void)set_sync(db, db->sync); /* A failure here only makes later commits slower. */
        db->durable_once = false;
    }
    return rv;
}
