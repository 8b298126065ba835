#ifndef FL_CLIENTD_DOWNLOAD_H
#define FL_CLIENTD_DOWNLOAD_H

/*
 * Downloads of payloads: those of the newest task, and the model of an evaluation, each with its
 * own memory. Threading: the loop.
 */

#include "client/daemon/connection.h"
#include "client/daemon/evaluation_job.h"
#include "client/daemon/jobs.h"
#include "client/work/wanted.h"

struct fl_download;

struct fl_downloads {
    const struct fl_jobs *jobs;         /* borrowed, as are all but the last two */
    struct fl_connection *connection;   /* the connection to fetch through */
    const struct fl_worker *worker;     /* the worker that uses them */
    struct fl_wanted *wanted;           /* the newest task and evaluation */
    struct fl_evaluations *evaluations; /* receives the model of an evaluation */
    struct fl_download *task, *model;   /* NULL: none */
};

/* Fetch the payloads of the newest task, continuing a broken download. Errors are logged. */
FL_MUST_CHECK int fl_downloads_begin_task(struct fl_downloads *downloads, struct fl_round_key key,
                                          struct fl_err *err);
/* Move the complete payloads into `ret` (empty without a download); the caller owns them. */
void fl_downloads_take(struct fl_downloads *downloads, struct fl_inputs *ret);
void fl_downloads_cancel_task(struct fl_downloads *downloads);
/*
 * Fetch the model of the newest evaluation, then start that evaluation. FL_ESTATE: the previous
 * model is still being fetched; errors of inputs.h and of the connection.
 */
FL_MUST_CHECK int fl_downloads_begin_model(struct fl_downloads *downloads, struct fl_err *err);

#endif
