#ifndef FL_IMPORT_TABLE_IMPL_H
#define FL_IMPORT_TABLE_IMPL_H

/*
 * A table while it is read. table.c splits the file into rows of cells, table_columns.c decides
 * what each column is and turns texts into numbers, table_samples.c makes the data set.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/csv_split.h"
#include "libfl/import/import_impl.h"

struct fl__csv_table {
    struct fl_csv text;
    struct fl_source *src;
    const struct fl_import_conf *conf;
    struct fl_schema *schema;
    struct fl_err *err;
    bool derive;
    /* The first line is kept until its end, when it is known whether it is a heading. */
    char **first;
    size_t n_first, cap_first;
    bool begun;      /* past the first line */
    bool *decided;   /* [columns]: the role is final */
    uint64_t *since; /* [columns]: the line that decided */
    bool skip;       /* this row has a missing value and is left out */
    size_t skipped;
    /* Cells of complete rows and of the current one, [rows][columns]; NaN: a missing value. */
    float *cells;
    size_t n_cells, cap_cells;
    size_t rows;
};

/* table_columns.c */

/*
 * Set names and roles of the columns from the first line, of which `heading` says whether it has
 * their names. FL_EFORMAT, FL_ERANGE: an option or the schema names a column that is not there.
 */
FL_MUST_CHECK int fl__table_columns(struct fl__csv_table *t, bool heading);
/* The number of the text in a column of the current row; NaN: missing, or a column that is dropped.
 */
FL_MUST_CHECK int fl__table_cell(struct fl__csv_table *t, size_t column, const char *text,
                                 size_t len, float *ret);
bool fl__table_number(const char *text, size_t len, double *ret);

/* table_samples.c */

/* Number the texts in their order, compute means, and make the set of all rows. */
FL_MUST_CHECK int fl__table_samples(struct fl__csv_table *t, struct fl_dataset **ret);

#endif
