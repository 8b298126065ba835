#ifndef FL_CLIENTD_SUMMARY_UPLOAD_H
#define FL_CLIENTD_SUMMARY_UPLOAD_H

/*
 * Makes a data summary (client/work/data_summary.h) on the training thread and sends it on the
 * control stream, using at most half of its queue so that heartbeats and reports have room. After a
 * reconnect the same bytes are sent again. Threading: the loop.
 */

#include "client/daemon/connection.h"
#include "client/daemon/jobs.h"
#include "client/work/data_summary.h"
#include "libfl/base/sm.h"

struct fl_summary_upload {
    const struct fl_jobs *jobs;       /* borrowed, as are the next two */
    const struct fl_worker *worker;   /* makes the data summary */
    struct fl_connection *connection; /* sends it */
    struct fl_sm sm;
    bool wanted; /* the current session requested it */
    struct fl_data_summary summary;
};

void fl_summary_upload_init(struct fl_summary_upload *summary_upload, const struct fl_jobs *jobs,
                            const struct fl_worker *worker, struct fl_connection *connection);
/* Welcome requests the data summary: send it from the first byte. */
void fl_summary_upload_begin(struct fl_summary_upload *summary_upload);
/* The control stream accepts more data. */
void fl_summary_upload_go_on(struct fl_summary_upload *summary_upload);
/* The control stream ended. */
void fl_summary_upload_stop(struct fl_summary_upload *summary_upload);
/* A new setup, while the training thread is idle: drop the data summary in memory. */
void fl_summary_upload_forget(struct fl_summary_upload *summary_upload);

#endif
