#ifndef FL_IMPORT_SCHEMA_H
#define FL_IMPORT_SCHEMA_H

/*
 * How the texts and pictures of a data set became numbers: class names, the columns of a table, the
 * characters of a text, the shape of pictures. Derived from the train part of a set, and then used
 * for its test part, and for the data of every other client of the federation: the same text has to
 * be the same number on all of them.
 *
 * Ownership: a schema owns its texts. Threading: none.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/import/words.h"

/* Class names, values of a category, characters: at most the number of classes of a data set. */
#define FL_SCHEMA_MAX_WORDS 65536
#define FL_SCHEMA_MAX_DIM   ((size_t)1 << 24)

enum fl_import_kind { FL_IMPORT_IMAGES, FL_IMPORT_TEXT, FL_IMPORT_TABLE };

/* What becomes of a column of a table. */
enum fl_column_role {
    FL_COLUMN_NUMBER,   /* one feature */
    FL_COLUMN_CATEGORY, /* a feature for each value (one_hot), or one with its number */
    FL_COLUMN_LABEL,    /* the class: its number, or a text of `labels` */
    FL_COLUMN_TARGET,   /* a number to be predicted (regression) */
    FL_COLUMN_DROPPED
};

/* What becomes of a row with a missing value: a field that is empty, "NA", "NaN", "null" or "?". */
enum fl_missing {
    FL_MISSING_REFUSE, /* an error with line and column */
    FL_MISSING_MEAN,   /* numbers: the mean of the train part; categories: no value, see one_hot */
    FL_MISSING_SKIP    /* the row is left out */
};

/* Option texts of the enumerations, in order; NULL-terminated. */
extern const char *const fl_import_kinds[];
extern const char *const fl_column_roles[];
extern const char *const fl_missing_rules[];

struct fl_schema_column {
    char *name; /* of the heading; without one its number, from 1 */
    enum fl_column_role role;
    struct fl_words values; /* of a category */
    double mean;            /* of a number, over the train part */
};

struct fl_schema {
    enum fl_import_kind kind;
    /* Names of the classes, by number; of a text the characters. None: classes are numbers, or the
       targets are values. */
    struct fl_words labels;
    size_t dims[3];                   /* images: channels, height, width */
    size_t window;                    /* text: characters of a sample */
    struct fl_schema_column *columns; /* of a table */
    size_t n_columns;
    /* A category of k values becomes k features of 0 and 1, all 0 for a missing value; else one
       feature, 0 to k - 1, and k for a missing value. */
    bool one_hot;
    enum fl_missing missing;
};

void fl_schema_done(struct fl_schema *schema);
/* Copies. FL_ENOMEM: `to` is unchanged. */
FL_MUST_CHECK int fl_schema_copy(struct fl_schema *to, const struct fl_schema *from);
/* Features of a sample and values to be predicted (0: a class) that a table's rows give. */
size_t fl_schema_features(const struct fl_schema *schema);
size_t fl_schema_targets(const struct fl_schema *schema);

#endif
