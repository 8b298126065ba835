#include "libfl/import/schema.h"

#include <stdlib.h>

#include "libfl/base/str.h"

const char *const fl_import_kinds[] = {
    [FL_IMPORT_IMAGES] = "images", [FL_IMPORT_TEXT] = "text", [FL_IMPORT_TABLE] = "table", NULL};
const char *const fl_column_roles[] = {
    [FL_COLUMN_NUMBER] = "number", [FL_COLUMN_CATEGORY] = "category", [FL_COLUMN_LABEL] = "label",
    [FL_COLUMN_TARGET] = "target", [FL_COLUMN_DROPPED] = "dropped",   NULL};
const char *const fl_missing_rules[] = {
    [FL_MISSING_REFUSE] = "refuse", [FL_MISSING_MEAN] = "mean", [FL_MISSING_SKIP] = "skip", NULL};

void fl_schema_done(struct fl_schema *schema)
{
    size_t i;

    for (i = 0; i < schema->n_columns; i++) {
        free(schema->columns[i].name);
        fl_words_done(&schema->columns[i].values);
    }
    free(schema->columns);
    fl_words_done(&schema->labels);
    *schema = (struct fl_schema){.n_columns = 0};
}

int fl_schema_copy(struct fl_schema *to, const struct fl_schema *from)
{
    struct fl_schema copy = *from;
    size_t i;

    copy.n_columns = 0;
    copy.labels = (struct fl_words){.n = 0};
    copy.columns = calloc(from->n_columns + 1, sizeof(*copy.columns));
    if (copy.columns == NULL || fl_words_copy(&copy.labels, &from->labels) != FL_OK) {
        goto fail;
    }
    for (i = 0; i < from->n_columns; i++) {
        struct fl_schema_column *column = &copy.columns[copy.n_columns++];

        *column = from->columns[i];
        column->values = (struct fl_words){.n = 0};
        column->name = fl_str_dup(from->columns[i].name);
        if (column->name == NULL ||
            fl_words_copy(&column->values, &from->columns[i].values) != FL_OK) {
            goto fail;
        }
    }
    *to = copy;
    return FL_OK;
fail:
    fl_schema_done(&copy);
    return FL_ENOMEM;
}

size_t fl_schema_features(const struct fl_schema *schema)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < schema->n_columns; i++) {
        const struct fl_schema_column *column = &schema->columns[i];

        if (column->role == FL_COLUMN_NUMBER) {
            n++;
        } else if (column->role == FL_COLUMN_CATEGORY) {
            n += schema->one_hot ? column->values.n : 1;
        }
    }
    return n;
}

size_t fl_schema_targets(const struct fl_schema *schema)
{
    size_t n = 0;
    size_t i;

    for (i = 0; i < schema->n_columns; i++) {
        n += schema->columns[i].role == FL_COLUMN_TARGET;
    }
    return n;
}
