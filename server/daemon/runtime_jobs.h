#ifndef FL_SERVERD_DRIVER_JOBS_H
#define FL_SERVERD_DRIVER_JOBS_H

/*
 * Jobs of the coordinator on the worker threads. A job owns copies of all it needs, runs on its
 * thread and returns to the coordinator's loop, where its result is an event of the next step.
 */

#include "server/daemon/runtime_impl.h"
#include "server/work/aggregation.h"

struct fl_job {
    struct fl_runtime *runtime;
    struct fl_effect e;               /* copies of all but units; the text only for PERSIST_PAUSE */
    struct fl_participant_rec *parts; /* deep copy */
    struct fl_client_rec *clients;    /* of the participants (AGGREGATE), or as in the effect */
    struct fl_round_rec record;
    bool has_offers;           /* the collection of data summaries may change */
    char pause[FL_PAUSE_SIZE]; /* PERSIST_PAUSE */
    /* Inputs that the job references, and results. */
    struct fl_blob *theta;
    struct fl_aggregation aggregation;
    struct fl_offered offered;
    double accuracy, loss;
    int code;
    struct fl_err err;
};

/* Copies the contents of the effect; NULL: out of memory. */
struct fl_job *fl_job_new(struct fl_runtime *runtime, const struct fl_effect *e);
void fl_job_free(struct fl_job *job);
/* Takes `job`, which may be NULL: the core then gets FL_ENOMEM. */
void fl_job_submit(struct fl_runtime *runtime, struct fl_worker_thread *thread, struct fl_job *job,
                   const struct fl_effect *e, fl_loop_cb work, fl_loop_cb done);
/* Reports a failed job to the core; false: it succeeded. */
bool fl_job_failed(struct fl_job *job);

#endif
