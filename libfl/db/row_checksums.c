/*
 * Row checksums of a database. SQLite detects inconsistent pages and torn WAL frames, but returns a
 * value with a flipped bit as it is. So a table may have a column `sum`, the XXH3 of the other
 * columns, which triggers of this connection maintain: the statements do not mention it. All rows
 * are checked when the database is opened, before any other read. One thread per connection.
 * SQLite's own page checksums (cksumvfs) are not an alternative: the distributions' libraries lack
 * them, and they reject a file that another program has opened and checkpointed, as an inspection
 * with sqlite3 after a kill does.
 *
 * A row whose sum is NULL is accepted and gets a checksum: a migration changed its table, or an
 * operator wrote it by hand (docs/operating.md#the-database).
 */
#include <endian.h>
#include <string.h>

#include "libfl/base/checksum.h"
#include "libfl/db/db_impl.h"

/* fl_sum(value, …) */
static void sum_values(sqlite3_context *call, int n, sqlite3_value **values)
{
    struct fl_summer *summer = sqlite3_user_data(call);
    int i;

    fl_summer_reset(summer);
    for (i = 0; i < n; i++) {
        uint8_t type = (uint8_t)sqlite3_value_type(values[i]);
        const void *data = NULL;
        uint64_t word = 0;
        double real;

        /* The type is hashed too, so that 0, NULL, "" and 0.0 differ. */
        switch (type) {
        case SQLITE_INTEGER:
            word = (uint64_t)sqlite3_value_int64(values[i]);
            break;
        case SQLITE_FLOAT:
            real = sqlite3_value_double(values[i]);
            (void)memcpy(&word, &real, sizeof(word));
            break;
        case SQLITE_NULL:
            break;
        default:
            data = type == SQLITE_TEXT ? (const void *)sqlite3_value_text(values[i])
                                       : sqlite3_value_blob(values[i]);
            word = (uint64_t)sqlite3_value_bytes(values[i]);
            break;
        }
        fl_summer_add(summer, &type, sizeof(type));
        if (data != NULL) {
            fl_summer_add(summer, data, (size_t)word);
        }
        word = htole64(word); /* a folder may move to another host */
        fl_summer_add(summer, &word, sizeof(word));
    }
    sqlite3_result_int64(call, (sqlite3_int64)fl_summer_value(summer));
}

static void free_summer(void *summer)
{
    fl_summer_free(summer);
}

int fl__db_sums_prepare(struct fl_db *db, struct fl_err *err)
{
    struct fl_summer *summer = NULL;
    int rv = fl_summer_new(&summer);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s '%s': out of memory", db->kind->what, db->path);
    }
    /* SQLite frees the context also when this fails. */
    return sqlite3_create_function_v2(db->handle, "fl_sum", -1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, summer,
                                      sum_values, NULL, NULL, free_summer) == SQLITE_OK
               ? FL_OK
               : fl_db_error(db, err);
}

/* Calls `each` for every table with checksums: its name, and its other columns as "a", "b". */
static int for_tables(struct fl_db *db,
                      int (*each)(struct fl_db *, const char *, const char *, struct fl_err *),
                      struct fl_err *err)
{
    static const char sql[] =
        "SELECT t.name, (SELECT group_concat('\"' || name || '\"', ', ') FROM "
        "pragma_table_info(t.name)"
        " WHERE name <> 'sum') FROM sqlite_master AS t WHERE type = 'table' AND t.name NOT LIKE "
        "'sqlite_%'"
        " AND EXISTS (SELECT 1 FROM pragma_table_info(t.name) WHERE name = 'sum') ORDER BY t.name";
    sqlite3_stmt *st = NULL;
    int rv = FL_OK;

    if (sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL) != SQLITE_OK) {
        return fl_db_error(db, err);
    }
    for (;;) {
        int rc = sqlite3_step(st);

        if (rc != SQLITE_ROW) {
            rv = rc == SQLITE_DONE ? FL_OK : fl_db_error(db, err);
            break;
        }
        rv = each(db, (const char *)sqlite3_column_text(st, 0),
                  (const char *)sqlite3_column_text(st, 1), err);
        if (rv != FL_OK) {
            break;
        }
    }
    (void)sqlite3_finalize(st); /* repeats the error of the step */
    return rv;
}

static int check_table(struct fl_db *db, const char *table, const char *columns, struct fl_err *err)
{
    char *sql =
        sqlite3_mprintf("SELECT rowid FROM \"%w\" WHERE sum <> fl_sum(%s) LIMIT 1", table, columns);
    sqlite3_stmt *st = NULL;
    int rc = sql != NULL ? sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL) : SQLITE_NOMEM;
    int rv = FL_OK;

    sqlite3_free(sql);
    if (rc == SQLITE_OK) {
        rc = sqlite3_step(st);
    }
    if (rc == SQLITE_ROW) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "%s '%s' is damaged: row %lld of table '%s' is not what was written",
                        db->kind->what, db->path, sqlite3_column_int64(st, 0), table);
    } else if (rc != SQLITE_DONE) {
        rv = fl_db_error(db, err);
    }
    (void)sqlite3_finalize(st); /* repeats the error of the step */
    return rv;
}

/* Runs and frees `sql`, which sqlite3_mprintf() made. */
static int run_statement(struct fl_db *db, char *sql, struct fl_err *err)
{
    int rc = sql != NULL ? sqlite3_exec(db->handle, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

    sqlite3_free(sql);
    return rc == SQLITE_OK ? FL_OK : fl_db_error(db, err);
}

static int drop_sums(struct fl_db *db, const char *table, const char *columns, struct fl_err *err)
{
    (void)columns;
    return run_statement(
        db, sqlite3_mprintf("UPDATE \"%w\" SET sum = NULL WHERE sum IS NOT NULL", table), err);
}

static int keep_table(struct fl_db *db, const char *table, const char *columns, struct fl_err *err)
{
    /* An update of `sum` alone fires no trigger, so a trigger does not call itself. */
    return run_statement(
        db,
        sqlite3_mprintf(
            "UPDATE \"%w\" SET sum = fl_sum(%s) WHERE sum IS NULL;"
            "CREATE TEMP TRIGGER \"%w sum of new\" AFTER INSERT ON main.\"%w\" BEGIN"
            " UPDATE \"%w\" SET sum = fl_sum(%s) WHERE rowid = NEW.rowid; END;"
            "CREATE TEMP TRIGGER \"%w sum of changed\" AFTER UPDATE OF %s ON main.\"%w\" BEGIN"
            " UPDATE \"%w\" SET sum = fl_sum(%s) WHERE rowid = NEW.rowid; END;",
            table, columns, table, table, table, columns, table, columns, table, table, columns),
        err);
}

int fl__db_sums_check(struct fl_db *db, struct fl_err *err)
{
    return for_tables(db, check_table, err);
}

int fl__db_sums_drop(struct fl_db *db, struct fl_err *err)
{
    return for_tables(db, drop_sums, err);
}

int fl__db_sums_keep(struct fl_db *db, struct fl_err *err)
{
    return for_tables(db, keep_table, err);
}
