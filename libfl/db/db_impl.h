#ifndef FL_DB_DB_IMPL_H
#define FL_DB_DB_IMPL_H

#include "libfl/db/db.h"

struct fl_db_row;

/*
 * The place of a column in the list; its length: none. Lists and statements mostly have the same
 * order, so the search begins at `hint`.
 */
size_t fl__db_row_find(const struct fl_db_row *row, const char *name, size_t hint);

/* The steps of fl_db_open(), in the order of their calls; copy.c uses the first ones. */

/* How long to wait for a database that another connection has locked. */
#define FL__DB_BUSY_MS 5000

/* Checks the b-trees and indexes. FL_EFORMAT. */
FL_MUST_CHECK int fl__db_integrity_check(struct fl_db *db, struct fl_err *err);
/* Registers the SQL function that the other checksum functions use (row_checksums.c). */
FL_MUST_CHECK int fl__db_sums_prepare(struct fl_db *db, struct fl_err *err);
/* Checks the checksum of every row. FL_EFORMAT names the first row that does not match. */
FL_MUST_CHECK int fl__db_sums_check(struct fl_db *db, struct fl_err *err);
/* Migrates to the newest version; rows lose their checksums when anything changed. */
FL_MUST_CHECK int fl__db_schema_update(struct fl_db *db, struct fl_err *err);
/* Removes the checksums of rows, for fl__db_schema_update(): the columns have changed. */
FL_MUST_CHECK int fl__db_sums_drop(struct fl_db *db, struct fl_err *err);
/* Adds checksums to rows that have none, and to all rows written from now on. */
FL_MUST_CHECK int fl__db_sums_keep(struct fl_db *db, struct fl_err *err);

#endif
