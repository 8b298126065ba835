#ifndef FL_SERVER_WORK_CHECKPOINTS_H
#define FL_SERVER_WORK_CHECKPOINTS_H

/* The checkpoints of a federation: why each is kept, pruning, pinning and reading. All of it
   belongs to the store's thread. `wall_ms` is the wall clock. */

#include "server/work/server_work.h"

/* Remove checkpoints that no rule of retention keeps. */
FL_MUST_CHECK int fl_checkpoints_prune(const struct fl_federation *federation, uint64_t committed,
                                       uint64_t wall_ms, struct fl_err *err);
/* Remove all personal models but those of the `last` round, and of the round before if a
   rollback to it is possible. */
FL_MUST_CHECK int fl_checkpoints_prune_personal_models(const struct fl_federation *federation,
                                                       uint64_t last, struct fl_err *err);
typedef int (*fl_checkpoints_cb)(void *ctx, const struct fl_checkpoint *checkpoint,
                                 const char *why);
/* Calls `cb` for each checkpoint, oldest first, with the reasons why it is kept; then for the
   abandoned ones. */
FL_MUST_CHECK int fl_checkpoints_each(const struct fl_federation *federation, uint64_t wall_ms,
                                      fl_checkpoints_cb cb, void *ctx, struct fl_err *err);
/* Pin a checkpoint until it is unpinned. FL_ENOENT: there is no such checkpoint. */
FL_MUST_CHECK int fl_checkpoints_pin(const struct fl_federation *federation, uint64_t round,
                                     uint64_t wall_ms, struct fl_err *err);
/* Unpin it. If it is not pinned, the abandoned one (store_rollback.h) is removed. FL_ENOENT:
   neither. */
FL_MUST_CHECK int fl_checkpoints_unpin(const struct fl_federation *federation, uint64_t round,
                                       struct fl_err *err);
/* The model of a kept checkpoint. FL_ENOENT: there is none. */
FL_MUST_CHECK int fl_checkpoints_read(const struct fl_federation *federation, uint64_t round,
                                      struct fl_blob **ret, struct fl_err *err);

#endif
