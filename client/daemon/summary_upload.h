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

struct fl_offering {
    const struct fl_jobs *jobs;       /* borrowed, as the next two */
    const struct fl_worker *worker;   /* what makes it */
    struct fl_connection *connection; /* where it is told */
    struct fl_sm sm;
    bool wanted; /* by the session that stands */
    struct fl_offer offer;
};

void fl_offering_init(struct fl_offering *offering, const struct fl_jobs *jobs,
                      const struct fl_worker *worker, struct fl_connection *connection);
/* Welcome wants it: from its first byte. */
void fl_offering_begin(struct fl_offering *offering);
/* More fits the control stream. */
void fl_offering_go_on(struct fl_offering *offering);
/* The stream is gone. */
void fl_offering_stop(struct fl_offering *offering);
/* Another description, while nothing is on the lane: what was made does not count. */
void fl_offering_forget(struct fl_offering *offering);

#endif
