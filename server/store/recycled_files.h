#ifndef FL_STORE_SPARES_H
#define FL_STORE_SPARES_H

/*
 * Spool files of rounds that are over, for the uploads of the next one. To write into a file that
 * is there spares the file system to take and to give back its blocks, its pages and its name: most
 * of what a small upload costs, and with durability "power" most of what the disk does for a large
 * one (docs/performance.md). A client that was in the last round writes into its own; one that was
 * not is given that of a client that did not come yet.
 *
 * They are the uploads of the last round, whose room the disk had to have anyway; one that is
 * longer than the next upload needs is cut. When the disk is full they go.
 *
 * Threading: of one thread, which is the one that opens spool files for writing.
 */

#include "server/store/store.h"

struct fl_recycled;

/* None yet; of the spool in `dir`, which is copied. FL_ENOMEM, FL_ELIMIT. */
FL_MUST_CHECK int fl_recycled_create(const char *dir, struct fl_recycled **ret, struct fl_err *err);
/* The files stay: the next start removes them, and fl_recycled_drop() does. NULL is allowed. */
void fl_recycled_free(struct fl_recycled *spares);

/* The rounds of all uploads in the spool are over. What was spare already and of no use goes. */
FL_MUST_CHECK int fl_recycled_collect(struct fl_recycled *spares, struct fl_err *err);
/* Removes the files, to make room. */
void fl_recycled_drop(struct fl_recycled *spares);
/* How many there are that no upload of this round was written into. */
size_t fl_recycled_count(const struct fl_recycled *spares);

/* As fl_spool_open(); a file that has to be made is a spare one, where there is one. */
FL_MUST_CHECK int fl_recycled_open(struct fl_recycled *spares, uint64_t round, uint32_t attempt,
                                   const char *client, const struct fl_spool_part *parts,
                                   size_t n_parts, struct fl_spool **ret, uint64_t *ret_received,
                                   struct fl_err *err);

#endif
