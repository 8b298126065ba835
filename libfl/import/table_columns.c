/*
 * What the columns of a table are, and the numbers of their texts. A column is what its first value
 * says, unless an option or the schema does: a number, else a category. A later text among numbers
 * is an error, so that a slip in one row does not change the model.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libfl/base/log.h"
#include "libfl/base/str.h"
#include "libfl/import/table_impl.h"

#define QUOTED 160

bool fl__table_number(const char *text, size_t len, double *ret)
{
    return strlen(text) == len && fl_str_to_double(text, ret) == FL_OK;
}

static bool table_is_missing(const char *text)
{
    static const char *const words[] = {"", "?", "na", "nan", "null"};
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Is this column in the comma-separated `list` of names? */
static bool table_in_list(const char *list, const char *name)
{
    size_t len = strlen(name);
    const char *at;

    for (at = list; at != NULL; at = strchr(at, ',')) {
        at += at != list ? 1 : 0;
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Every name of `list` must be that of a column. */
static int table_check_list(const struct fl__csv_table *t, const char *option, const char *list)
{
    const struct fl_schema *schema = t->schema;
    const char *at = list;
    size_t i;

    while (at != NULL) {
        size_t len = strcspn(at, ",");

        for (i = 0; i < schema->n_columns; i++) {
            const char *name = schema->columns[i].name;

            if (strlen(name) == len && strncmp(name, at, len) == 0) {
                break;
            }
        }
        if (i == schema->n_columns) {
            return fl_err_set(
                t->err, FL_ERANGE,
                "'%s': the option %s names the column '%.*s', expected one of its %zu columns, "
                "'%s' to '%s'",
                t->src->name, option, (int)(len < QUOTED ? len : QUOTED), at, schema->n_columns,
                schema->columns[0].name, schema->columns[schema->n_columns - 1].name);
        }
        at = at[len] == ',' ? at + len + 1 : NULL;
    }
    return FL_OK;
}

/* Roles as the options say; a number is not decided before its first value. */
static int table_roles(struct fl__csv_table *t)
{
    const struct fl_import_conf *conf = t->conf;
    size_t n = t->schema->n_columns;
    size_t i;
    int rv = table_check_list(t, "target", conf->target);

    if (rv != FL_OK) {
        return rv;
    }
    rv = table_check_list(t, "category", conf->category);
    if (rv != FL_OK) {
        return rv;
    }
    rv = table_check_list(t, "drop", conf->drop);
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        struct fl_schema_column *column = &t->schema->columns[i];

        if (conf->target != NULL ? table_in_list(conf->target, column->name) : i + 1 == n) {
            column->role = conf->regression ? FL_COLUMN_TARGET : FL_COLUMN_LABEL;
            t->decided[i] = conf->regression;
        } else if (table_in_list(conf->drop, column->name)) {
            column->role = FL_COLUMN_DROPPED;
            t->decided[i] = true;
        } else if (table_in_list(conf->category, column->name)) {
            column->role = FL_COLUMN_CATEGORY;
            t->decided[i] = true;
        }
    }
    return FL_OK;
}

static int table_check_names(const struct fl__csv_table *t, bool heading)
{
    const struct fl_schema *schema = t->schema;
    char number[32];
    size_t i;

    if (t->n_first != schema->n_columns) {
        return fl_err_set(t->err, FL_ESHAPE,
                          "'%s', line %" PRIu64 ": expected the %zu columns of the train part or "
                          "schema, found %zu",
                          t->src->name, t->text.line, schema->n_columns, t->n_first);
    }
    for (i = 0; i < schema->n_columns; i++) {
        (void)snprintf(number, sizeof(number), "%zu", i + 1);
        /* Names are compared when both have some; else columns are taken by their order. */
        if (heading && strcmp(schema->columns[i].name, number) != 0 &&
            strcmp(schema->columns[i].name, t->first[i]) != 0)
        {
            return fl_err_set(t->err, FL_ESHAPE,
                              "'%s', line %" PRIu64 ", column %zu: expected the heading '%.80s' as "
                              "in the train part or schema, found '%.80s'",
                              t->src->name, t->text.line, i + 1, schema->columns[i].name,
                              t->first[i]);
        }
        t->decided[i] = schema->columns[i].role != FL_COLUMN_LABEL || schema->labels.n > 0;
    }
    return FL_OK;
}

int fl__table_columns(struct fl__csv_table *t, bool heading)
{
    struct fl_schema *schema = t->schema;
    char number[32];
    size_t i;
    size_t j;

    t->decided = calloc(t->n_first, sizeof(*t->decided));
    t->since = calloc(t->n_first, sizeof(*t->since));
    if (t->decided == NULL || t->since == NULL) {
        return fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory for its columns", t->src->name);
    }
    if (!t->derive) {
        return table_check_names(t, heading);
    }
    schema->columns = calloc(t->n_first, sizeof(*schema->columns));
    for (i = 0; schema->columns != NULL && i < t->n_first; i++) {
        (void)snprintf(number, sizeof(number), "%zu", i + 1);
        schema->columns[i].name = fl_str_dup(heading ? t->first[i] : number);
        if (schema->columns[i].name == NULL) {
            break;
        }
        schema->n_columns = i + 1;
    }
    if (schema->n_columns < t->n_first) {
        return fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory for its columns", t->src->name);
    }
    /* Few columns have options by name, and only those need unique names: a table may be wide. */
    for (i = 0; heading && i < t->n_first && t->n_first <= 4096; i++) {
        for (j = 0; j < i; j++) {
            if (strcmp(t->first[i], t->first[j]) == 0) {
                return fl_err_set(t->err, FL_EFORMAT,
                                  "'%s', line %" PRIu64 ", column %zu: the heading '%.80s' is that "
                                  "of column %zu too",
                                  t->src->name, t->text.line, i + 1, t->first[i], j + 1);
            }
        }
    }
    return table_roles(t);
}

/* "'FILE', line 3, column 2 (age): expected WHAT, found 'x'". */
static int table_bad_cell(const struct fl__csv_table *t, size_t column, int code,
                          const char *expected, const char *text, const char *hint)
{
    char quoted[QUOTED];

    return fl_err_set(t->err, code,
                      "'%s', line %" PRIu64 ", column %zu (%.80s): expected %s, found %s%s",
                      t->src->name, t->text.line, column + 1, t->schema->columns[column].name,
                      expected, fl_log_quote(quoted, sizeof(quoted), text, strlen(text)), hint);
}

/* The number of a text; in a new schema a new text gets the next one. */
static int table_word(const struct fl__csv_table *t, size_t column, struct fl_words *words,
                      const char *text, size_t len, float *ret)
{
    uint32_t number = 0;

    if (fl_words_find(words, text, len, &number)) {
        *ret = (float)number;
        return FL_OK;
    }
    if (!t->derive) {
        return table_bad_cell(t, column, FL_ERANGE, "one of the values in the train part or schema",
                              text, "");
    }
    if (words->n == FL_SCHEMA_MAX_WORDS) {
        return table_bad_cell(t, column, FL_ELIMIT, "at most 65536 different texts", text,
                              "; the option drop leaves a column out");
    }
    if (fl_words_add(words, text, len, &number) != FL_OK) {
        return fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory for its texts", t->src->name);
    }
    *ret = (float)number;
    return FL_OK;
}

static int table_class_number(const struct fl__csv_table *t, size_t column, const char *text,
                              double number, float *ret)
{
    if (!(number >= 0.0 && number <= (double)FL_DATA_MAX_LABEL) || number > floor(number)) {
        return table_bad_cell(t, column, FL_ERANGE, "a class number from 0 to 65535", text,
                              "; the option regression predicts values");
    }
    *ret = (float)number;
    return FL_OK;
}

static int table_label(struct fl__csv_table *t, size_t column, const char *text, size_t len,
                       float *ret)
{
    double number = 0.0;
    bool is_number = fl__table_number(text, len, &number);

    if (!t->decided[column]) {
        t->decided[column] = true;
        t->since[column] = t->text.line;
        if (!is_number && t->derive) {
            return table_word(t, column, &t->schema->labels, text, len, ret);
        }
    }
    if (t->schema->labels.n > 0) {
        return table_word(t, column, &t->schema->labels, text, len, ret);
    }
    if (!is_number) {
        return table_bad_cell(t, column, FL_EFORMAT, "a class number as in the rows before", text,
                              "");
    }
    return table_class_number(t, column, text, number, ret);
}

static int table_finite(const struct fl__csv_table *t, size_t column, const char *text, size_t len,
                        float *ret)
{
    double number = 0.0;
    char expected[64];

    if (!fl__table_number(text, len, &number)) {
        (void)snprintf(expected, sizeof(expected), "a number as in line %" PRIu64,
                       t->since[column]);
        return table_bad_cell(t, column, FL_EFORMAT, t->since[column] > 0 ? expected : "a number",
                              text,
                              t->derive && t->schema->columns[column].role == FL_COLUMN_NUMBER
                                  ? "; the option category names columns of texts"
                                  : "");
    }
    if (!(fabs(number) <= (double)FLT_MAX)) {
        return table_bad_cell(t, column, FL_ENUMERIC, "a finite number", text, "");
    }
    *ret = (float)number;
    return FL_OK;
}

static int table_missing(struct fl__csv_table *t, size_t column, const char *text, float *ret)
{
    enum fl_column_role role = t->schema->columns[column].role;

    *ret = NAN;
    if (t->schema->missing == FL_MISSING_SKIP) {
        t->skip = true;
        return FL_OK;
    }
    if (role == FL_COLUMN_LABEL || role == FL_COLUMN_TARGET) {
        return table_bad_cell(t, column, FL_EFORMAT, "a value to be predicted", text,
                              "; the option missing: skip leaves such rows out");
    }
    if (t->schema->missing == FL_MISSING_REFUSE) {
        return table_bad_cell(t, column, FL_EFORMAT, "a value", text,
                              "; the option missing: mean or skip accepts missing values");
    }
    return FL_OK;
}

int fl__table_cell(struct fl__csv_table *t, size_t column, const char *text, size_t len, float *ret)
{
    struct fl_schema_column *c = &t->schema->columns[column];
    double number;

    if (c->role == FL_COLUMN_DROPPED) {
        *ret = NAN;
        return FL_OK;
    }
    if (table_is_missing(text)) {
        return table_missing(t, column, text, ret);
    }
    if (c->role == FL_COLUMN_LABEL) {
        return table_label(t, column, text, len, ret);
    }
    if (!t->decided[column]) {
        t->decided[column] = true;
        t->since[column] = t->text.line;
        c->role = fl__table_number(text, len, &number) ? FL_COLUMN_NUMBER : FL_COLUMN_CATEGORY;
    }
    if (c->role == FL_COLUMN_CATEGORY) {
        return table_word(t, column, &c->values, text, len, ret);
    }
    return table_finite(t, column, text, len, ret);
}
