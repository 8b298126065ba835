#ifndef FL_SIM_JOURNAL_H
#define FL_SIM_JOURNAL_H

/*
 * What a run took from arithmetic, in the order in which it took it: answers of the crew, of the
 * aggregation and of the evaluation, and the commits. A run that is begun again takes them from
 * here up to the last committed round, so that the virtual world comes to the same point without
 * training anything, and goes on from there. What was written behind that commit is cut off.
 *
 * A file of records with checksums. A kill leaves at most a record that is cut short, which
 * counts as none; nothing is synced, as only the process may die.
 *
 * Threading: one thread.
 */

#include "server/core/coord.h"
#include "tools/fl_sim/engine/worker_pool.h"

struct fl_journal;

/*
 * Open or begin `path`. `committed`: the newest round that the server's folder has. FL_ESTATE: the
 * journal does not reach it; FL_EFORMAT: no journal.
 */
FL_MUST_CHECK int fl_journal_open(const char *path, uint64_t committed, struct fl_journal **ret,
                                  struct fl_err *err);
void fl_journal_close(struct fl_journal *journal); /* NULL is allowed. */
/* Numbers are taken from it still. */
bool fl_journal_replays(const struct fl_journal *journal);

/* --- while it replays: FL_ESTATE when something else comes next --- */

FL_MUST_CHECK int fl_journal_take(struct fl_journal *journal, enum fl_job_kind kind,
                                  uint32_t client, struct fl_round_key key,
                                  struct fl_job_answer *ret, struct fl_err *err);
/* The event's own numbers; `*ret_distance` is owned, NULL: there is none. */
FL_MUST_CHECK int fl_journal_take_aggregated(struct fl_journal *journal, struct fl_event *ret,
                                             double **ret_distance, struct fl_err *err);
FL_MUST_CHECK int fl_journal_take_evaluated(struct fl_journal *journal, double *ret_accuracy,
                                            double *ret_loss, struct fl_err *err);
/* After the commit of the last round that is known it replays no more. */
FL_MUST_CHECK int fl_journal_take_commit(struct fl_journal *journal, uint64_t round,
                                         struct fl_err *err);

/* --- afterwards --- */

FL_MUST_CHECK int fl_journal_put(struct fl_journal *journal, enum fl_job_kind kind, uint32_t client,
                                 struct fl_round_key key, const struct fl_job_answer *answer);
FL_MUST_CHECK int fl_journal_put_aggregated(struct fl_journal *journal,
                                            const struct fl_event *event, size_t n_distance);
FL_MUST_CHECK int fl_journal_put_evaluated(struct fl_journal *journal, double accuracy,
                                           double loss);
/* Before the round is committed: all of it is in the file. */
FL_MUST_CHECK int fl_journal_put_commit(struct fl_journal *journal, uint64_t round,
                                        struct fl_err *err);

#endif
