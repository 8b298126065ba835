#ifndef FL_SERVERD_DRIVER_JOBS_H
#define FL_SERVERD_DRIVER_JOBS_H

/*
 * Work of the coordinator that runs on a lane. A job owns copies of all it needs, runs on
 * its lane and comes back to the coordinator's loop, where its answer is stepped in.
 */

#include "server/daemon/runtime_impl.h"
#include "server/work/aggregation.h"

struct fl_job {
    struct fl_runtime *runtime;
    struct fl_effect e;               /* copies of all but units; text of a pause only */
    struct fl_participant_rec *parts; /* deep copy */
    struct fl_client_rec *clients;    /* of the parts (AGGREGATE), or as the effect */
    struct fl_round_rec record;
    bool has_offers;           /* the collection of data summaries may become another */
    char pause[FL_PAUSE_SIZE]; /* PERSIST_PAUSE */
    /* Inputs kept alive, and results. */
    struct fl_blob *theta;
    struct fl_aggregation aggregation;
    struct fl_offered offered;
    double accuracy, loss;
    int code;
    struct fl_err err;
};

/* Copies of what the effect names; NULL without memory. */
struct fl_job *fl_job_new(struct fl_runtime *runtime, const struct fl_effect *e);
void fl_job_free(struct fl_job *job);
/* Takes `job`, which may be NULL: the core is then told that there is no memory. */
void fl_job_submit(struct fl_runtime *runtime, struct fl_worker_thread *thread, struct fl_job *job,
                   const struct fl_effect *e, fl_loop_cb work, fl_loop_cb done);
/* The core was told of the failure. */
bool fl_job_failed(struct fl_job *job);

#endif
