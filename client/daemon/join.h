#ifndef FL_CLIENTD_JOIN_H
#define FL_CLIENTD_JOIN_H

/*
 * Joining a federation: what Welcome describes is prepared, or the server is told why this client
 * cannot do it. It replaces everything that belongs to the description before, so it knows all who
 * hold something of that; a description is replaced only while nothing is on the lane.
 *
 * Threading: the loop.
 */

#include "client/daemon/data_watch.h"
#include "client/daemon/download.h"
#include "client/daemon/summary_upload.h"
#include "client/daemon/training_job.h"

struct fl_join_job {
    const struct fl_jobs *jobs;           /* borrowed, as the next eight */
    struct fl_data_watch *watch;          /* of the data that tasks are for */
    struct fl_connection *connection;     /* what Welcome came on */
    struct fl_worker *worker;             /* who is prepared */
    const struct fl_pending_result *held; /* which may not fit any more */
    struct fl_trainings *trainings;
    struct fl_evaluations *evaluations;
    struct fl_downloads *downloads;
    struct fl_summary_upload *offering;
    uint64_t rounds_per_day;     /* 0: no limit */
    struct fl_round_key changed; /* the task that found other data; once is enough */
    char unfit[FL_ERR_BUF_SIZE]; /* why this client leaves, while the server is being told; "" */
    uint32_t back_ms;            /* when it comes back; 0: as after a refusal */
};

/* Contents of `welcome` may be taken. */
void fl_joining_welcome(struct fl_join_job *joining, struct fl_wire_welcome *welcome);
/*
 * May this client train in the round of a new task? False: not today, or its data is gone: the
 * server is being told, and the client leaves; or its data changed: it reconnects with what is
 * there now, and the task comes again.
 */
bool fl_joining_may_train(struct fl_join_job *joining, struct fl_round_key key);
/* It does, now. */
void fl_joining_count_round(struct fl_join_job *joining);
/* Is the server being told that this client leaves? Then nothing more of it counts. */
bool fl_joining_told(const struct fl_join_job *joining);
/* The connection is gone: the session hears why, if it was given up for that. */
bool fl_joining_down(struct fl_join_job *joining);
/* Nothing is described any more. */
void fl_joining_forget(struct fl_join_job *joining);

#endif
