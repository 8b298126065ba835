#ifndef FL_SIM_JOURNAL_H
#define FL_SIM_JOURNAL_H

/*
 * The journal of a run: all results of arithmetic in the order in which the run used them (answers
 * of the worker pool, of the aggregation and of the evaluation, sizes of downloads), and the
 * commits. A restarted run reads them from here up to the last committed round, so that the
 * simulation reaches the same state without training, and continues from there. Records after that
 * commit are cut off.
 *
 * A file of records with checksums. After a kill the last record may be incomplete and is ignored;
 * nothing is synced, as only the process may die, not the machine.
 *
 * Threading: one thread.
 */

#include "server/core/coord.h"
#include "server/work/measure.h"
#include "tools/fl_sim/engine/worker_pool.h"

struct fl_journal;

/* An evaluation by the server. */
struct fl_journal_evaluated {
    struct fl_evaluated found;
    double backdoor_success; /* of fl_sim_round; -1: not measured */
};

/*
 * Open or create `path`. `committed`: the newest round in the server's folder. FL_ESTATE: the
 * journal does not reach this round; FL_EFORMAT: not a journal.
 */
FL_MUST_CHECK int fl_journal_open(const char *path, uint64_t committed, struct fl_journal **ret,
                                  struct fl_err *err);
void fl_journal_close(struct fl_journal *journal); /* NULL is allowed. */
/* True while results are read from the journal. */
bool fl_journal_replays(const struct fl_journal *journal);

/* --- during the replay: FL_ESTATE when the next record is of another kind --- */

FL_MUST_CHECK int fl_journal_take(struct fl_journal *journal, enum fl_job_kind kind,
                                  uint32_t client, struct fl_round_key key,
                                  struct fl_job_answer *ret, struct fl_err *err);
/* The event but for its type and `seq`; what it points to is in `*ret_numbers`, which is owned, or
   NULL, and `robust_clients`, borrowed until the next call. */
FL_MUST_CHECK int fl_journal_take_aggregated(struct fl_journal *journal, struct fl_event *ret,
                                             double **ret_numbers, struct fl_err *err);
FL_MUST_CHECK int fl_journal_take_evaluated(struct fl_journal *journal,
                                            struct fl_journal_evaluated *ret, struct fl_err *err);
/* The size of a download of the model, where it depends on the model that the client held. */
FL_MUST_CHECK int fl_journal_take_download(struct fl_journal *journal, uint32_t client,
                                           uint64_t round, uint64_t *ret_bytes, struct fl_err *err);
/* The replay ends with the commit of the last known round. */
FL_MUST_CHECK int fl_journal_take_commit(struct fl_journal *journal, uint64_t round,
                                         struct fl_err *err);

/* --- after the replay --- */

FL_MUST_CHECK int fl_journal_put(struct fl_journal *journal, enum fl_job_kind kind, uint32_t client,
                                 struct fl_round_key key, const struct fl_job_answer *answer);
FL_MUST_CHECK int fl_journal_put_aggregated(struct fl_journal *journal,
                                            const struct fl_event *event, size_t n_parts);
FL_MUST_CHECK int fl_journal_put_evaluated(struct fl_journal *journal,
                                           const struct fl_journal_evaluated *evaluated);
FL_MUST_CHECK int fl_journal_put_download(struct fl_journal *journal, uint32_t client,
                                          uint64_t round, uint64_t bytes);
/* Call before the round is committed: returns when all of it is in the file. */
FL_MUST_CHECK int fl_journal_put_commit(struct fl_journal *journal, uint64_t round,
                                        struct fl_err *err);

#endif
