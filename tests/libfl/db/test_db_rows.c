/* A table whose row is a list: what is written is read back, and what cannot be right is refused.
 */

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/db/db_row.h"
#include "tests/lib/folder.h"
#include "tests/lib/suites.h"

enum colour { RED = 1, GREEN, BLUE };

struct inner {
    uint32_t count;
};

struct thing {
    uint64_t id, bits;
    struct inner inner;
    int64_t at_ms;
    enum colour colour;
    bool ready;
    double share;
    const char *note;
    char name[8];
    uint8_t key[4];
    uint8_t serial[5];
    size_t serial_len;
    uint8_t parent[5];
    size_t parent_len;
    const void *data;
    size_t data_len;
    struct fl_buf labels;
};

#define THING_ROWS(X)                           \
    X(ID, id, id)                               \
    X(U64, bits, bits)                          \
    X(U32, n, inner.count, .max = 1000)         \
    X(I64, at_ms, at_ms)                        \
    X(ENUM, colour, colour, .min = 1, .max = 3) \
    X(BOOL, ready, ready)                       \
    X(F64, share, share)                        \
    X(TEXT, note, note, .max = 20)              \
    X(OPTIONAL_BUF, labels, labels, .max = 64)  \
    X(CHARS, name, name)                        \
    X(BYTES, key, key)                          \
    X(SHORT, serial, serial)                    \
    X(OPTIONAL_SHORT, parent, parent)           \
    X(DATA, data, data)

/* What a statement computes, and one number. */
struct count {
    uint64_t n;
    char name[8];
};

#define COUNT_ROWS(X) X(U64, n, n) X(CHARS, name, name)

FL_ROW_TYPE(thing, struct thing)
FL_ROW_TABLE(thing, struct thing, "thing", THING_ROWS)
FL_ROW_TYPE(count, struct count)
FL_ROW_TABLE(count, struct count, "thing", COUNT_ROWS)

enum { PUT, SET, GET, EACH, FEW_OF, COUNT, NUMBER };

static const char *const statements[] = {
    [PUT] = "INSERT INTO thing " FL_ROW_VALUES(THING_ROWS),
    [SET] = "UPDATE thing SET " FL_ROW_SET(THING_ROWS) " WHERE id = ?",
    [GET] = "SELECT " FL_ROW_SELECT(THING_ROWS) " FROM thing WHERE id = ?",
    [EACH] = "SELECT " FL_ROW_SELECT(THING_ROWS) " FROM thing ORDER BY id",
    [FEW_OF] = "SELECT name, id FROM thing WHERE name = :name AND id >= ? AND bits = :bits",
    [COUNT] = "SELECT max(name) AS name, count(*) AS n FROM thing",
    [NUMBER] = "SELECT bits FROM thing WHERE id = ?"};

static const struct fl_db_kind kind = {
    .what = "test database",
    .id = 0x74657374,
    .mode = 0600,
    .statements = statements,
    .n_statements = sizeof(statements) / sizeof(statements[0]),
    .schema = {"CREATE TABLE thing (" FL_ROW_CREATE(THING_ROWS) ") STRICT"}};

static char dir[FOLDER_PATH];
static char path[FOLDER_PATH + 16];
static struct fl_db db;

static void open_it(void)
{
    struct fl_err err = {0};

    ck_assert_msg(fl_db_open(&db, &kind, path, FL_DB_SYNC_NORMAL, &err) == FL_OK, "%s", err.msg);
}

static void setup(void)
{
    ck_assert(folder_make("db-rows", dir));
    (void)snprintf(path, sizeof(path), "%s/test.db", dir);
    open_it();
}

static void teardown(void)
{
    fl_db_close(&db);
    folder_remove(dir);
}

static struct thing sample(void)
{
    static uint8_t labels[] = {'a', 0, 'b', 0};

    return (struct thing){.bits = UINT64_MAX - 1,
                          .inner = {.count = 1000},
                          .at_ms = -5,
                          .colour = BLUE,
                          .ready = true,
                          .share = 0.25,
                          .note = "twenty bytes it has.",
                          .name = "seven77",
                          .key = {1, 2, 0, 4},
                          .serial = {9, 0, 7},
                          .serial_len = 3,
                          .parent = {3},
                          .parent_len = 1,
                          .data = "with\0nul",
                          .data_len = 8,
                          .labels = {.data = labels, .len = sizeof(labels)}};
}

static void put(const struct thing *thing)
{
    struct fl_err err = {0};

    ck_assert_msg(thing_put(&db, PUT, thing, &err) == FL_OK, "%s", err.msg);
}

static void execute(const char *sql)
{
    ck_assert_msg(sqlite3_exec(db.handle, sql, NULL, NULL, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(db.handle));
}

static void same(const struct thing *a, const struct thing *b)
{
    ck_assert_uint_eq(a->bits, b->bits);
    ck_assert_uint_eq(a->inner.count, b->inner.count);
    ck_assert_int_eq(a->at_ms, b->at_ms);
    ck_assert_int_eq((int)a->colour, (int)b->colour);
    ck_assert_int_eq(a->ready, b->ready);
    ck_assert(isnan(a->share) ? isnan(b->share) : a->share == b->share);
    ck_assert_str_eq(a->note, b->note);
    ck_assert_str_eq(a->name, b->name);
    ck_assert_mem_eq(a->key, b->key, sizeof(a->key));
    ck_assert_uint_eq(a->serial_len, b->serial_len);
    ck_assert_mem_eq(a->serial, b->serial, sizeof(a->serial));
    ck_assert_uint_eq(a->parent_len, b->parent_len);
    ck_assert_mem_eq(a->parent, b->parent, sizeof(a->parent));
    ck_assert_uint_eq(a->data_len, b->data_len);
    if (a->data_len > 0) {
        ck_assert_mem_eq(a->data, b->data, a->data_len);
    }
    ck_assert_uint_eq(a->labels.len, b->labels.len);
    if (a->labels.len > 0) {
        ck_assert_mem_eq(a->labels.data, b->labels.data, a->labels.len);
    }
}

/* Reads all rows. */
static int read_all(struct thing *last, size_t *ret_n, struct fl_err *err)
{
    struct fl_query q = fl_db_query(&db, EACH);
    struct thing got;
    int rv;

    *ret_n = 0;
    while ((rv = thing_next(&q, &got, err)) == FL_OK) {
        if (last != NULL) {
            same(last, &got);
        }
        ck_assert_uint_eq(got.id, ++*ret_n);
        thing_done(&got);
    }
    fl_query_reset(&q);
    return rv;
}

TEST_CASE("all", setup, teardown);

TEST(a_row_is_read_as_it_was_written)
{
    struct thing thing = sample();
    size_t n = 0;

    put(&thing);
    put(&thing);
    ck_assert_int_eq(read_all(&thing, &n, NULL), FL_ENOENT);
    ck_assert_uint_eq(n, 2);
    fl_db_close(&db);
    open_it();
    ck_assert_int_eq(read_all(&thing, &n, NULL), FL_ENOENT);
    ck_assert_uint_eq(n, 2);
}

TEST(no_bytes_and_no_number_are_null_where_a_row_may_be_without)
{
    struct thing thing = sample();
    struct fl_query q = fl_db_query(&db, NUMBER);
    uint64_t number = 0;
    size_t n = 0;

    thing.share = (double)NAN;
    thing.parent_len = 0;
    thing.parent[0] = 0;
    thing.data = NULL;
    thing.data_len = 0;
    thing.labels = (struct fl_buf){0};
    put(&thing);
    ck_assert_int_eq(read_all(&thing, &n, NULL), FL_ENOENT);
    ck_assert_uint_eq(n, 1);
    execute("DELETE FROM thing WHERE share IS NULL AND parent IS NULL AND labels IS NULL"
            " AND data = x''");
    ck_assert_uint_eq(fl_db_changes(&db), 1);
    fl_query_u64(&q, 1);
    ck_assert_int_eq(fl_query_number(&q, &number, NULL), FL_ENOENT);
}

TEST(an_update_sets_the_members_and_keeps_the_checksum)
{
    struct fl_query q = fl_db_query(&db, SET);
    struct thing thing = sample();
    size_t n = 0;

    put(&thing);
    thing.id = 1;
    thing.note = "other";
    thing.colour = RED;
    thing_bind(&q, &thing);
    fl_query_u64(&q, 1);
    ck_assert_int_eq(fl_query_run(&q, NULL), FL_OK);
    ck_assert_int_eq(read_all(&thing, &n, NULL), FL_ENOENT);
    ck_assert_uint_eq(n, 1);
    ck_assert_int_eq(fl_db_verify(&db, NULL), FL_OK);
}

TEST(columns_and_parameters_are_found_by_name_in_any_order)
{
    struct fl_query q = fl_db_query(&db, FEW_OF);
    struct thing thing = sample();
    struct thing got;
    struct count count;

    put(&thing);
    put(&thing);
    thing_bind(&q, &thing); /* around a parameter without a name */
    fl_query_u64(&q, 2);
    ck_assert_int_eq(thing_next(&q, &got, NULL), FL_OK);
    ck_assert_uint_eq(got.id, 2);
    ck_assert_str_eq(got.name, thing.name);
    ck_assert_uint_eq(got.bits, 0); /* a column that is not returned */
    ck_assert_int_eq(thing_next(&q, &got, NULL), FL_ENOENT);
    fl_query_reset(&q);
    q = fl_db_query(&db, COUNT);
    ck_assert_int_eq(count_one(&q, &count, NULL), FL_OK);
    ck_assert_uint_eq(count.n, 2);
    ck_assert_str_eq(count.name, thing.name);
}

TEST(one_reads_the_first_row_and_resets)
{
    struct fl_query q = fl_db_query(&db, COUNT);
    struct count count;
    struct fl_err err = {0};

    ck_assert_int_eq(count_one(&q, &count, &err), FL_EFORMAT); /* The greatest of no names. */
    ck_assert_ptr_nonnull(
        strstr(err.msg, "column 'name' of table 'thing' is NULL, expected a text"));
    execute("DROP TABLE thing"); /* It would be locked by a statement that is not reset. */
}

TEST(a_number_is_the_first_column_and_keeps_all_bits)
{
    struct fl_query q = fl_db_query(&db, NUMBER);
    struct thing thing = sample();
    uint64_t number = 0;

    put(&thing);
    fl_query_u64(&q, 1);
    ck_assert_int_eq(fl_query_number(&q, &number, NULL), FL_OK);
    ck_assert_uint_eq(number, UINT64_MAX - 1);
}

static const struct {
    const char *set, *words;
} bad[] = {
    {"n = 1001", "column 'n' of table 'thing' is 1001, expected 0 to 1000"},
    {"n = -1", "column 'n' of table 'thing' is -1, expected 0 to 1000"},
    {"colour = 0", "column 'colour' of table 'thing' is 0, expected 1 to 3"},
    {"colour = 4", "column 'colour' of table 'thing' is 4, expected 1 to 3"},
    {"ready = 2", "column 'ready' of table 'thing' is 2, expected 0 to 1"},
    {"note = 'this is one too many.'", "column 'note' of table 'thing' has 21 bytes, expected 0 to "
                                       "20"},
    {"note = 'a' || char(0) || 'b'", "column 'note' of table 'thing' has a zero byte"},
    {"name = 'eight888'", "column 'name' of table 'thing' has 8 bytes, expected 0 to 7"},
    {"key = x'010203'", "column 'key' of table 'thing' has 3 bytes, expected 4 to 4"},
    {"key = x'0102030405'", "column 'key' of table 'thing' has 5 bytes, expected 4 to 4"},
    {"serial = x''", "column 'serial' of table 'thing' has 0 bytes, expected 1 to 5"},
    {"serial = x'010203040506'", "column 'serial' of table 'thing' has 6 bytes, expected 1 to 5"},
    {"labels = zeroblob(65)", "column 'labels' of table 'thing' has 65 bytes, expected 0 to 64"},
};

TEST_EACH(a_value_out_of_range_is_refused_with_its_column, ARRAY_LEN(bad))
{
    struct thing thing = sample();
    struct fl_err err = {0};
    char sql[128];
    size_t n = 0;

    put(&thing);
    (void)snprintf(sql, sizeof(sql), "UPDATE thing SET %s", bad[_i].set);
    execute(sql);
    ck_assert_int_eq(read_all(NULL, &n, &err), FL_EFORMAT);
    ck_assert_uint_eq(n, 0);
    ck_assert_msg(strstr(err.msg, bad[_i].words) != NULL, "'%s' is not in '%s'", bad[_i].words,
                  err.msg);
    ck_assert_ptr_nonnull(strstr(err.msg, path));
}

TEST(a_bad_column_frees_what_was_read_before_it)
{
    struct thing thing = sample();
    struct fl_query q = fl_db_query(&db, EACH);
    struct thing got;

    put(&thing);
    put(&thing);
    execute("UPDATE thing SET name = 'eight888' WHERE id = 2");
    ck_assert_int_eq(thing_next(&q, &got, NULL), FL_OK);
    ck_assert_ptr_nonnull(got.labels.data);
    thing_done(&got);
    ck_assert_int_eq(thing_next(&q, &got, NULL), FL_EFORMAT);
    ck_assert_ptr_null(got.labels.data);
    fl_query_reset(&q);
}
