#ifndef FL_SERVER_WORK_COMMIT_H
#define FL_SERVER_WORK_COMMIT_H

/* The progress of a federation: the last committed round, the aggregated outcome of the open
   one, and the commit. */

#include "server/work/server_work.h"

/* The collection of data summaries (summary_work.h). */
struct fl_collection {
    struct fl_file *file; /* owned; NULL: not fixed yet, or not needed */
    uint8_t digest[FL_DIGEST_SIZE];
};

/* Belongs to one thread. While a call here, an aggregation or an evaluation uses a part of it on
   another thread, that part must not be changed. */
struct fl_progress {
    struct fl_outcome committed; /* of the last committed round: start of the open one */
    struct fl_outcome next;      /* aggregated, not committed; without theta: nothing is */
    struct fl_round_rec totals;  /* over all committed rounds, as fl_store_totals() */
    struct fl_collection collection;
};
void fl_progress_done(struct fl_progress *progress);

/* The model that the open round ends with: the aggregated one, or without one the model that it
   started with. */
const struct fl_model_state *fl_progress_model(const struct fl_progress *progress);
/* Takes the aggregated outcome, and frees an earlier one. */
void fl_progress_aggregated(struct fl_progress *progress, struct fl_outcome *outcome);
/* Takes the collection of data summaries, if `collection` has one, and frees the earlier one. */
void fl_progress_collection(struct fl_progress *progress, struct fl_collection *collection);

struct fl_commit {
    const struct fl_progress *progress;
    const struct fl_round_rec *record;
    const struct fl_client_rec *clients; /* the records that changed */
    size_t n_clients;
    const struct fl_participant_rec *parts; /* their clients are the first ones of `clients` */
    size_t n_parts;
    const struct fl_client_eval *evals; /* of participants first, in their order */
    size_t n_evals;
    uint64_t wall_ms;
    uint64_t epoch; /* of the next round; 0: unchanged on disk */
};
/*
 * On the store's thread: writes the checkpoint with its vectors and the seal of its personal
 * models, then the records in one transaction, then applies retention. On an error no record of the
 * round is on disk. Failing to remove an older file is no error: it is logged.
 */
FL_MUST_CHECK int fl_commit_run(const struct fl_federation *federation,
                                const struct fl_commit *commit, struct fl_err *err);
/* `round` starts from what is committed, in this epoch (fl_round_size): if it is the first of
   the epoch, the server's sums of client state are reset to zero. FL_ENOMEM: nothing changed. */
FL_MUST_CHECK int fl_progress_enter(const struct fl_federation *federation,
                                    struct fl_progress *progress, uint64_t round, uint64_t epoch);
/* The commit succeeded: the outcome becomes the committed one. */
void fl_progress_committed(struct fl_progress *progress, const struct fl_round_rec *record);

#endif
