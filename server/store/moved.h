#ifndef FL_STORE_MOVED_H
#define FL_STORE_MOVED_H

/*
 * The mark of a state folder whose federation was moved to another host: nothing may be started
 * from it, since two servers of one identity would each take clients from the other. The mark is
 * the file `moved` in the folder, written when the backup that was moved is whole and removed by an
 * operator's command alone.
 *
 * Threading: blocking, one thread.
 */

#include "server/store/backup.h"

/*
 * fl_backup_make() of a folder that no server uses, then the mark, durable on FL_OK. The lock of
 * the folder is held meanwhile. A crash leaves the folder as it was, with a backup or a part of
 * one, or marked with a whole backup. FL_EINUSE: its server runs; FL_ESTATE: it is marked.
 */
FL_MUST_CHECK int fl_moved_make(struct fl_backup *backup, struct fl_err *err);
/* FL_ESTATE: it is marked, and the text says since when, where to and what to do. */
FL_MUST_CHECK int fl_moved_check(const char *dir, struct fl_err *err);
/* Removes the mark, durable on FL_OK. FL_ENOENT: there is none; FL_EINUSE. */
FL_MUST_CHECK int fl_moved_undo(const char *dir, struct fl_err *err);

#endif
