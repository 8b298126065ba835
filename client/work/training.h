#ifndef FL_CLIENT_WORK_TRAINING_H
#define FL_CLIENT_WORK_TRAINING_H

/*
 * One training: what it starts from is put together, the trainer runs, and what came of it is
 * written in an order that every crash survives:
 *
 *   1  the pending set (keep.h): nothing of it counts before the server counts the round;
 *   2  the held result, which says that a pending set belongs to it;
 *   3  only then does anybody hear of it.
 *
 * Killed before 2 the task comes again and is trained again; a pending set that is there
 * already is written anew. The units that are granted join the set before a Push (code.c).
 *
 * Threading: fl_training_cancel() from any thread while it runs.
 */

#include "client/work/inputs.h"
#include "client/work/worker.h"

/* What a Task says, without its bundles. */
struct fl_task {
    struct fl_round_key key;
    struct fl_round_key counted; /* the last round that the server counted this client in */
    double learning_rate;
    uint64_t seed;
    uint64_t order_seed; /* of the one order that `steps` walk through; 0: not told */
    uint64_t deadline_ms;
    uint32_t n_selected, population; /* 0: not told */
};

/* Progress for logs: done of total steps. */
typedef void fl_training_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct fl_training;

/*
 * Takes `inputs`, chosen and whole, on error too; they have the setup it is for. `worker` has to be
 * prepared for that as long as it runs. `progress` may be NULL. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_training_new(const struct fl_worker *worker, const struct fl_task *task,
                                  struct fl_inputs *inputs, fl_training_progress_fn *progress,
                                  void *ctx, struct fl_training **ret);
void fl_training_free(struct fl_training *training); /* NULL is allowed. */

/* FL_ECANCELED; FL_ENUMERIC: diverged; FL_ESTATE: no model; those of the disk and the trainer. */
FL_MUST_CHECK int fl_training_run(struct fl_training *training, struct fl_err *err);
void fl_training_cancel(struct fl_training *training);

/* What came of it, once: the caller's reference; NULL when the run did not end well. */
struct fl_result *fl_training_take(struct fl_training *training);

#endif
