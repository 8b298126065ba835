#ifndef FL_SERVER_WORK_CHECKPOINTS_H
#define FL_SERVER_WORK_CHECKPOINTS_H

/*
 * Which checkpoints there are, why they are kept, and taking one out. All of it belongs to the
 * thread of the store. `wall_ms` is the wall clock.
 */

#include "server/work/server_work.h"

/* Remove what no rule of retention names any more. */
FL_MUST_CHECK int fl_checkpoints_prune(const struct fl_federation *federation, uint64_t committed,
                                       uint64_t wall_ms, struct fl_err *err);
/* Remove all mixtures but those of the `last` round, and of the one before if that can be gone
   back to. */
FL_MUST_CHECK int fl_checkpoints_prune_personal_models(const struct fl_federation *federation,
                                                       uint64_t last, struct fl_err *err);
typedef int (*fl_checkpoints_cb)(void *ctx, const struct fl_checkpoint *checkpoint,
                                 const char *why);
/* Oldest first, with why each one is kept; then the abandoned ones. */
FL_MUST_CHECK int fl_checkpoints_each(const struct fl_federation *federation, uint64_t wall_ms,
                                      fl_checkpoints_cb cb, void *ctx, struct fl_err *err);
/* Until it is released. FL_ENOENT: there is no such checkpoint. */
FL_MUST_CHECK int fl_checkpoints_pin(const struct fl_federation *federation, uint64_t round,
                                     uint64_t wall_ms, struct fl_err *err);
/* No longer; one that is not held: the abandoned one (rollback.h of the store) is removed.
   FL_ENOENT: neither. */
FL_MUST_CHECK int fl_checkpoints_unpin(const struct fl_federation *federation, uint64_t round,
                                       struct fl_err *err);
/* The model of a kept checkpoint. FL_ENOENT: there is none. */
FL_MUST_CHECK int fl_checkpoints_read(const struct fl_federation *federation, uint64_t round,
                                      struct fl_blob **ret, struct fl_err *err);

#endif
