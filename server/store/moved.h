#ifndef FL_STORE_MOVED_H
#define FL_STORE_MOVED_H

/*
 * The mark of a state folder whose federation was moved to another host: no server may start from
 * it, since two servers of one identity would compete for the clients. The mark is the file `moved`
 * in the folder, written when the backup is complete and removed only by an operator's command.
 *
 * Threading: blocking, one thread.
 */

#include "server/store/backup.h"

/*
 * fl_backup_make() of a folder that no server uses, then the mark, durable on FL_OK. Holds the lock
 * of the folder meanwhile. After a crash the folder is either unchanged, with a complete or partial
 * backup, or marked with a complete backup. FL_EINUSE: its server is running; FL_ESTATE: already
 * marked.
 */
FL_MUST_CHECK int fl_moved_make(struct fl_backup *backup, struct fl_err *err);
/* FL_ESTATE: the folder is marked; the message gives time, target and what to do. */
FL_MUST_CHECK int fl_moved_check(const char *dir, struct fl_err *err);
/* Removes the mark, durable on FL_OK. FL_ENOENT: there is none; FL_EINUSE. */
FL_MUST_CHECK int fl_moved_undo(const char *dir, struct fl_err *err);

#endif
