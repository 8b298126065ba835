#ifndef FL_SERVER_WORK_COMMIT_H
#define FL_SERVER_WORK_COMMIT_H

/* How far a federation is: the last committed round, what was aggregated behind it, the commit. */

#include "server/work/server_work.h"

/* What clients told of their data (summary_work.h). */
struct fl_offered {
    struct fl_file *file; /* owned; NULL: not fixed, or not wanted */
    uint8_t digest[FL_DIGEST_SIZE];
};

/*
 * Belongs to one thread. While a call here, an aggregation or an evaluation runs elsewhere over a
 * part of it, that part is left alone.
 */
struct fl_progress {
    struct fl_outcome committed; /* of the last committed round: what the open one begins with */
    struct fl_outcome next;      /* aggregated, not committed; without theta: nothing is */
    struct fl_round_rec totals;  /* over all committed rounds, as fl_store_totals() */
    struct fl_offered offered;
};
void fl_progress_done(struct fl_progress *progress);

/* What the open round ends with: the model that was aggregated, or without one that it began with.
 */
const struct fl_model_state *fl_progress_model(const struct fl_progress *progress);
/* Takes what was aggregated, in place of what was before. */
void fl_progress_aggregated(struct fl_progress *progress, struct fl_outcome *outcome);
/* Takes the collection of data summaries, if `offered` has one, in place of the one before. */
void fl_progress_offered(struct fl_progress *progress, struct fl_offered *offered);

struct fl_commit {
    const struct fl_progress *progress;
    const struct fl_round_rec *record;
    const struct fl_client_rec *clients; /* whose records changed */
    size_t n_clients;
    uint64_t wall_ms;
    uint64_t epoch; /* of the next round; 0: as it is on disk */
};
/*
 * On the store's thread: the checkpoint with its vectors and the seal of its mixtures, the records
 * in one transaction, then what retention says. On an error no record of the round is there. That
 * an older file cannot be removed is none: the log says it.
 */
FL_MUST_CHECK int fl_commit_run(const struct fl_federation *federation,
                                const struct fl_commit *commit, struct fl_err *err);
/*
 * `round` begins behind what is committed, in this epoch (fl_round_size): when it is the first of
 * it, nothing is in the sums of what clients keep. FL_ENOMEM: nothing changed.
 */
FL_MUST_CHECK int fl_progress_enter(const struct fl_federation *federation,
                                    struct fl_progress *progress, uint64_t round, uint64_t epoch);
/* The commit was carried out: the federation goes on from its round. */
void fl_progress_committed(struct fl_progress *progress, const struct fl_round_rec *record);

#endif
