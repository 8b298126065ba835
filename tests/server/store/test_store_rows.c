/* What lies in the database is what was written: a checksum in every row. */

#include <check.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/suites.h"
#include "tests/server/store/store_fixture.h"

static void refused(const char *words)
{
    struct fl_store *s = NULL;
    struct fl_err err = {0};

    ck_assert_int_eq(fl_store_open(dir, "fed", layout, FL_DURABLE_PROCESS, &s, &err), FL_EFORMAT);
    ck_assert_ptr_null(s);
    ck_assert_msg(strstr(err.msg, words) != NULL, "'%s' is not in '%s'", words, err.msg);
    ck_assert_ptr_nonnull(strstr(err.msg, "federation.db"));
}

static void put_client(struct fl_store *s, const char *agent)
{
    struct fl_client_rec c = {.id = 1, .samples = 0x51525354, .score = 0.3, .scored = 1};

    (void)snprintf(c.name, sizeof(c.name), "edge-1");
    (void)snprintf(c.agent, sizeof(c.agent), "%s", agent);
    ck_assert_int_eq(fl_store_put_clients(s, &c, 1, NULL), FL_OK);
}

/* Flip one bit of the last byte of `what`, which stands once in the file. */
static void flip(const void *what, size_t len)
{
    char path[RIG_PATH_MAX];
    size_t size = (size_t)rig_size(rig_path(path, "federation.db"));
    unsigned char *data = malloc(size);
    size_t n_found = 0;
    size_t at = 0;
    size_t i;
    FILE *f = fopen(path, "r+b");

    ck_assert(data != NULL && f != NULL);
    ck_assert_uint_eq(fread(data, 1, size, f), size);
    for (i = 0; i + len <= size; i++) {
        if (memcmp(data + i, what, len) == 0) {
            n_found++;
            at = i + len - 1;
        }
    }
    ck_assert_uint_eq(n_found, 1);
    ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
    ck_assert_int_ne(fputc(data[at] ^ 1, f), EOF);
    ck_assert_int_eq(fclose(f), 0);
    free(data);
}

static char *one_text(const char *sql)
{
    char path[RIG_PATH_MAX];
    sqlite3 *db = NULL;
    sqlite3_stmt *st = NULL;
    char *text;

    ck_assert_int_eq(sqlite3_open(rig_path(path, "federation.db"), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_step(st), SQLITE_ROW);
    text = strdup((const char *)sqlite3_column_text(st, 0));
    (void)sqlite3_finalize(st);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    ck_assert_ptr_nonnull(text);
    return text;
}

/* From outside, as rig_sql(), but the sums stay. */
static void edit(const char *sql)
{
    char path[RIG_PATH_MAX];
    sqlite3 *db = NULL;

    ck_assert_int_eq(sqlite3_open(rig_path(path, "federation.db"), &db), SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

TEST_CASE("all", store_setup, store_teardown);

TEST(a_bit_that_flips_in_a_text_is_found_at_the_next_opening)
{
    struct fl_store *s = store_open();

    put_client(s, "a client of the test");
    fl_store_close(s);
    flip("of the test", 11);
    refused("is damaged: row 1 of table 'client' is not what was written");
}

TEST(a_bit_that_flips_in_a_number_is_found_at_the_next_opening)
{
    static const unsigned char samples[] = {0x51, 0x52, 0x53, 0x54};
    struct fl_store *s = store_open();

    put_client(s, "x");
    fl_store_close(s);
    flip(samples, sizeof(samples));
    refused("row 1 of table 'client'");
}

TEST(no_table_is_without_sums)
{
    char *without;

    fl_store_close(store_open());
    without = one_text("SELECT COALESCE(group_concat(name), 'none') FROM sqlite_master AS t"
                       " WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND NOT EXISTS"
                       " (SELECT 1 FROM pragma_table_info(t.name) WHERE name = 'sum')");
    ck_assert_str_eq(without, "none");
    free(without);
}

TEST(every_column_is_in_the_sum)
{
    struct fl_store *s = store_open();
    char *columns;
    char *rest = NULL;
    char *column;

    put_client(s, "x");
    fl_store_close(s);
    columns = one_text("SELECT group_concat(name) FROM pragma_table_info('client')"
                       " WHERE name <> 'sum'");
    for (column = strtok_r(columns, ",", &rest); column != NULL;
         column = strtok_r(NULL, ",", &rest)) {
        char sql[256];

        /* Of a column of bytes a number is no value. */
        (void)snprintf(sql, sizeof(sql),
                       strcmp(column, "offences") == 0
                           ? "UPDATE client SET %s = zeroblob(COALESCE(length(%s), 0) + 1)"
                           : "UPDATE client SET %s = COALESCE(%s, 0) + 1",
                       column, column);
        edit(sql);
        refused("table 'client'");
        edit("UPDATE client SET sum = NULL");
        fl_store_close(store_open());
    }
    free(columns);
}

TEST(a_row_is_summed_again_when_it_changes)
{
    struct fl_store *s = store_open();
    int i;

    for (i = 0; i < 3; i++) {
        put_client(s, i == 1 ? "first" : "then");
        fl_store_close(s);
        s = store_open();
    }
    fl_store_close(s);
    edit("UPDATE client SET score = 0.30000000000000004");
    refused("row 1 of table 'client'");
}

TEST(a_row_without_a_sum_is_taken_and_gets_one)
{
    struct fl_store *s = store_open();
    char *left;

    put_client(s, "x");
    fl_store_close(s);
    edit("UPDATE client SET samples = 7, sum = NULL");
    fl_store_close(store_open());
    left = one_text("SELECT samples || ' ' || (sum IS NULL) FROM client");
    ck_assert_str_eq(left, "7 0");
    free(left);
    edit("UPDATE client SET samples = 8");
    refused("row 1 of table 'client'");
}

TEST(null_zero_and_nothing_have_different_sums)
{
    static const char *const change[][2] = {
        {"UPDATE client SET agent = '', last_loss = NULL, sum = NULL",
         "UPDATE client SET last_loss = 0.0"},
        {"UPDATE client SET agent = 'ab', sum = NULL",
         "UPDATE client SET agent = 'a' || char(98, 0)"},
        {"UPDATE federation SET meaning = NULL, sum = NULL", "UPDATE federation SET meaning = x''"},
    };
    struct fl_store *s = store_open();
    size_t i;

    put_client(s, "x");
    fl_store_close(s);
    for (i = 0; i < sizeof(change) / sizeof(change[0]); i++) {
        edit(change[i][0]);
        fl_store_close(store_open());
        edit(change[i][1]);
        refused(i == 2 ? "table 'federation'" : "table 'client'");
        edit("UPDATE client SET sum = NULL");
        edit("UPDATE federation SET sum = NULL");
    }
}
