#ifndef FL_CLIENTD_JOIN_H
#define FL_CLIENTD_JOIN_H

/*
 * Joining a federation: Welcome's setup is prepared, or the server is sent the reason why this
 * client cannot take part. A new setup replaces everything that belongs to the previous one, so
 * this part knows every owner of such state; it is replaced only while the training thread is idle.
 *
 * Threading: the loop.
 */

#include "client/daemon/availability.h"
#include "client/daemon/data_watch.h"
#include "client/daemon/download.h"
#include "client/daemon/summary_upload.h"
#include "client/daemon/training_job.h"

struct fl_join_job {
    const struct fl_jobs *jobs;              /* borrowed, as are the next nine */
    struct fl_data_watch *watch;             /* watches the training data */
    struct fl_connection *connection;        /* the source of Welcome */
    struct fl_availability *availability;    /* `when` */
    struct fl_worker *worker;                /* prepared for the setup */
    const struct fl_pending_result *pending; /* may not fit the new setup */
    struct fl_trainings *trainings;
    struct fl_evaluations *evaluations;
    struct fl_downloads *downloads;
    struct fl_summary_upload *summary_upload;
    const struct fl_device_limits *limits; /* in force */
    struct fl_round_key changed; /* the task that found changed data: reconnect once per task */
    char unfit[FL_ERR_BUF_SIZE]; /* why this client leaves, until the stream has ended; "": it stays
                                  */
    uint32_t back_ms;            /* reconnect delay; 0: as after a refusal */
};

/*
 * Handle a Welcome before the session is stepped with `event`, which is filled in; may take the
 * contents of `welcome`. False: the client leaves, or reconnects.
 */
bool fl_joining_welcome(struct fl_join_job *joining, struct fl_wire_welcome *welcome,
                        struct fl_session_event *event);
/*
 * May this client train in the round of a new task? False: today's limit is reached, the device is
 * not available now or the data is missing, so the reason is being sent and the client leaves; or
 * the data changed, so the client reconnects with the new data and the server sends the task again.
 */
bool fl_joining_may_train(struct fl_join_job *joining, struct fl_round_key key);
/* Count a round that starts training now. */
void fl_joining_count_round(struct fl_join_job *joining);
/* Is the client leaving, with the reason being sent? Then it ignores further commands. */
bool fl_joining_told(const struct fl_join_job *joining);
/* The connection ended. True: the client was leaving, and the session got the reason. */
bool fl_joining_down(struct fl_join_job *joining);
/* Drop the setup and everything prepared for it. */
void fl_joining_forget(struct fl_join_job *joining);

#endif
