#ifndef FL_IMPORT_IMPORT_H
#define FL_IMPORT_IMPORT_H

/*
 * Reads data that need a mapping to numbers: pictures in class folders, a text, tables with texts.
 * For fl-data and fl-sim: the daemons read the formats of libfl/data alone, so that neither a
 * decoder of pictures nor a mapping of its own is part of a client.
 *
 *   images  <part>/CLASS/NAME.png, .jpg, .jpeg: a sample each, uint8, the class is the folder
 *   text    <part>.txt[.gz], UTF-8: samples of `window` characters, the class is the next character
 *   table   <part>.csv[.gz]: a sample a row, float32; the first line without any number is a
 * heading
 *
 * with the parts "train" and "test". Names that begin with a dot are ignored. Class names, values
 * of categories and characters are numbered in byte order of the train part, or as a given schema
 * says.
 *
 * Errors name the file with line and column (text, table) and what was expected. Limits:
 * FL_DATA_MAX_…, FL_SCHEMA_MAX_…, FL_IMPORT_MAX_…. Blocking I/O on the caller's thread; no state.
 */

#include <stdbool.h>
#include <stddef.h>

#include "libfl/base/err.h"
#include "libfl/data/dataset.h"
#include "libfl/import/schema.h"

/* Bytes of a picture's file, pixels of a side; bytes of a text. */
#define FL_IMPORT_MAX_PICTURE ((size_t)64 << 20)
#define FL_IMPORT_MAX_SIDE    16384
#define FL_IMPORT_MAX_TEXT    ((size_t)1 << 30)
#define FL_IMPORT_MAX_WINDOW  65536

struct fl_import_conf {
    const struct fl_schema *schema; /* borrowed; NULL: derived from the train part */
    /* Images: 1 (grey) or 3; 0: as the first picture has. Others are converted when it is set. */
    size_t channels;
    /* Text: characters of a sample, and from one sample to the next; the characters in the order
       of their numbers as UTF-8, NULL: those of the train part. */
    size_t window, stride;
    const char *characters;
    /* Table: comma-separated names of columns (or numbers, from 1). */
    const char *target;   /* the class, or values to be predicted; NULL: the last column */
    const char *category; /* columns whose numbers are categories */
    const char *drop;     /* columns to leave out */
    bool regression;      /* `target` holds values, one or several columns; else a class */
    bool one_hot;
    enum fl_missing missing;
};
/* Window 80, stride 1, one-hot; missing values are refused. */
void fl_import_conf_init(struct fl_import_conf *conf);

struct fl_import {
    struct fl_dataset *train, *test; /* owned; NULL: no such part */
    struct fl_schema schema;         /* owned */
    bool has_schema;                 /* false: a format of libfl/data, which needs none */
    size_t skipped;                  /* rows left out by FL_MISSING_SKIP */
};

/* Is there a train or test part of one of these kinds? A table always counts. */
bool fl_import_has(const char *folder, enum fl_import_kind *ret);
/*
 * Read the parts of `folder`. FL_ENOENT: no part, or without a schema no train part; FL_EFORMAT,
 * FL_ESHAPE, FL_ERANGE, FL_ENUMERIC, FL_ELIMIT, FL_ENOMEM, FL_EIO. On success the caller calls
 * fl_import_done().
 */
FL_MUST_CHECK int fl_import_open(const char *folder, const struct fl_import_conf *conf,
                                 struct fl_import *ret, struct fl_err *err);
void fl_import_done(struct fl_import *import);
/*
 * The same for a folder in any format: one of the above (a table when its train part is CSV), or
 * one of fl_dataset_open(), which needs no schema; each part standardised by norm.npy. Also a
 * folder with a test part alone is read. FL_EINVAL: a schema is given and the folder has no use for
 * one; FL_EFORMAT: data of two kinds.
 */
FL_MUST_CHECK int fl_import_any(const char *folder, const struct fl_import_conf *conf,
                                struct fl_import *ret, struct fl_err *err);
/* The characters that the word `name` stands for as fl_import_conf.characters, else `name`. */
const char *fl_import_characters(const char *name);

#endif
