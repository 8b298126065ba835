/*
 * Reads rows of tables into records by the list of their columns (db_row.h), with checks of types,
 * ranges and lengths. Columns are found by name, of a query with many rows once. Runs on the thread
 * of the connection.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "libfl/db/db_impl.h"
#include "libfl/db/db_row.h"

#define NO_COLUMN UINT8_MAX

/* A column of a row that is read. */
struct cell {
    struct fl_query *q;
    const struct fl_db_row *row;
    const struct fl_db_column *c;
    int i; /* of the statement */
};

FL_PRINTF(3, 4)
static int cell_bad(const struct cell *cell, struct fl_err *err, const char *fmt, ...)
{
    char what[160];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return fl_err_set(err, FL_EFORMAT, "%s '%s' is damaged: column '%s' of table '%s' %s",
                      cell->q->db->kind->what, cell->q->db->path, cell->c->name, cell->row->table,
                      what);
}

static int cell_check_type(const struct cell *cell, int want, struct fl_err *err)
{
    static const char *const names[] = {[SQLITE_INTEGER] = "an integer",
                                        [SQLITE_FLOAT] = "a real number",
                                        [SQLITE_TEXT] = "a text",
                                        [SQLITE_BLOB] = "a blob",
                                        [SQLITE_NULL] = "NULL"};
    int type = sqlite3_column_type(cell->q->st, cell->i);

    if (type == want) {
        return FL_OK;
    }
    return cell_bad(cell, err, "is %s, expected %s", names[type], names[want]);
}

static int cell_number(const struct cell *cell, char *member, struct fl_err *err)
{
    static const struct {
        int64_t min, max;
    } all[] = {[FL_ROW_ID] = {1, INT64_MAX},
               [FL_ROW_SERIES] = {1, INT64_MAX},
               [FL_ROW_U64] = {INT64_MIN, INT64_MAX},
               [FL_ROW_U32] = {0, UINT32_MAX},
               [FL_ROW_I64] = {INT64_MIN, INT64_MAX},
               [FL_ROW_ENUM] = {0, INT32_MAX},
               [FL_ROW_BOOL] = {0, 1}};
    const struct fl_db_column *c = cell->c;
    bool limited = c->min != 0 || c->max != 0;
    int64_t min = limited ? c->min : all[c->kind].min;
    int64_t max = limited ? c->max : all[c->kind].max;
    int64_t number;
    uint32_t half;
    bool yes;
    int rv = cell_check_type(cell, SQLITE_INTEGER, err);

    if (rv != FL_OK) {
        return rv;
    }
    number = sqlite3_column_int64(cell->q->st, cell->i);
    if (number < min || number > max) {
        return cell_bad(cell, err, "is %lld, expected %lld to %lld", (long long)number,
                        (long long)min, (long long)max);
    }
    half = (uint32_t)number;
    yes = number != 0;
    (void)memcpy(member,
                 c->size == sizeof(yes)    ? (const void *)&yes
                 : c->size == sizeof(half) ? (const void *)&half
                                           : (const void *)&number,
                 c->size);
    return FL_OK;
}

static int cell_real(const struct cell *cell, char *member, struct fl_err *err)
{
    double real = (double)NAN;

    if (sqlite3_column_type(cell->q->st, cell->i) != SQLITE_NULL) {
        int rv = cell_check_type(cell, SQLITE_FLOAT, err);

        if (rv != FL_OK) {
            return rv;
        }
        real = sqlite3_column_double(cell->q->st, cell->i);
    }
    (void)memcpy(member, &real, sizeof(real));
    return FL_OK;
}

static int cell_check_length(const struct cell *cell, size_t len, struct fl_err *err)
{
    const struct fl_db_column *c = cell->c;
    size_t least = (size_t)c->min;
    size_t most = c->max != 0 ? (size_t)c->max : SIZE_MAX;

    if (c->kind == FL_ROW_BYTES) {
        least = c->size;
    } else if (c->kind == FL_ROW_SHORT && least == 0) {
        least = 1;
    }
    if (c->kind == FL_ROW_BYTES || c->kind == FL_ROW_SHORT) {
        most = most < c->size ? most : c->size;
    } else if (c->kind == FL_ROW_CHARS) {
        most = most < c->size ? most : c->size - 1;
    }
    if (len >= least && len <= most) {
        return FL_OK;
    }
    return cell_bad(cell, err, "has %zu bytes, expected %zu to %zu", len, least, most);
}

static int cell_text(const struct cell *cell, char *member, struct fl_err *err)
{
    const char *text;
    size_t len;
    int rv = cell_check_type(cell, SQLITE_TEXT, err);

    if (rv != FL_OK) {
        return rv;
    }
    text = (const char *)sqlite3_column_text(cell->q->st, cell->i);
    if (text == NULL) {
        return fl_db_error(cell->q->db, err);
    }
    len = (size_t)sqlite3_column_bytes(cell->q->st, cell->i);
    rv = cell_check_length(cell, len, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (memchr(text, '\0', len) != NULL) {
        return cell_bad(cell, err, "has a zero byte");
    }
    if (cell->c->kind == FL_ROW_TEXT) {
        (void)memcpy(member, &text, sizeof(text));
    } else {
        (void)memcpy(member, text, len + 1);
    }
    return FL_OK;
}

static int cell_bytes(const struct cell *cell, char *rec, struct fl_err *err)
{
    const struct fl_db_column *c = cell->c;
    char *member = rec + c->at;
    struct fl_buf buf;
    const void *data;
    size_t len;
    int rv;

    if (c->null && sqlite3_column_type(cell->q->st, cell->i) == SQLITE_NULL) {
        return FL_OK;
    }
    rv = cell_check_type(cell, SQLITE_BLOB, err);
    if (rv != FL_OK) {
        return rv;
    }
    data = sqlite3_column_blob(cell->q->st, cell->i);
    len = (size_t)sqlite3_column_bytes(cell->q->st, cell->i);
    if (data == NULL && len > 0) {
        return fl_db_error(cell->q->db, err);
    }
    rv = cell_check_length(cell, len, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (c->kind == FL_ROW_SHORT || c->kind == FL_ROW_DATA) {
        (void)memcpy(rec + c->len_at, &len, sizeof(len));
    }
    if (c->kind == FL_ROW_DATA) {
        (void)memcpy(member, &data, sizeof(data));
    } else if (c->kind != FL_ROW_BUF) {
        (void)memcpy(member, len > 0 ? data : "", len);
    } else {
        fl_buf_init(&buf, (size_t)c->max);
        if (len > 0 && fl_buf_add(&buf, data, len) != FL_OK) {
            return fl_err_set(err, FL_ENOMEM, "%s '%s': out of memory", cell->q->db->kind->what,
                              cell->q->db->path);
        }
        (void)memcpy(member, &buf, sizeof(buf));
    }
    return FL_OK;
}

static int cell_read(const struct cell *cell, char *rec, struct fl_err *err)
{
    switch (cell->c->kind) {
    case FL_ROW_F64:
        return cell_real(cell, rec + cell->c->at, err);
    case FL_ROW_TEXT:
    case FL_ROW_CHARS:
        return cell_text(cell, rec + cell->c->at, err);
    case FL_ROW_BYTES:
    case FL_ROW_SHORT:
    case FL_ROW_DATA:
    case FL_ROW_BUF:
        return cell_bytes(cell, rec, err);
    default:
        return cell_number(cell, rec + cell->c->at, err);
    }
}

/* Which column of the list each column of the statement is: the names are compared once a query. */
static int row_map(struct fl_query *q, const struct fl_db_row *row, struct fl_err *err)
{
    int n = sqlite3_column_count(q->st);
    size_t at = 0;
    int i;

    if (q->row == row) {
        return FL_OK;
    }
    FL_REQUIRE(n < FL_QUERY_COLUMNS);
    for (i = 0; i < n; i++) {
        const char *name = sqlite3_column_name(q->st, i);

        if (name == NULL) {
            return fl_err_set(err, FL_ENOMEM, "%s '%s': out of memory", q->db->kind->what,
                              q->db->path);
        }
        q->map[i] = NO_COLUMN;
        if (strcmp(name, "NULL") == 0) {
            continue; /* the end of FL_ROW_SELECT() */
        }
        at = fl__db_row_find(row, name, at);
        FL_REQUIRE(at < row->n);
        q->map[i] = (uint8_t)at++;
    }
    q->row = row;
    return FL_OK;
}

int fl_db_row_next(struct fl_query *q, const struct fl_db_row *row, void *rec, struct fl_err *err)
{
    int n = sqlite3_column_count(q->st);
    int i;
    int rv;

    (void)memset(rec, 0, row->size);
    rv = fl_query_next(q, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = row_map(q, row, err);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        struct cell cell = {.q = q, .row = row, .i = i};

        if (q->map[i] == NO_COLUMN) {
            continue;
        }
        cell.c = &row->columns[q->map[i]];
        rv = cell_read(&cell, rec, err);
        if (rv != FL_OK) {
            fl_db_row_done(row, rec);
            return rv;
        }
    }
    return FL_OK;
}

int fl_db_row_one(struct fl_query *q, const struct fl_db_row *row, void *rec, struct fl_err *err)
{
    int i;
    int rv = fl_db_row_next(q, row, rec, err);

    if (rv != FL_OK) {
        goto done;
    }
    for (i = 0; i < sqlite3_column_count(q->st); i++) {
        if (q->map[i] != NO_COLUMN) {
            enum fl_db_row_kind kind = row->columns[q->map[i]].kind;

            FL_REQUIRE(kind != FL_ROW_TEXT && kind != FL_ROW_DATA); /* borrowed until the reset */
        }
    }
done:
    fl_query_reset(q);
    return rv;
}
