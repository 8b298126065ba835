#ifndef FL_CLIENT_STORE_TASK_LOG_H
#define FL_CLIENT_STORE_TASK_LOG_H

/*
 * The history of a client's tasks on disk, so that it survives a restart: <state_dir>/tasks.bin,
 * replaced atomically and not synced: no promise depends on it. Blocking.
 */

#include "client/core/task_history.h"

/* Read what a file keeps of it into `history`, which is zero-initialized. FL_ENOENT: none;
 * FL_EFORMAT: damaged; FL_EVERSION: of a later version. On an error nothing changes. */
FL_MUST_CHECK int fl_task_log_load(const char *state_dir, struct fl_task_history *history,
                                   struct fl_err *err);
FL_MUST_CHECK int fl_task_log_save(const char *state_dir, const struct fl_task_history *history,
                                   struct fl_err *err);

#endif
