/*
 * Table files: comma-separated numbers below a header with their source and units, split by
 * libfl/base/csv_split.h; everything else is rejected. One thread, while the network and device
 * model is loaded.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/csv_split.h"
#include "libfl/base/log.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/world/world_impl.h"

#define QUOTED_MAX 64

struct reader {
    struct fl__table *table;
    struct fl_csv csv;
    size_t cap;      /* capacity in rows */
    bool has_header; /* all columns are known */
    struct fl_err *err;
};

FL_PRINTF(2, 3) static int refuse(const struct reader *r, const char *fmt, ...)
{
    char text[FL_ERR_BUF_SIZE];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return fl_err_set(r->err, FL_ECONF, "%s:%" PRIu64 ": %s", r->table->path, r->csv.line, text);
}

static char *table_trimmed(char *text)
{
    size_t len;

    text += strspn(text, " \t");
    len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t' || text[len - 1] == '\r')) {
        text[--len] = '\0';
    }
    return text;
}

/* Header lines "# source: …" and "# length: 7d"; all other lines with # are comments. */
static int table_on_comment(void *ctx, char *text, size_t len)
{
    struct reader *r = ctx;
    char *colon;
    const char *value;
    struct fl_err why = {0};

    (void)len; /* Of a long comment the beginning counts. */
    text = table_trimmed(text + strspn(text, "#"));
    colon = strchr(text, ':');
    if (colon == NULL) {
        return FL_OK;
    }
    *colon = '\0';
    value = table_trimmed(colon + 1);
    if (strcmp(table_trimmed(text), "source") == 0 && value[0] != '\0' && r->table->source == NULL)
    {
        r->table->source = fl_str_dup(value);
        return r->table->source != NULL ? FL_OK : FL_ENOMEM;
    }
    if (strcmp(text, "length") == 0) {
        if (fl__quantity(FL__TIME, value, &r->table->length, &why) != FL_OK) {
            return refuse(r, "length: %s", why.msg);
        }
        if (r->table->length <= 0) {
            return refuse(r, "length: a trace of length 0");
        }
    }
    return FL_OK;
}

/* "uplink [Mbit/s]" */
static int table_read_column(struct reader *r, char *text)
{
    struct fl__table *t = r->table;
    struct fl__column *c = &t->columns[t->n_columns];
    char *open = strchr(text, '[');
    size_t len = strlen(text);
    char quoted[QUOTED_MAX];
    const char *unit = NULL;

    (void)fl_log_quote(quoted, sizeof(quoted), text, len);
    if (open != NULL && len > 0 && text[len - 1] == ']') {
        text[len - 1] = '\0';
        *open = '\0';
        unit = table_trimmed(open + 1);
        text = table_trimmed(text);
    }
    *c = (struct fl__column){.kind = FL__NUMBER, .factor = 1};
    if (text[0] == '\0' || strpbrk(text, "[]\"") != NULL) {
        return refuse(r, "column %s: expected a name and its unit, as in uplink [Mbit/s]", quoted);
    }
    if (unit == NULL && strcmp(text, FL__NAME_OF_WHOM) != 0) {
        return refuse(r, "column %s has no unit: write it as in uplink [Mbit/s] or latency [ms]",
                      quoted);
    }
    if (unit != NULL && !fl__unit_find(unit, &c->kind, &c->factor)) {
        return refuse(r, "column %s: unknown unit; rates: %s; times: %s; sizes: %s; %%; samples/s",
                      quoted, fl__unit_list(FL__RATE), fl__unit_list(FL__TIME),
                      fl__unit_list(FL__SIZE));
    }
    if (c->kind == FL__RATE && strncmp(text, "uplink", 6) != 0 && strncmp(text, "downlink", 8) != 0)
    {
        return refuse(r,
                      "column %s: a rate has a direction: let its name begin with uplink or "
                      "downlink",
                      quoted);
    }
    if (fl__table_column(t, text) < t->n_columns) {
        return refuse(r, "column %s: duplicate name", quoted);
    }
    c->name = fl_str_dup(text);
    if (c->name == NULL) {
        return FL_ENOMEM;
    }
    t->n_columns++;
    return FL_OK;
}

static int table_grow(struct reader *r)
{
    struct fl__table *t = r->table;
    size_t cap = r->cap > 0 ? 2 * r->cap : 64;
    double *cells;
    uint32_t *lines;

    if (t->n_rows < r->cap) {
        return FL_OK;
    }
    cells = realloc(t->cells, cap * t->n_columns * sizeof(*cells));
    t->cells = cells != NULL ? cells : t->cells;
    lines = realloc(t->lines, cap * sizeof(*lines));
    t->lines = lines != NULL ? lines : t->lines;
    if (cells == NULL || lines == NULL) {
        return FL_ENOMEM;
    }
    r->cap = cap;
    return FL_OK;
}

static int table_read_cell(const struct reader *r, const struct fl__column *c, const char *text,
                           double *ret)
{
    char quoted[QUOTED_MAX];
    const char *why;

    (void)fl_log_quote(quoted, sizeof(quoted), text, strlen(text));
    if (!fl__number(text, ret)) {
        return refuse(r, "column '%s': expected a finite number, found %s", c->name, quoted);
    }
    *ret *= c->factor;
    why = fl__refuses(c->kind, *ret);
    if (why == NULL && c->kind == FL__NUMBER && (double)(uint64_t)*ret < *ret) {
        why = "is not a whole number";
    }
    return why == NULL ? FL_OK : refuse(r, "column '%s': %s %s", c->name, quoted, why);
}

/* A name of the header, or a value of a row. */
static int table_on_field(void *ctx, char *text, size_t len)
{
    struct reader *r = ctx;
    struct fl__table *t = r->table;
    size_t i = r->csv.col;
    int rv;

    if (len > FL_CSV_TEXT) {
        return refuse(r, "a field of more than %zu bytes", FL_CSV_TEXT);
    }
    if (!r->has_header) {
        if (i == 0 && t->source == NULL) {
            return refuse(r, "no source: add a line '# source: where the figures are from' above");
        }
        return i < FL__COLUMNS_MAX ? table_read_column(r, text)
                                   : refuse(r, "more than %d columns", FL__COLUMNS_MAX);
    }
    if (i == t->n_columns) {
        return refuse(r, "more values than the %zu columns", t->n_columns);
    }
    rv = table_grow(r);
    if (rv != FL_OK) {
        return rv;
    }
    return table_read_cell(r, &t->columns[i], text, &t->cells[t->n_rows * t->n_columns + i]);
}

static int table_on_row(void *ctx)
{
    struct reader *r = ctx;
    struct fl__table *t = r->table;

    if (!r->has_header) {
        r->has_header = true;
        return FL_OK;
    }
    if (r->csv.col < t->n_columns) {
        return refuse(r, "no value in column '%s'", t->columns[r->csv.col].name);
    }
    t->lines[t->n_rows++] = (uint32_t)r->csv.line;
    return FL_OK;
}

static int table_read(struct reader *r, const char *text, size_t len)
{
    int rv;

    if (len > 0 && memchr(text, '\0', len) != NULL) {
        return fl_err_set(r->err, FL_ECONF, "%s: not a text file: it contains a NUL byte",
                          r->table->path);
    }
    rv = fl_csv_feed(&r->csv, text, len);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_csv_end(&r->csv);
    if (rv != FL_OK) {
        return rv;
    }
    if (r->table->n_rows == 0) {
        r->csv.line--;
        return refuse(r, "no rows: a model without clients");
    }
    return FL_OK;
}

int fl__table_parse(const char *path, const void *data, size_t len, struct fl__table **ret,
                    struct fl_err *err)
{
    struct reader r = {.csv = {.field = table_on_field,
                               .row = table_on_row,
                               .comment = table_on_comment,
                               .ctx = &r,
                               .line = 1},
                       .err = err};
    int rv = FL_ENOMEM;

    r.table = calloc(1, sizeof(*r.table));
    if (r.table != NULL) {
        r.table->path = fl_str_dup(path);
        rv = r.table->path != NULL ? table_read(&r, data, len) : FL_ENOMEM;
    }
    if (rv != FL_OK) {
        fl__table_free(r.table);
        return rv == FL_ENOMEM ? fl_err_set(err, rv, "out of memory reading '%s'", path) : rv;
    }
    *ret = r.table;
    return FL_OK;
}

void fl__table_free(struct fl__table *table)
{
    size_t i;

    if (table == NULL) {
        return;
    }
    for (i = 0; i < table->n_columns; i++) {
        free(table->columns[i].name);
    }
    free(table->path);
    free(table->source);
    free(table->cells);
    free(table->lines);
    free(table);
}

size_t fl__table_column(const struct fl__table *table, const char *name)
{
    size_t i = 0;

    while (i < table->n_columns && strcmp(table->columns[i].name, name) != 0) {
        i++;
    }
    return i;
}
