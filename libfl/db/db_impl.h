#ifndef FL_DB_DB_IMPL_H
#define FL_DB_DB_IMPL_H

/* The parts of fl_db_open(), in the order of their calls; copy.c uses the first ones. */

#include "libfl/db/db.h"

/* Somebody else is at the database: wait for him this long. */
#define FL__DB_BUSY_MS 5000

/* What the b-trees and indexes say. FL_EFORMAT. */
FL_MUST_CHECK int fl__db_integrity_check(struct fl_db *db, struct fl_err *err);
/* The function with which the others work (sums.c). */
FL_MUST_CHECK int fl__db_sums_prepare(struct fl_db *db, struct fl_err *err);
/* Is every row what was written? FL_EFORMAT names the first that is not. */
FL_MUST_CHECK int fl__db_sums_check(struct fl_db *db, struct fl_err *err);
/* Bring it to the newest version; rows lose their sums when there was anything to do. */
FL_MUST_CHECK int fl__db_schema_update(struct fl_db *db, struct fl_err *err);
/* For fl__db_schema_update(): their columns are others now. */
FL_MUST_CHECK int fl__db_sums_drop(struct fl_db *db, struct fl_err *err);
/* Sums for rows that have none, and from now on for whatever is written. */
FL_MUST_CHECK int fl__db_sums_keep(struct fl_db *db, struct fl_err *err);

#endif
