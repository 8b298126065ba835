#include "server/store/db.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libfl/base/str.h"

/* Somebody looks at the database with the sqlite3 tool: wait for him this long. */
#define BUSY_MS 5000

#define FL__DB_PATH_MAX 4200

static const char *const statement_sql[] = {
#define X(name, sql) [FL__DB_##name] = (sql),
    FL__DB_STATEMENTS(X)
#undef X
};

static int code_of(int rc)
{
    switch (rc & 0xFF) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return FL_OK;
    case SQLITE_NOMEM:
        return FL_ENOMEM;
    case SQLITE_FULL:
        return FL_ENOSPC;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return FL_EPERM;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return FL_EINUSE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return FL_EFORMAT;
    case SQLITE_CONSTRAINT:
        return FL_ESTATE;
    default:
        return FL_EIO;
    }
}

int fl__db_error(const struct fl__db *db, struct fl_err *err)
{
    int rc = db->handle != NULL ? sqlite3_extended_errcode(db->handle) : SQLITE_NOMEM;
    int code = code_of(rc);
    int os = 0;

    if (db->handle != NULL && ((rc & 0xFF) == SQLITE_CANTOPEN || (rc & 0xFF) == SQLITE_IOERR)) {
        os = sqlite3_system_errno(db->handle);
        code = os != 0 ? fl_err_from_errno(os) : code;
    }
    /* An error was reported, so "no error" here would only be a lost one. */
    return fl_err_set(err, code != FL_OK ? code : FL_EIO, "state database '%s': %s%s%s", db->path,
                      db->handle != NULL ? sqlite3_errmsg(db->handle) : sqlite3_errstr(rc),
                      os != 0 ? ": " : "", os != 0 ? strerror(os) : "");
}

/*
 * SQLite makes a file for everybody to read, and the others (-wal, -shm) like it: it is made
 * here first, and those of earlier versions lose what they gave to others.
 */
static void make_private(const char *path)
{
    static const char *const more[] = {"", "-wal", "-shm"};
    char name[FL__DB_PATH_MAX];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);
    size_t i;

    if (fd < 0) {
        return; /* SQLite says why. */
    }
    (void)close(fd);
    for (i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        struct stat st;
        int n = snprintf(name, sizeof(name), "%s%s", path, more[i]);

        if (n > 0 && (size_t)n < sizeof(name) && stat(name, &st) == 0 && (st.st_mode & 07) != 0) {
            (void)chmod(name, st.st_mode & 0770); /* Not ours: then it is not ours to say. */
        }
    }
}

/* "PRAGMA integrity_check(1)" answers "ok", or what is broken first; what an index says, too. */
static int check_integrity(struct fl__db *db, struct fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->handle, "PRAGMA integrity_check(1)", -1, &st, NULL);
    int rv = FL_OK;

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc != SQLITE_ROW) {
        rv = fl__db_error(db, err);
    } else if (strcmp((const char *)sqlite3_column_text(st, 0), "ok") != 0) {
        rv = fl_err_set(err, FL_EFORMAT, "state database '%s' is damaged: %s", db->path,
                        (const char *)sqlite3_column_text(st, 0));
    }
    (void)sqlite3_finalize(st); /* repeats the error of the step */
    return rv;
}

/* In WAL mode this syncs the log at a commit, and so all that was committed before. */
static int set_sync(struct fl__db *db, bool full)
{
    const char *sql = db->never_sync ? "PRAGMA synchronous = OFF"
                      : full         ? "PRAGMA synchronous = FULL"
                                     : "PRAGMA synchronous = NORMAL";

    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL);
}

/* FULL: a commit survives the machine; NORMAL: our own death. Neither can damage the database
   in WAL mode; nor can OFF by our own death, but by that of the machine. */
static int set_up(struct fl__db *db, struct fl_err *err)
{
    static const char pragmas[] = "PRAGMA journal_mode = WAL;"
                                  "PRAGMA foreign_keys = ON;"
                                  "PRAGMA trusted_schema = OFF;"
                                  "PRAGMA cell_size_check = ON;"
                                  "PRAGMA cache_size = -32768;" /* the records of 100 000 clients */
                                  "PRAGMA temp_store = MEMORY;";
    (void)sqlite3_extended_result_codes(db->handle, 1);
    (void)sqlite3_busy_timeout(db->handle, BUSY_MS);
    /* SQLite opens a file that it may not write for reading, silently. */
    if (sqlite3_db_readonly(db->handle, "main") == 1) {
        return fl_err_set(err, FL_EPERM, "state database '%s' is read-only", db->path);
    }
    if (sqlite3_exec(db->handle, pragmas, NULL, NULL, NULL) != SQLITE_OK ||
        set_sync(db, db->full_sync) != SQLITE_OK)
    {
        return fl__db_error(db, err);
    }
    return FL_OK;
}

static int prepare_all(struct fl__db *db, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < FL__DB_STATEMENT_COUNT; i++) {
        if (sqlite3_prepare_v3(db->handle, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                               &db->statements[i], NULL) != SQLITE_OK)
        {
            return fl__db_error(db, err);
        }
    }
    return FL_OK;
}

int fl__db_open(struct fl__db *db, const char *path, enum fl_durability durability,
                struct fl_err *err)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
    int rv;

    *db = (struct fl__db){.path = fl_str_dup(path)};
    if (db->path == NULL) {
        return fl_err_set(err, FL_ENOMEM, "state database '%s': out of memory", path);
    }
    db->full_sync = durability == FL_DURABLE_POWER;
    db->never_sync = durability == FL_DURABLE_SCRATCH;
    make_private(path);
    rv = sqlite3_open_v2(path, &db->handle, flags, NULL) == SQLITE_OK ? FL_OK
                                                                      : fl__db_error(db, err);
    if (rv == FL_OK) {
        rv = set_up(db, err);
    }
    if (rv == FL_OK) {
        rv = check_integrity(db, err);
    }
    if (rv == FL_OK) {
        rv = fl__db_sums_prepare(db, err);
    }
    if (rv == FL_OK) {
        rv = fl__db_sums_check(db, err);
    }
    if (rv == FL_OK) {
        rv = fl__schema_update(db, err);
    }
    if (rv == FL_OK) {
        rv = fl__db_sums_keep(db, err);
    }
    if (rv == FL_OK) {
        rv = prepare_all(db, err);
    }
    if (rv != FL_OK) {
        fl__db_close(db);
    }
    return rv;
}

void fl__db_close(struct fl__db *db)
{
    size_t i;

    for (i = 0; i < FL__DB_STATEMENT_COUNT; i++) {
        (void)sqlite3_finalize(db->statements[i]);
    }
    (void)sqlite3_close_v2(db->handle);
    free(db->path);
    *db = (struct fl__db){0};
}

struct fl__query fl__db_query(struct fl__db *db, enum fl__db_statement which)
{
    return (struct fl__query){.db = db, .st = db->statements[which], .rc = SQLITE_OK};
}

static void note(struct fl__query *q, int rc)
{
    if (q->rc == SQLITE_OK) {
        q->rc = rc;
    }
}

/* SQLite has signed integers only: the bits are kept, the upper half reads back right. */
void fl__query_u64(struct fl__query *q, uint64_t value)
{
    note(q, sqlite3_bind_int64(q->st, ++q->param, (sqlite3_int64)value));
}

void fl__query_f64(struct fl__query *q, double value)
{
    note(q, sqlite3_bind_double(q->st, ++q->param, value));
}

void fl__query_text(struct fl__query *q, const char *text)
{
    note(q, sqlite3_bind_text(q->st, ++q->param, text, -1, SQLITE_STATIC));
}

void fl__query_blob(struct fl__query *q, const void *data, size_t len)
{
    note(q, data == NULL
                ? sqlite3_bind_null(q->st, ++q->param)
                : sqlite3_bind_blob64(q->st, ++q->param, data, (sqlite3_uint64)len, SQLITE_STATIC));
}

int fl__query_next(struct fl__query *q, struct fl_err *err)
{
    int rc = q->rc == SQLITE_OK ? sqlite3_step(q->st) : q->rc;

    q->column = 0;
    if (rc == SQLITE_ROW) {
        return FL_OK;
    }
    return rc == SQLITE_DONE ? FL_ENOENT : fl__db_error(q->db, err);
}

void fl__query_reset(struct fl__query *q)
{
    (void)sqlite3_reset(q->st); /* repeats the error of the last step */
    (void)sqlite3_clear_bindings(q->st);
}

int fl__query_run(struct fl__query *q, struct fl_err *err)
{
    int rv = fl__query_next(q, err);

    fl__query_reset(q);
    return rv == FL_ENOENT ? FL_OK : rv;
}

uint64_t fl__column_u64(struct fl__query *q)
{
    return (uint64_t)sqlite3_column_int64(q->st, q->column++);
}

double fl__column_f64(struct fl__query *q)
{
    int column = q->column++;

    return sqlite3_column_type(q->st, column) == SQLITE_NULL ? (double)NAN
                                                             : sqlite3_column_double(q->st, column);
}

const char *fl__column_text(struct fl__query *q)
{
    const unsigned char *text = sqlite3_column_text(q->st, q->column++);

    return text != NULL ? (const char *)text : "";
}

const void *fl__column_blob(struct fl__query *q, size_t *ret_len)
{
    const void *data = sqlite3_column_blob(q->st, q->column);

    *ret_len = (size_t)sqlite3_column_bytes(q->st, q->column++);
    return data;
}

int fl__db_begin(struct fl__db *db, struct fl_err *err)
{
    struct fl__query q = fl__db_query(db, FL__DB_BEGIN);

    return fl__query_run(&q, err);
}

int fl__db_begin_durable(struct fl__db *db, struct fl_err *err)
{
    int rv;

    if (!db->full_sync && !db->never_sync) {
        if (set_sync(db, true) != SQLITE_OK) {
            return fl__db_error(db, err);
        }
        db->durable_once = true;
    }
    rv = fl__db_begin(db, err);
    return rv == FL_OK ? FL_OK : fl__db_end(db, rv, err);
}

int fl__db_end(struct fl__db *db, int rv, struct fl_err *err)
{
    if (rv == FL_OK) {
        struct fl__query q = fl__db_query(db, FL__DB_COMMIT);

        rv = fl__query_run(&q, err);
    }
    /* Some errors (a full disk) have rolled back by themselves. */
    if (rv != FL_OK && sqlite3_get_autocommit(db->handle) == 0) {
        /* The first error is the one that counts. */
        (void)sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
    }
    if (db->durable_once) {
        (void)set_sync(db, false); /* Where that fails, later commits are only slower. */
        db->durable_once = false;
    }
    return rv;
}
