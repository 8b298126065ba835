#ifndef FL_CLIENTD_DATA_WATCH_H
#define FL_CLIENTD_DATA_WATCH_H

/*
 * Data that changes while the client runs (data.reload). Before a task only the sizes, times and
 * inodes of the files are checked. When they changed, the session ends, the files are read again on
 * the training thread, and the next Hello has the new numbers of samples. So a session has one data
 * set: the one that its Hello describes.
 *
 * Threading: the loop.
 */

#include "client/daemon/client_data.h"
#include "client/daemon/jobs.h"
#include "client/work/worker.h"

enum fl_data_state {
    FL_DATA_SAME = 1, /* unchanged, or not checked */
    FL_DATA_CHANGED,
    FL_DATA_GONE
};

/* `why`: NULL, or why the data cannot be used now. */
typedef void fl_data_ready_fn(void *ctx, const char *why);

struct fl_data_watch {
    const struct fl_client_conf *conf; /* borrowed, as are the next three */
    const struct fl_jobs *jobs;
    struct fl_worker *worker;
    struct fl_local_data *data;
    bool gone; /* the missing data was logged */
};

enum fl_data_state fl_data_watch_look(struct fl_data_watch *watch);
/*
 * Call it before a session. Calls `ready` at once when the data is unchanged or missing, else after
 * the changed files were read. One call at a time.
 */
void fl_data_watch_refresh(struct fl_data_watch *watch, fl_data_ready_fn *ready, void *ctx);

#endif
