/*
 * A database in two versions of a program: the first creates it, the second migrates it. Both are
 * made up here, as no schema of a released version has changed yet.
 */

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "libfl/db/db.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

enum { PUT, GET };

static const char *const first_statements[] = {[PUT] = "INSERT INTO thing (id, name) VALUES (?, ?)",
                                               [GET] =
                                                   "SELECT name || ' 0' FROM thing WHERE id = ?"};
static const char *const second_statements[] = {
    [PUT] = "INSERT INTO thing (id, name, weight) VALUES (?, ?, 7)",
    [GET] = "SELECT name || ' ' || weight FROM thing WHERE id = ?"};
static const char *const steps[] = {
    "ALTER TABLE thing ADD COLUMN weight INTEGER NOT NULL DEFAULT 3;"};
static const char *const bad_steps[] = {
    "ALTER TABLE thing ADD COLUMN weight INTEGER NOT NULL DEFAULT 3; INSERT INTO missing (x)"
    " VALUES (1)"};

static const struct fl_db_kind first = {
    .what = "test database",
    .id = 0x74657374,
    .mode = 0600,
    .statements = first_statements,
    .n_statements = 2,
    .schema =
        {"CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER) STRICT"},
};

static struct fl_db_kind second; /* as `first`, one release later */
static char path[FOLDER_PATH + 16];
static char dir[FOLDER_PATH];

static void make_folder(void)
{
    ck_assert(folder_make("db", dir));
    (void)snprintf(path, sizeof(path), "%s/test.db", dir);
}

static void setup(void)
{
    make_folder();
    second = first;
    second.statements = second_statements;
    second.schema[0] =
        "CREATE TABLE thing (id INTEGER PRIMARY KEY, name TEXT NOT NULL, sum INTEGER,"
        " weight INTEGER NOT NULL DEFAULT 3) STRICT";
    second.migrations = steps;
    second.n_migrations = 1;
}

static void teardown(void)
{
    folder_remove(dir);
}

static struct fl_db opened(const struct fl_db_kind *kind)
{
    struct fl_db db;
    struct fl_err err = {0};

    ck_assert_msg(fl_db_open(&db, kind, path, FL_DB_SYNC_NORMAL, &err) == FL_OK, "%s", err.msg);
    return db;
}

static void refused(const struct fl_db_kind *kind, int code, const char *words)
{
    struct fl_db db;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_db_open(&db, kind, path, FL_DB_SYNC_NORMAL, &err), code);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' is not in '%s'", words, err.msg);
    ck_assert_ptr_nonnull(strstr(err.msg, path));
}

static void put(struct fl_db *db, uint64_t id, const char *name)
{
    struct fl_query q = fl_db_query(db, PUT);

    fl_query_u64(&q, id);
    fl_query_text(&q, name);
    ck_assert_int_eq(fl_query_run(&q, NULL), FL_OK);
}

static void has(struct fl_db *db, uint64_t id, const char *name, uint64_t weight)
{
    struct fl_query q = fl_db_query(db, GET);
    char want[64];

    (void)snprintf(want, sizeof(want), "%s %llu", name, (unsigned long long)weight);
    fl_query_u64(&q, id);
    ck_assert_int_eq(fl_query_next(&q, NULL), FL_OK);
    ck_assert_str_eq(fl_query_string(&q), want);
    fl_query_reset(&q);
}

static void is_version(struct fl_db *db, uint64_t want)
{
    uint64_t version = 0;

    ck_assert_int_eq(fl_db_version(db, &version, NULL), FL_OK);
    ck_assert_uint_eq(version, want);
}

/* What its tables have come to. */
static void columns_of(char *out, size_t size)
{
    static const char sql[] =
        "SELECT group_concat(t.name || '.' || c.name || ' ' || c.type || c.pk)"
        " FROM sqlite_master AS t, pragma_table_info(t.name) AS c";
    struct fl_db db;
    struct fl_err err = {0};
    sqlite3_stmt *st = NULL;

    ck_assert_int_eq(fl_db_open_as_is(&db, &second, path, &err), FL_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db.handle, sql, -1, &st, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    (void)snprintf(out, size, "%s", (const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    fl_db_close(&db);
}

TEST_CASE("all", setup, teardown);

TEST(a_new_database_has_the_newest_version_in_one_step)
{
    struct fl_db db = opened(&second);

    is_version(&db, 2);
    put(&db, 1, "new");
    has(&db, 1, "new", 7);
    fl_db_close(&db);
}

TEST(a_migration_keeps_rows_and_sums_and_ends_as_a_new_database)
{
    char migrated[512];
    char fresh[512];
    struct fl_db db = opened(&first);

    is_version(&db, 1);
    put(&db, 1, "old");
    fl_db_close(&db);
    db = opened(&second);
    is_version(&db, 2);
    has(&db, 1, "old", 3);
    ck_assert_int_eq(fl_db_verify(&db, NULL), FL_OK);
    fl_db_close(&db);
    columns_of(migrated, sizeof(migrated));
    db = opened(&second); /* It is not migrated twice. */
    put(&db, 2, "new");
    fl_db_close(&db);
    folder_remove(dir);
    make_folder();
    db = opened(&second);
    fl_db_close(&db);
    columns_of(fresh, sizeof(fresh));
    ck_assert_str_eq(migrated, fresh);
}

TEST(a_migration_that_fails_leaves_the_version_before_whole)
{
    struct fl_db db = opened(&first);

    put(&db, 1, "old");
    fl_db_close(&db);
    second.migrations = bad_steps;
    refused(&second, FL_EIO, "no such table");
    db = opened(&first);
    is_version(&db, 1);
    has(&db, 1, "old", 0);
    fl_db_close(&db);
}

TEST(a_newer_version_is_refused_and_not_changed)
{
    struct fl_db db = opened(&second);

    put(&db, 1, "new");
    fl_db_close(&db);
    refused(&first, FL_EVERSION, "has schema version 2, this program knows up to 1: use the newer");
    db = opened(&second);
    has(&db, 1, "new", 7);
    fl_db_close(&db);
}
