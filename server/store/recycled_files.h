#ifndef FL_STORE_SPARES_H
#define FL_STORE_SPARES_H

/*
 * Spool files of finished rounds, recycled for the uploads of the next round. Overwriting an
 * existing file saves allocating and freeing its blocks, pages and name: most of the cost of a
 * small upload, and with durability "power" most of the disk work of a large one
 * (docs/performance.md). A client that took part in the last round overwrites its own file; another
 * client gets the file of a client that has not uploaded yet.
 *
 * The recycled files are the uploads of the last round, so they need no additional disk space; a
 * file that is longer than its new upload is truncated. When the disk is full they are removed.
 *
 * Threading: belongs to one thread, the one that opens spool files for writing.
 */

#include "server/store/store.h"

struct fl_recycled;

/* Create an empty list for the spool in `dir`, for fl_spool_opening.recycled. FL_ENOMEM, FL_ELIMIT.
 */
FL_MUST_CHECK int fl_recycled_create(const char *dir, struct fl_recycled **ret, struct fl_err *err);
/* Keeps the files on disk: the next start removes them. NULL is allowed. */
void fl_recycled_free(struct fl_recycled *recycled);

/* Make every upload in the spool available for recycling: all their rounds are finished. Files that
 * were available before and not used are removed. */
FL_MUST_CHECK int fl_recycled_collect(struct fl_recycled *recycled, struct fl_err *err);
/* Remove the available files, to free disk space. */
void fl_recycled_drop(struct fl_recycled *recycled);
/* Number of available files. */
size_t fl_recycled_count(const struct fl_recycled *recycled);

#endif
