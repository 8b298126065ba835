#ifndef FL_CLIENTD_DATA_WATCH_H
#define FL_CLIENTD_DATA_WATCH_H

/*
 * Data that changes while the client runs (data.reload). Before a task the files are looked at, no
 * more than their sizes, times and inodes; when they changed the session ends, they are read again
 * on the lane, and the next Hello has the new numbers of samples. So a session has one data set,
 * the one that its Hello tells of.
 *
 * Threading: the loop.
 */

#include "client/daemon/client_data.h"
#include "client/daemon/jobs.h"
#include "client/work/worker.h"

enum fl_data_state {
    FL_DATA_SAME = 1, /* as it was read, or not to be looked at */
    FL_DATA_CHANGED,
    FL_DATA_GONE
};

/* `why`: NULL, or why the data cannot be trained on now. */
typedef void fl_data_ready_fn(void *ctx, const char *why);

struct fl_data_watch {
    const struct fl_client_conf *conf; /* borrowed, as the next three */
    const struct fl_jobs *jobs;
    struct fl_worker *worker;
    struct fl_local_data *data;
    bool gone; /* said so */
};

enum fl_data_state fl_data_watch_look(struct fl_data_watch *watch);
/*
 * Before a session: `ready` at once when the data is as it was, or is gone; after it was read
 * again when it changed. One at a time.
 */
void fl_data_watch_refresh(struct fl_data_watch *watch, fl_data_ready_fn *ready, void *ctx);

#endif
