#ifndef FL_CLIENTD_OFFERING_H
#define FL_CLIENTD_OFFERING_H

/*
 * An offer (client/work/data_summary.h) made on the lane and told on the control stream, never more
 * than half of what that stream queues, so that heartbeats and reports still find room. A reconnect
 * tells the same bytes again. Threading: the loop.
 */

#include "client/daemon/connection.h"
#include "client/daemon/jobs.h"
#include "client/work/data_summary.h"
#include "libfl/base/sm.h"

struct fl_summary_upload {
    const struct fl_jobs *jobs;       /* borrowed, as the next two */
    const struct fl_worker *worker;   /* what makes it */
    struct fl_connection *connection; /* where it is told */
    struct fl_sm sm;
    bool wanted; /* by the session that stands */
    struct fl_offer offer;
};

void fl_summary_upload_init(struct fl_summary_upload *offering, const struct fl_jobs *jobs,
                            const struct fl_worker *worker, struct fl_connection *connection);
/* Welcome wants it: from its first byte. */
void fl_summary_upload_begin(struct fl_summary_upload *offering);
/* More fits the control stream. */
void fl_summary_upload_go_on(struct fl_summary_upload *offering);
/* The stream is gone. */
void fl_summary_upload_stop(struct fl_summary_upload *offering);
/* Another description, while nothing is on the lane: what was made does not count. */
void fl_summary_upload_forget(struct fl_summary_upload *offering);

#endif
