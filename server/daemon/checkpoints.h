#ifndef FL_SERVERD_CHECKPOINTS_H
#define FL_SERVERD_CHECKPOINTS_H

/*
 * Which checkpoints there are, why they are kept, and taking one out. All of it on the database
 * lane; plain functions over the store and the folder.
 */

#include "server/core/retain.h"
#include "server/daemon/driver_impl.h"

/* Remove what no rule of `checkpoints` names any more. */
FL_MUST_CHECK int fl_checkpoints_prune(struct fl_driver *driver, uint64_t committed,
                                       struct fl_err *err);
typedef int (*fl_checkpoints_cb)(void *ctx, const struct fl_checkpoint *checkpoint,
                                 const char *why);
/* Oldest first, with why each one is kept; then the abandoned ones. */
FL_MUST_CHECK int fl_checkpoints_each(struct fl_driver *driver, fl_checkpoints_cb cb, void *ctx,
                                      struct fl_err *err);
/* Until it is released. FL_ENOENT: there is no such checkpoint. */
FL_MUST_CHECK int fl_checkpoints_hold(struct fl_driver *driver, uint64_t round, struct fl_err *err);
/* No longer; one that is not held: the abandoned one (rollback.h of the store) is removed.
   FL_ENOENT: neither. */
FL_MUST_CHECK int fl_checkpoints_release(struct fl_driver *driver, uint64_t round,
                                         struct fl_err *err);
/* The model of a kept checkpoint. FL_ENOENT: there is none. */
FL_MUST_CHECK int fl_checkpoints_read(struct fl_driver *driver, uint64_t round,
                                      struct fl_blob **ret, struct fl_err *err);

#endif
