#ifndef FL_DB_DB_H
#define FL_DB_DB_H

/*
 * SQLite with our types: opening with schema and migrations, checksums of rows, prepared
 * statements, transactions, and translated errors. The owner of a database defines its contents in
 * a constant struct fl_db_kind.
 *
 * Ownership: bound texts and blobs are borrowed until fl_query_run() or the reset of the query.
 * Errors of SQLite, of all functions that take a fl_err: FL_ENOSPC, FL_EIO, FL_EPERM (the disk, or
 * no write permission), FL_EINUSE (locked by another process), FL_EFORMAT (damaged), FL_ESTATE (a
 * constraint of the schema), FL_ENOMEM. The message names the file. Threading: one thread.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

#define FL_DB_SCHEMA_TEXTS 2

struct fl_db_kind {
    const char *what; /* for messages: "state database" */
    uint32_t id;   /* in the header of the file: distinguishes it from other programs' databases */
    unsigned mode; /* mode of the file when it is created */
    /* Statements, numbered from 0; the owner has an enum of names. */
    const char *const *statements;
    size_t n_statements;
    /*
     * The statements that create the tables of the current version. Tables with a column `sum
     * INTEGER` have checksums (row_checksums.c). The second text may be NULL.
     */
    const char *schema[FL_DB_SCHEMA_TEXTS];
    /*
     * Migrations of released databases: migration i leads from version i + 1 to i + 2, so the
     * current version is 1 + n_migrations. A release that changes `schema` appends one; a released
     * migration is never edited. Each runs in its own transaction together with its row in
     * `migration`, so a crash between two leaves the older schema intact. The newest row there is
     * the version; `PRAGMA user_version` is not used. A newer version is FL_EVERSION.
     */
    const char *const *migrations;
    size_t n_migrations;
};

enum fl_db_sync {
    FL_DB_SYNC_FULL,   /* every commit survives a power failure */
    FL_DB_SYNC_NORMAL, /* a commit survives a crash of the process; after a power failure only up to
                          the last fl_db_begin_durable() */
    FL_DB_SYNC_NEVER   /* no commit survives a power failure */
};

struct fl_db {
    sqlite3 *handle;
    const struct fl_db_kind *kind;
    char *path;
    enum fl_db_sync sync;
    bool durable_once;         /* the current transaction is synced */
    sqlite3_stmt **statements; /* the statements of the kind, BEGIN, COMMIT */
};

/* A statement whose rows are records has fewer columns than this. */
#define FL_QUERY_COLUMNS 128

struct fl_db_row;

/* One use of a prepared statement. Rows of tables are bound and read by name (db_row.h). */
struct fl_query {
    struct fl_db *db;
    sqlite3_stmt *st;
    int param; /* index of the last parameter that was bound in order */
    int rc;    /* first error of SQLite while binding */
    /* The list that columns were found in, and the place of each there (db_row_read.c). */
    const struct fl_db_row *row;
    uint8_t map[FL_QUERY_COLUMNS];
};

/*
 * Opens the database, creating or migrating it to the newest schema; keeps a reference to `kind`.
 * FL_EFORMAT: damaged, FL_EVERSION: of a newer program, FL_ESTATE: of another program.
 */
FL_MUST_CHECK int fl_db_open(struct fl_db *db, const struct fl_db_kind *kind, const char *path,
                             enum fl_db_sync sync, struct fl_err *err);
/*
 * Opens an existing database of any schema, for statements of the caller: creates, migrates and
 * changes nothing, and a WAL beside it is read and kept. The id of `kind` is only used by
 * fl_db_version().
 */
FL_MUST_CHECK int fl_db_open_as_is(struct fl_db *db, const struct fl_db_kind *kind,
                                   const char *path, struct fl_err *err);
/*
 * Returns the first row of `sql`, a text and a number, of a database that is opened without changes
 * for this query only. FL_ENOENT: no row; other errors as fl_db_open_as_is().
 */
FL_MUST_CHECK int fl_db_first_row(const struct fl_db_kind *kind, const char *path, const char *sql,
                                  char *text, size_t size, uint64_t *ret_number,
                                  struct fl_err *err);
/*
 * Checks the integrity of the database and the checksum of every row. FL_EFORMAT. For a database
 * opened as it is.
 */
FL_MUST_CHECK int fl_db_verify(struct fl_db *db, struct fl_err *err);
/*
 * The version of the schema; 0: the database is empty. FL_ESTATE: of another program; FL_EVERSION:
 * newer.
 */
FL_MUST_CHECK int fl_db_version(struct fl_db *db, uint64_t *ret, struct fl_err *err);
/*
 * Writes a snapshot of `db` (in its transaction if one is open) to `path`, replacing that file: one
 * synced file of mode 0600 that needs no WAL. Writers of the original are not blocked.
 */
FL_MUST_CHECK int fl_db_copy(struct fl_db *db, const char *path, struct fl_err *err);
/* Also accepts a half-opened or zeroed struct. */
void fl_db_close(struct fl_db *db);
/* The last error of the connection as an FL_E code; the message names the file. */
int fl_db_error(const struct fl_db *db, struct fl_err *err);
/* Number of rows changed by the last statement. */
size_t fl_db_changes(const struct fl_db *db);
/* Row id of the last insert. */
uint64_t fl_db_last_row(const struct fl_db *db);

struct fl_query fl_db_query(struct fl_db *db, size_t which);
/* The next parameter `?` of the statement; those with a name (:column) are passed over. */
void fl_query_u64(struct fl_query *q, uint64_t value);
void fl_query_text(struct fl_query *q, const char *text);
void fl_query_blob(struct fl_query *q, const void *data, size_t len); /* NULL allowed */

/* Run to the end, reset. */
FL_MUST_CHECK int fl_query_run(struct fl_query *q, struct fl_err *err);
/* The number that the first row consists of, then reset. FL_ENOENT: no row; NULL becomes 0. */
FL_MUST_CHECK int fl_query_number(struct fl_query *q, uint64_t *ret, struct fl_err *err);
/* Next row: FL_OK, or FL_ENOENT after the last one. Errors have a message. */
FL_MUST_CHECK int fl_query_next(struct fl_query *q, struct fl_err *err);
/* Text of the first column of the row, "" for NULL; valid until the next row or reset. */
const char *fl_query_string(struct fl_query *q);
/* Required after the last fl_query_next(), whatever it returned. */
void fl_query_reset(struct fl_query *q);

FL_MUST_CHECK int fl_db_begin(struct fl_db *db, struct fl_err *err);
/* The same for a transaction that survives a power failure, with all earlier ones. */
FL_MUST_CHECK int fl_db_begin_durable(struct fl_db *db, struct fl_err *err);
/* COMMIT when `rv` is FL_OK, else ROLLBACK; returns `rv` or the failure of COMMIT. */
FL_MUST_CHECK int fl_db_end(struct fl_db *db, int rv, struct fl_err *err);

#endif
