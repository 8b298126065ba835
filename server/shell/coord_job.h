#ifndef FL_SERVER_SHELL_COORD_JOB_H
#define FL_SERVER_SHELL_COORD_JOB_H

/*
 * Jobs of the coordinator: the work that an effect asks for (records, aggregation, commit,
 * evaluation). A job owns copies of what its effect points to, so it can run on any thread while
 * the coordinator continues.
 */

#include "server/work/aggregation.h"
#include "server/work/evaluator.h"

struct fl_coord_shell;

struct fl_coord_job {
    struct fl_coord_shell *shell;
    struct fl_effect e;    /* its arrays are copies; units is NULL, text too except of a pause or an
                              ended attempt */
    bool summaries;        /* the collection of data summaries may change */
    struct fl_blob *theta; /* EVALUATE: the model; a reference */
    /* Results, with `code` FL_OK. For a job that does not run, the owner sets `event` instead. */
    struct fl_aggregation aggregation; /* AGGREGATE */
    struct fl_collection collection;   /* with `summaries` */
    struct fl_evaluated evaluated;     /* EVALUATE */
    double seconds;                    /* that it ran, measured by its owner; 0: not measured */
    int code;
    struct fl_err err;
    struct fl_event event; /* the result for the coordinator; type 0: not taken yet */
    double *distance;      /* owned, what an `event` set from outside points to; or NULL */
    /* The copies. */
    struct fl_participant_rec *parts, *ended;
    struct fl_client_eval *evals;
    struct fl_client_rec
        *clients; /* of the participants (AGGREGATE) or of `ended`, else as in the effect */
    struct fl_round_rec record;
    char text[FL_PAUSE_SIZE]; /* of a pause, or why an attempt ended */
};

/* The job of a PERSIST effect, FORGET_CLIENTS, AGGREGATE, EVALUATE or COMMIT. Coordinator thread.
   NULL: out of memory. */
struct fl_coord_job *fl_coord_job_new(struct fl_coord_shell *shell, const struct fl_effect *e);
void fl_coord_job_free(struct fl_coord_job *job); /* NULL is allowed */
/*
 * Run a job of another type than EVALUATE, whose arithmetic is the caller's, and fill its results.
 * Any thread: PERSIST effects, FORGET_CLIENTS and COMMIT on that of the store, one after the other.
 */
void fl_coord_job_run(struct fl_coord_job *job);

#endif
