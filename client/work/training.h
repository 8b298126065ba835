#ifndef FL_CLIENT_WORK_TRAINING_H
#define FL_CLIENT_WORK_TRAINING_H

/*
 * One training: what it starts from is put together, the trainer runs, and what came of it is
 * written in an order that every crash survives:
 *
 *   1  the pending set (data_cache.h): nothing of it counts before the server counts the round;
 *   2  the held result, which says that a pending set belongs to it;
 *   3  only then does anybody hear of it.
 *
 * Killed before 2 the task comes again and is trained again; a pending set that is there
 * already is written anew. The units that are granted join the set before a Push (code.c).
 *
 * Threading: fl_training_cancel() from any thread while it runs.
 */

#include "client/work/task.h"
#include "client/work/worker.h"

/* Progress for logs: done of total steps. */
typedef void fl_training_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct fl_training;

/*
 * Takes `inputs`, chosen and whole, on error too. `worker` has to be prepared for their setup as
 * long as it runs. `progress` may be NULL. FL_ESTATE: they are for another model, or for none;
 * FL_ENOMEM.
 */
FL_MUST_CHECK int fl_training_new(const struct fl_worker *worker, const struct fl_task *task,
                                  struct fl_inputs *inputs, fl_training_progress_fn *progress,
                                  void *ctx, struct fl_training **ret, struct fl_err *err);
void fl_training_free(struct fl_training *training); /* NULL is allowed. */

/* FL_ECANCELED; FL_ENUMERIC: diverged; FL_ESTATE: no model; those of the disk and the trainer. */
FL_MUST_CHECK int fl_training_run(struct fl_training *training, struct fl_err *err);
void fl_training_cancel(struct fl_training *training);

/* What came of it, once: the caller's reference; NULL when the run did not end well. */
struct fl_result *fl_training_take(struct fl_training *training);

#endif
