#ifndef FL_CLIENTD_DOWNLOAD_H
#define FL_CLIENTD_DOWNLOAD_H

/*
 * Bundles on their way to this client: those of the newest task, and the model of an evaluation,
 * each with its own memory. Threading: the loop.
 */

#include "client/daemon/connection.h"
#include "client/daemon/evaluation_job.h"
#include "client/daemon/jobs.h"
#include "client/work/task.h"

struct fl_download;

struct fl_downloads {
    const struct fl_jobs *jobs;         /* borrowed, as all but the last two */
    struct fl_connection *connection;   /* where they come from */
    const struct fl_worker *worker;     /* whom they are for */
    struct fl_wanted *wanted;           /* what the server asked for */
    struct fl_evaluations *evaluations; /* what goes on with a model */
    struct fl_download *task, *model;   /* NULL: none */
};

/* The bundles of the newest task, from where an earlier try broke off; then FETCHED. */
void fl_downloads_begin_task(struct fl_downloads *downloads, struct fl_round_key key);
/* Those bundles once they are whole, into `ret` (empty otherwise); the caller's. */
void fl_downloads_take(struct fl_downloads *downloads, struct fl_inputs *ret);
void fl_downloads_cancel_task(struct fl_downloads *downloads);
/* The model of the newest evaluation, which then begins. */
void fl_downloads_begin_model(struct fl_downloads *downloads);

#endif
