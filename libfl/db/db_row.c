/*
 * Writes and frees records by the list of their columns (db_row.h). Parameters are found by name.
 * Runs on the thread of the connection, and decides nothing about statements. Reading is in
 * db_row_read.c.
 */
#include "libfl/db/db_row.h"

#include <string.h>

#include "libfl/db/db_impl.h"

size_t fl__db_row_find(const struct fl_db_row *row, const char *name, size_t hint)
{
    size_t i;

    for (i = 0; i < row->n; i++) {
        size_t at = (hint + i) % row->n;

        if (strcmp(row->columns[at].name, name) == 0) {
            return at;
        }
    }
    return row->n;
}

static size_t row_length(const struct fl_db_column *c, const char *rec)
{
    size_t len = c->size;

    if (c->kind == FL_ROW_SHORT || c->kind == FL_ROW_DATA) {
        (void)memcpy(&len, rec + c->len_at, sizeof(len));
        FL_REQUIRE(c->kind != FL_ROW_SHORT || len <= c->size);
    }
    return len;
}

static int bind_bytes(struct fl_query *q, int param, const struct fl_db_column *c, const void *data,
                      size_t len)
{
    if (len == 0 && c->null) {
        return sqlite3_bind_null(q->st, param);
    }
    /* An empty value is no NULL, also when there is no memory. */
    return sqlite3_bind_blob64(q->st, param, len > 0 ? data : "", (sqlite3_uint64)len,
                               SQLITE_STATIC);
}

static int bind_number(struct fl_query *q, int param, const struct fl_db_column *c,
                       const char *member)
{
    sqlite3_int64 number = 0;
    uint32_t half = 0;
    int signed_half = 0;
    bool yes = false;

    switch (c->kind) {
    case FL_ROW_U32:
        (void)memcpy(&half, member, sizeof(half));
        number = half;
        break;
    case FL_ROW_ENUM:
        (void)memcpy(&signed_half, member, sizeof(signed_half));
        number = signed_half;
        break;
    case FL_ROW_BOOL:
        (void)memcpy(&yes, member, sizeof(yes));
        number = yes;
        break;
    default:
        (void)memcpy(&number, member, sizeof(number));
        break;
    }
    if (number == 0 && (c->kind == FL_ROW_ID || c->kind == FL_ROW_SERIES)) {
        return sqlite3_bind_null(q->st, param);
    }
    return sqlite3_bind_int64(q->st, param, number);
}

static int bind_column(struct fl_query *q, int param, const struct fl_db_column *c, const char *rec)
{
    const char *member = rec + c->at;
    const void *data = member;
    struct fl_buf buf;
    double real;

    switch (c->kind) {
    case FL_ROW_F64:
        (void)memcpy(&real, member, sizeof(real));
        return sqlite3_bind_double(q->st, param, real);
    case FL_ROW_TEXT:
        (void)memcpy(&data, member, sizeof(data));
        return sqlite3_bind_text(q->st, param, data, -1, SQLITE_STATIC);
    case FL_ROW_CHARS:
        return sqlite3_bind_text(q->st, param, member, -1, SQLITE_STATIC);
    case FL_ROW_DATA:
        (void)memcpy(&data, member, sizeof(data));
        return bind_bytes(q, param, c, data, row_length(c, rec));
    case FL_ROW_BYTES:
    case FL_ROW_SHORT:
        return bind_bytes(q, param, c, data, row_length(c, rec));
    case FL_ROW_BUF:
        (void)memcpy(&buf, member, sizeof(buf));
        return bind_bytes(q, param, c, buf.data, buf.len);
    default:
        return bind_number(q, param, c, member);
    }
}

void fl_db_row_bind(struct fl_query *q, const struct fl_db_row *row, const void *rec)
{
    int n = sqlite3_bind_parameter_count(q->st);
    size_t at = 0;
    int i;

    for (i = 1; i <= n && q->rc == SQLITE_OK; i++) {
        const char *name = sqlite3_bind_parameter_name(q->st, i);

        if (name != NULL && name[0] == ':') {
            at = fl__db_row_find(row, name + 1, at);
            FL_REQUIRE(at < row->n);
            q->rc = bind_column(q, i, &row->columns[at++], rec);
        }
    }
}

int fl_db_row_put(struct fl_db *db, size_t which, const struct fl_db_row *row, const void *rec,
                  struct fl_err *err)
{
    struct fl_query q = fl_db_query(db, which);

    fl_db_row_bind(&q, row, rec);
    return fl_query_run(&q, err);
}

void fl_db_row_done(const struct fl_db_row *row, void *rec)
{
    size_t i;

    for (i = 0; i < row->n; i++) {
        if (row->columns[i].kind == FL_ROW_BUF) {
            void *member = (char *)rec + row->columns[i].at;

            fl_buf_done(member);
        }
    }
}
