/* A new database gets the current schema in one step, a released one by migrations. */
#include <inttypes.h>
#include <stdio.h>

#include "libfl/base/clock.h"
#include "libfl/db/db_impl.h"

/* Returns one number from a statement that runs before the others can be prepared. */
static int read_number(struct fl_db *db, const char *sql, uint64_t *ret, struct fl_err *err)
{
    sqlite3_stmt *st = NULL;
    int rc = sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL);

    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc == SQLITE_ROW) {
        *ret = (uint64_t)sqlite3_column_int64(st, 0);
    }
    (void)sqlite3_finalize(st); /* repeats the error of the step */
    return rc == SQLITE_ROW ? FL_OK : fl_db_error(db, err);
}

static int schema_execute(struct fl_db *db, const char *sql, struct fl_err *err)
{
    return sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK ? FL_OK
                                                                        : fl_db_error(db, err);
}

/* `first` creates the tables of all databases. */
static int apply_migration(struct fl_db *db, const char *const sql[FL_DB_SCHEMA_TEXTS],
                           uint64_t version, bool first, struct fl_err *err)
{
    char create[160] = "";
    char note[160];
    const char *const steps[] = {"BEGIN IMMEDIATE", create, sql[0], sql[1], note};
    size_t i;
    int rv;

    if (first) {
        (void)snprintf(create, sizeof(create),
                       "PRAGMA application_id = %" PRIu32 "; CREATE TABLE migration (version"
                       " INTEGER PRIMARY KEY, applied_ms INTEGER NOT NULL, sum INTEGER) STRICT",
                       db->kind->id);
    }
    (void)snprintf(note, sizeof(note),
                   "INSERT INTO migration (version, applied_ms) VALUES (%" PRIu64 ", %" PRIu64 ")",
                   version, fl_clock_wall_ms());
    for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        rv = steps[i] != NULL ? schema_execute(db, steps[i], err) : FL_OK;
        if (rv != FL_OK) {
            goto fail;
        }
    }
    rv = fl__db_sums_drop(db, err);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = schema_execute(db, "COMMIT", err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    if (sqlite3_get_autocommit(db->handle) == 0) {
        (void)schema_execute(db, "ROLLBACK", NULL); /* Report the first error. */
    }
    return rv;
}

static uint64_t newest_version(const struct fl_db *db)
{
    return 1 + db->kind->n_migrations;
}

int fl_db_version(struct fl_db *db, uint64_t *ret, struct fl_err *err)
{
    uint64_t newest = newest_version(db);
    uint64_t tables = 0;
    uint64_t id = 0;
    uint64_t version = 0;
    int rv = read_number(db, "SELECT COUNT(*) FROM sqlite_master", &tables, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = read_number(db, "PRAGMA application_id", &id, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (tables > 0 && id != db->kind->id) {
        return fl_err_set(err, FL_ESTATE, "'%s' is a database of another program", db->path);
    }
    if (tables > 0) {
        rv = read_number(db, "SELECT COALESCE(MAX(version), 0) FROM migration", &version, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (version > newest) {
        return fl_err_set(err, FL_EVERSION,
                          "'%s' has schema version %" PRIu64 ", this program knows up to %" PRIu64
                          ": use the newer program, or another state folder",
                          db->path, version, newest);
    }
    *ret = version;
    return FL_OK;
}

int fl__db_schema_update(struct fl_db *db, struct fl_err *err)
{
    uint64_t version = 0;
    int rv = fl_db_version(db, &version, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (version == 0) {
        return apply_migration(db, db->kind->schema, newest_version(db), true, err);
    }
    for (; version < newest_version(db); version++) {
        const char *const sql[FL_DB_SCHEMA_TEXTS] = {db->kind->migrations[version - 1]};

        rv = apply_migration(db, sql, version + 1, false, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return FL_OK;
}
