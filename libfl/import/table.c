/*
 * A table as CSV with texts, categories, missing values or values to be predicted (import.h). Runs
 * on the caller's thread; reads the file once, in pieces.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/grow.h"
#include "libfl/base/str.h"
#include "libfl/import/table_impl.h"

#define READ_AHEAD ((size_t)1 << 16)

static int table_no_memory(struct fl__csv_table *t)
{
    return fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory for its values", t->src->name);
}

static int table_push(struct fl__csv_table *t, float value)
{
    if (t->n_cells == t->cap_cells && t->cap_cells > FL_DATA_MAX_BYTES / sizeof(float) / 2) {
        return fl_err_set(t->err, FL_ELIMIT, "'%s', line %" PRIu64 ": more data than may be held",
                          t->src->name, t->text.line);
    }
    if (fl_grow(&t->cells, &t->cap_cells, t->n_cells, sizeof(*t->cells)) != FL_OK) {
        return table_no_memory(t);
    }
    t->cells[t->n_cells++] = value;
    return FL_OK;
}

static int table_keep_first(struct fl__csv_table *t, const char *text)
{
    if (t->text.col >= FL_SCHEMA_MAX_DIM) {
        return fl_err_set(t->err, FL_ELIMIT, "'%s', line %" PRIu64 ": more than %zu columns",
                          t->src->name, t->text.line, FL_SCHEMA_MAX_DIM);
    }
    if (fl_grow(&t->first, &t->cap_first, t->n_first, sizeof(*t->first)) != FL_OK) {
        return table_no_memory(t);
    }
    t->first[t->n_first] = fl_str_dup(text);
    if (t->first[t->n_first] == NULL) {
        return table_no_memory(t);
    }
    t->n_first++;
    return FL_OK;
}

static int table_on_field(void *ctx, char *text, size_t len)
{
    struct fl__csv_table *t = ctx;
    float value = 0.0F;
    int rv;

    if (len > FL_CSV_TEXT) {
        return fl_err_set(t->err, FL_EFORMAT,
                          "'%s', line %" PRIu64 ", column %zu: expected at most %zu characters",
                          t->src->name, t->text.line, t->text.col + 1, FL_CSV_TEXT);
    }
    if (strlen(text) != len) {
        return fl_err_set(t->err, FL_EFORMAT,
                          "'%s', line %" PRIu64 ", column %zu: expected text, found a NUL byte",
                          t->src->name, t->text.line, t->text.col + 1);
    }
    if (!t->begun) {
        return table_keep_first(t, text);
    }
    if (t->text.col >= t->schema->n_columns) { /* Surplus columns are only counted. */
        return FL_OK;
    }
    rv = fl__table_cell(t, t->text.col, text, len, &value);
    if (rv != FL_OK) {
        return rv;
    }
    return table_push(t, value);
}

/* The end of a row of data. */
static int table_end_row(struct fl__csv_table *t, size_t found)
{
    size_t width = t->schema->n_columns;

    if (found != width) {
        return fl_err_set(t->err, FL_EFORMAT,
                          "'%s', line %" PRIu64 ": expected %zu columns as in the first line, "
                          "found %zu",
                          t->src->name, t->text.line, width, found);
    }
    if (t->skip) {
        t->n_cells -= width;
        t->skipped++;
        t->skip = false;
        return FL_OK;
    }
    if (t->rows == FL_DATA_MAX_SAMPLES) {
        return fl_err_set(t->err, FL_ELIMIT, "'%s': more than %" PRIu64 " samples", t->src->name,
                          FL_DATA_MAX_SAMPLES);
    }
    t->rows++;
    return FL_OK;
}

/* The first line: a heading when none of its fields is a number. */
static int table_end_first(struct fl__csv_table *t)
{
    bool heading = true;
    double number;
    float value = 0.0F;
    size_t i;
    int rv;

    for (i = 0; i < t->n_first && heading; i++) {
        heading = !fl__table_number(t->first[i], strlen(t->first[i]), &number);
    }
    if (t->n_first < 2) {
        return fl_err_set(t->err, FL_EFORMAT,
                          "'%s', line %" PRIu64 ": expected at least one feature and a label, "
                          "separated by a comma, found one column",
                          t->src->name, t->text.line);
    }
    rv = fl__table_columns(t, heading);
    if (rv != FL_OK) {
        return rv;
    }
    t->begun = true;
    for (i = 0; i < t->n_first && !heading; i++) {
        rv = fl__table_cell(t, i, t->first[i], strlen(t->first[i]), &value);
        if (rv != FL_OK) {
            return rv;
        }
        rv = table_push(t, value);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return heading ? FL_OK : table_end_row(t, t->n_first);
}

static int table_on_row(void *ctx)
{
    struct fl__csv_table *t = ctx;

    return t->begun ? table_end_row(t, t->text.col) : table_end_first(t);
}

static int table_read_rows(struct fl__csv_table *t)
{
    char *piece = malloc(READ_AHEAD);
    size_t got = 0;
    int rv;

    if (piece == NULL) {
        return table_no_memory(t);
    }
    do {
        rv = fl__source_read(t->src, piece, READ_AHEAD, &got, t->err);
        if (rv != FL_OK) {
            goto done;
        }
        rv = fl_csv_feed(&t->text, piece, got);
        if (rv != FL_OK) {
            goto done;
        }
    } while (got == READ_AHEAD);
    if (t->text.in_quotes) {
        rv = fl_err_set(t->err, FL_EFORMAT,
                        "'%s', line %" PRIu64 ": expected a closing quote for the one opened here",
                        t->src->name, t->text.quote_line);
        goto done;
    }
    if (t->src->cut) {
        rv = fl_err_set(t->err, FL_EFORMAT, "'%s': the gzip stream is cut short", t->src->name);
        goto done;
    }
    rv = fl_csv_end(&t->text);
    if (rv != FL_OK) {
        goto done;
    }
    if (t->rows == 0) {
        rv = fl_err_set(t->err, FL_EFORMAT, "'%s': holds no sample%s", t->src->name,
                        t->skipped > 0 ? " without a missing value" : "");
    }
done:
    free(piece);
    return rv;
}

int fl__table_import(struct fl_source *src, const struct fl_import_conf *conf, bool derive,
                     struct fl_schema *schema, size_t *skipped, struct fl_dataset **ret,
                     struct fl_err *err)
{
    struct fl__csv_table t = {.text = {.field = table_on_field,
                                       .row = table_on_row,
                                       .ctx = &t,
                                       .line = 1,
                                       .quotes = true},
                              .src = src,
                              .conf = conf,
                              .schema = schema,
                              .err = err,
                              .derive = derive};
    size_t i;
    int rv;

    if (derive) {
        schema->one_hot = conf->one_hot;
        schema->missing = conf->missing;
    }
    rv = table_read_rows(&t);
    if (rv != FL_OK) {
        goto done;
    }
    rv = fl__table_samples(&t, ret);
    if (rv != FL_OK) {
        goto done;
    }
    *skipped += t.skipped;
done:
    for (i = 0; i < t.n_first; i++) {
        free(t.first[i]);
    }
    free(t.first);
    free(t.decided);
    free(t.since);
    free(t.cells);
    return rv;
}
