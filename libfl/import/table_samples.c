/*
 * The data set of a table whose rows have been read: texts are numbered in byte order, so that the
 * order of rows does not matter, means replace missing numbers, and categories become features.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/import/table_impl.h"

/* Number the texts of a column in their order. */
static int table_sort_column(const struct fl__csv_table *t, size_t column, struct fl_words *words)
{
    size_t width = t->schema->n_columns;
    uint32_t *map = NULL;
    size_t i;

    if (fl_words_sort(words, &map) != FL_OK) {
        return fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory for its texts", t->src->name);
    }
    for (i = 0; i < t->rows; i++) {
        float *cell = &t->cells[i * width + column];

        if (!isnan(*cell)) {
            *cell = (float)map[(size_t)*cell];
        }
    }
    free(map);
    return FL_OK;
}

/* The mean of the numbers of a column, in the order of the rows; 0 without any. */
static double table_mean(const struct fl__csv_table *t, size_t column)
{
    size_t width = t->schema->n_columns;
    double sum = 0.0;
    size_t n = 0;
    size_t i;

    for (i = 0; i < t->rows; i++) {
        float cell = t->cells[i * width + column];

        if (!isnan(cell)) {
            sum += (double)cell;
            n++;
        }
    }
    return n > 0 ? sum / (double)n : 0.0;
}

static int table_complete_schema(struct fl__csv_table *t)
{
    struct fl_schema *schema = t->schema;
    size_t i;
    int rv;

    for (i = 0; i < schema->n_columns; i++) {
        struct fl_schema_column *column = &schema->columns[i];

        if (column->role == FL_COLUMN_NUMBER) {
            column->mean = table_mean(t, i);
        } else if (column->role == FL_COLUMN_CATEGORY) {
            rv = table_sort_column(t, i, &column->values);
            if (rv != FL_OK) {
                return rv;
            }
        } else if (column->role == FL_COLUMN_LABEL && schema->labels.n > 0) {
            rv = table_sort_column(t, i, &schema->labels);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

/* One row: features to x, values to be predicted to `target`, the class to *y. */
static void table_row(const struct fl__csv_table *t, const float *cells, float *x, float *target,
                      int32_t *y)
{
    const struct fl_schema *schema = t->schema;
    size_t i;

    for (i = 0; i < schema->n_columns; i++) {
        const struct fl_schema_column *column = &schema->columns[i];
        float cell = cells[i];

        switch (column->role) {
        case FL_COLUMN_NUMBER:
            *x++ = isnan(cell) ? (float)column->mean : cell;
            break;
        case FL_COLUMN_CATEGORY:
            if (!schema->one_hot) {
                *x++ = isnan(cell) ? (float)column->values.n : cell;
                break;
            }
            (void)memset(x, 0, column->values.n * sizeof(*x));
            if (!isnan(cell)) {
                x[(size_t)cell] = 1.0F;
            }
            x += column->values.n;
            break;
        case FL_COLUMN_LABEL:
            *y = (int32_t)cell;
            break;
        case FL_COLUMN_TARGET:
            *target++ = cell;
            break;
        case FL_COLUMN_DROPPED:
            break;
        }
    }
}

int fl__table_samples(struct fl__csv_table *t, struct fl_dataset **ret)
{
    struct fl_schema *schema = t->schema;
    struct fl_dataset *ds = NULL;
    uint64_t dim;
    size_t features;
    size_t targets;
    size_t i;
    int rv;

    if (t->derive) {
        rv = table_complete_schema(t);
        if (rv != FL_OK) {
            return rv;
        }
    }
    features = fl_schema_features(schema);
    targets = fl_schema_targets(schema);
    if (features == 0) {
        return fl_err_set(t->err, FL_ESHAPE, "'%s': expected at least one feature, found none",
                          t->src->name);
    }
    dim = features;
    rv = fl__data_check_size(t->src->name, t->rows, &dim, 1, sizeof(float), t->err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dataset_create(FL_DATA_F32, t->rows, &features, 1, &ds, t->err);
    if (rv != FL_OK) {
        return rv;
    }
    if (targets > 0) {
        rv = fl_dataset_add_targets(ds, targets, t->err);
        if (rv != FL_OK) {
            fl_dataset_free(ds);
            return rv;
        }
    }
    for (i = 0; i < t->rows; i++) {
        table_row(t, t->cells + i * schema->n_columns, (float *)ds->x + i * features,
                  targets > 0 ? ds->target + i * targets : NULL, &ds->y[i]);
    }
    ds->classes = schema->labels.n > 0 ? schema->labels.n : fl__dataset_count_classes(ds->y, ds->n);
    *ret = ds;
    return FL_OK;
}
