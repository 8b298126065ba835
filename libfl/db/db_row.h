#ifndef FL_DB_ROW_H
#define FL_DB_ROW_H

/*
 * The row of a table is a list X(KIND, column, member, limits…). The columns of CREATE TABLE,
 * SELECT, INSERT and UPDATE, reading a row into a record with checks, writing and freeing it follow
 * from the list. Statements and records meet by the names of the columns: no order has to be kept,
 * and a statement that returns few columns fills those members only.
 *
 *   ID       uint64_t: INTEGER PRIMARY KEY; 0 when it is written: the database chooses it
 *   SERIES   the same, and the number of a deleted row is never used again
 *   U64      uint64_t; all 64 bits, the upper half is negative in SQL
 *   U32      uint32_t
 *   I64      int64_t, for example a time
 *   ENUM     an enum, with `.min` and `.max`
 *   BOOL     bool
 *   F64      double; NULL is NaN
 *   TEXT     const char *, borrowed: read until the next row or reset
 *   CHARS    char[n]: at most n - 1 bytes
 *   BYTES    uint8_t[n]: exactly n bytes
 *   SHORT    uint8_t[n], size_t member_len: 1 to n bytes
 *   DATA     const void *, size_t member_len, borrowed as TEXT
 *   BUF      struct fl_buf, owned by a record that was read; `.max` bytes, required
 *   OPTIONAL_SHORT, OPTIONAL_DATA, OPTIONAL_BUF: no bytes are NULL
 *
 * Limits, `.min` and `.max` (inclusive; both 0: none): of a number, else of the length. A value
 * outside of them, of another type or a NULL is FL_EFORMAT, with table and column in the message.
 */

#include <stddef.h>

#include "libfl/base/buf.h"
#include "libfl/db/db.h"

enum fl_db_row_kind {
    FL_ROW_ID,
    FL_ROW_SERIES,
    FL_ROW_U64,
    FL_ROW_U32,
    FL_ROW_I64,
    FL_ROW_ENUM,
    FL_ROW_BOOL,
    FL_ROW_F64,
    FL_ROW_TEXT,
    FL_ROW_CHARS,
    FL_ROW_BYTES,
    FL_ROW_SHORT,
    FL_ROW_DATA,
    FL_ROW_BUF
};

struct fl_db_column {
    enum fl_db_row_kind kind;
    bool null; /* without bytes it is NULL */
    const char *name;
    size_t at, size; /* of the member */
    size_t len_at;   /* SHORT, DATA: of its length */
    int64_t min, max;
};

struct fl_db_row {
    const char *table;
    const struct fl_db_column *columns;
    size_t n, size; /* of columns, and of the record */
};

/* --- for records of any type: call the typed functions of FL_ROW_TYPE --- */

/*
 * Binds the members to the parameters `:column` of the statement; `?` are those of fl_query_u64()
 * and the like. Borrows from `rec` until fl_query_run() or the reset.
 */
void fl_db_row_bind(struct fl_query *q, const struct fl_db_row *row, const void *rec);
/*
 * The next row: FL_OK, or FL_ENOENT after the last one; `*rec` is overwritten, and owns nothing on
 * error. Every column that the statement returns must be in the list.
 */
FL_MUST_CHECK int fl_db_row_next(struct fl_query *q, const struct fl_db_row *row, void *rec,
                                 struct fl_err *err);
/* The first row, then the reset: of a statement without TEXT and DATA. FL_ENOENT: no row. */
FL_MUST_CHECK int fl_db_row_one(struct fl_query *q, const struct fl_db_row *row, void *rec,
                                struct fl_err *err);
/* Runs a statement with the members of `rec`. */
FL_MUST_CHECK int fl_db_row_put(struct fl_db *db, size_t which, const struct fl_db_row *row,
                                const void *rec, struct fl_err *err);
/* Frees what a record that was read owns. */
void fl_db_row_done(const struct fl_db_row *row, void *rec);

/*
 * FL_ROW_TYPE declares name_bind(), name_next(), name_one(), name_put() and name_done() for records
 * of `type`; FL_ROW_TABLE, in one source file, defines their table. `rows`: the list.
 */
#define FL_ROW_TYPE(name, type)                                                                    \
    const struct fl_db_row *name##_row(void);                                                      \
    static inline void name##_bind(struct fl_query *q, const type *rec)                            \
    {                                                                                              \
        fl_db_row_bind(q, name##_row(), rec);                                                      \
    }                                                                                              \
    FL_MUST_CHECK static inline int name##_next(struct fl_query *q, type *rec, struct fl_err *err) \
    {                                                                                              \
        return fl_db_row_next(q, name##_row(), rec, err);                                          \
    }                                                                                              \
    FL_MUST_CHECK static inline int name##_one(struct fl_query *q, type *rec, struct fl_err *err)  \
    {                                                                                              \
        return fl_db_row_one(q, name##_row(), rec, err);                                           \
    }                                                                                              \
    FL_MUST_CHECK static inline int name##_put(struct fl_db *db, size_t which, const type *rec,    \
                                               struct fl_err *err)                                 \
    {                                                                                              \
        return fl_db_row_put(db, which, name##_row(), rec, err);                                   \
    }                                                                                              \
    static inline void name##_done(type *rec)                                                      \
    {                                                                                              \
        fl_db_row_done(name##_row(), rec);                                                         \
    }

#define FL_ROW_TABLE(name, type, table_, rows)                                          \
    const struct fl_db_row *name##_row(void)                                            \
    {                                                                                   \
        typedef type S;                                                                 \
        static const struct fl_db_column columns[] = {rows(FL_ROW_MEMBER)};             \
        static const struct fl_db_row row = {                                           \
            .table = (table_),                                                          \
            .columns = columns,                                                         \
            .n = sizeof(columns) / sizeof(columns[0]),                                  \
            .size = sizeof(S),                                                          \
        };                                                                              \
        _Static_assert(sizeof(columns) / sizeof(columns[0]) < FL_QUERY_COLUMNS, "map"); \
        return &row;                                                                    \
    }

/* --- SQL --- */

/*
 * "a, b, NULL" for SELECT, "(a, b, sum) VALUES (:a, :b, NULL)" for INSERT, "a = :a, b = :b, sum =
 * NULL" for UPDATE: the sum is set by a trigger (row_checksums.c). A list ends with a comma.
 */
#define FL_ROW_SELECT(rows) rows(FL_ROW_NAME) "NULL"
#define FL_ROW_VALUES(rows) "(" rows(FL_ROW_NAME) "sum) VALUES (" rows(FL_ROW_PARAM) "NULL)"
#define FL_ROW_SET(rows)    rows(FL_ROW_ASSIGN) "sum = NULL"
/* The columns of CREATE TABLE; the constraints of the table follow. */
#define FL_ROW_CREATE(rows) rows(FL_ROW_DECLARE) "sum INTEGER"

#define FL_ROW_NAME(kind, column, ...)    #column ", "
#define FL_ROW_PARAM(kind, column, ...)   ":" #column ", "
#define FL_ROW_ASSIGN(kind, column, ...)  #column " = :" #column ", "
#define FL_ROW_DECLARE(kind, column, ...) #column FL__SQL_TYPE_##kind ", "

#define FL__SQL_TYPE_ID             " INTEGER PRIMARY KEY"
#define FL__SQL_TYPE_SERIES         " INTEGER PRIMARY KEY AUTOINCREMENT"
#define FL__SQL_TYPE_U64            " INTEGER NOT NULL"
#define FL__SQL_TYPE_U32            " INTEGER NOT NULL"
#define FL__SQL_TYPE_I64            " INTEGER NOT NULL"
#define FL__SQL_TYPE_ENUM           " INTEGER NOT NULL"
#define FL__SQL_TYPE_BOOL           " INTEGER NOT NULL"
#define FL__SQL_TYPE_F64            " REAL"
#define FL__SQL_TYPE_TEXT           " TEXT NOT NULL"
#define FL__SQL_TYPE_CHARS          " TEXT NOT NULL"
#define FL__SQL_TYPE_BYTES          " BLOB NOT NULL"
#define FL__SQL_TYPE_SHORT          " BLOB NOT NULL"
#define FL__SQL_TYPE_DATA           " BLOB NOT NULL"
#define FL__SQL_TYPE_BUF            " BLOB NOT NULL"
#define FL__SQL_TYPE_OPTIONAL_SHORT " BLOB"
#define FL__SQL_TYPE_OPTIONAL_DATA  " BLOB"
#define FL__SQL_TYPE_OPTIONAL_BUF   " BLOB"

/* --- members, in the struct S of FL_ROW_TABLE(); another type does not compile --- */

/* clang-format off */
#define FL_ROW_MEMBER(kind, column, ...) FL__ROW_MEMBER(kind, column, __VA_ARGS__, )
#define FL__ROW_MEMBER(kind, column, member, ...) \
    {FL__MEMBER_##kind(member) .name = #column, .at = offsetof(S, member), __VA_ARGS__},

#define FL__MEMBER(kind_, member, type)                                                         \
    .kind = (kind_),                                                                            \
    .size = sizeof(((S *)0)->member) + (size_t)_Generic(&((S *)0)->member, type: 0),
#define FL__MEMBER_LEN(member) \
    .len_at = offsetof(S, member##_len) + (size_t)_Generic(((S *)0)->member##_len, size_t: 0),
#define FL__ARRAY(type, member)  type(*)[sizeof(((S *)0)->member)]

#define FL__MEMBER_ID(m)     FL__MEMBER(FL_ROW_ID, m, uint64_t *)
#define FL__MEMBER_SERIES(m) FL__MEMBER(FL_ROW_SERIES, m, uint64_t *)
#define FL__MEMBER_U64(m)    FL__MEMBER(FL_ROW_U64, m, uint64_t *)
#define FL__MEMBER_U32(m)    FL__MEMBER(FL_ROW_U32, m, uint32_t *)
#define FL__MEMBER_I64(m)    FL__MEMBER(FL_ROW_I64, m, int64_t *)
/* The type of an enum is its own; its size is that of an int. */
#define FL__MEMBER_ENUM(m)   FL__MEMBER(FL_ROW_ENUM, m, default) \
    .len_at = 0 * sizeof(char[sizeof(((S *)0)->m) == sizeof(int) ? 1 : -1]),
#define FL__MEMBER_BOOL(m)   FL__MEMBER(FL_ROW_BOOL, m, bool *)
#define FL__MEMBER_F64(m)    FL__MEMBER(FL_ROW_F64, m, double *)
#define FL__MEMBER_TEXT(m)   FL__MEMBER(FL_ROW_TEXT, m, const char **)
#define FL__MEMBER_CHARS(m)  FL__MEMBER(FL_ROW_CHARS, m, FL__ARRAY(char, m))
#define FL__MEMBER_BYTES(m)  FL__MEMBER(FL_ROW_BYTES, m, FL__ARRAY(uint8_t, m))
#define FL__MEMBER_SHORT(m)  FL__MEMBER(FL_ROW_SHORT, m, FL__ARRAY(uint8_t, m)) FL__MEMBER_LEN(m)
#define FL__MEMBER_DATA(m)   FL__MEMBER(FL_ROW_DATA, m, const void **) FL__MEMBER_LEN(m)
#define FL__MEMBER_BUF(m)    FL__MEMBER(FL_ROW_BUF, m, struct fl_buf *)
#define FL__MEMBER_OPTIONAL_SHORT(m) FL__MEMBER_SHORT(m) .null = true,
#define FL__MEMBER_OPTIONAL_DATA(m)  FL__MEMBER_DATA(m) .null = true,
#define FL__MEMBER_OPTIONAL_BUF(m)   FL__MEMBER_BUF(m) .null = true,
/* clang-format on */

#endif
