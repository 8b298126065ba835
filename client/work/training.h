#ifndef FL_CLIENT_WORK_TRAINING_H
#define FL_CLIENT_WORK_TRAINING_H

/*
 * One training: its inputs are assembled, the trainer runs, and the result is written in a
 * crash-safe order:
 *
 *   1  the pending client state (client_state.h): it takes effect only when the server aggregates
 *      the round;
 *   2  the pending result, which records that this client state belongs to it;
 *   3  only then the session and the server are informed.
 *
 * After a crash before 2 the server sends the task again and it is trained again; an existing
 * pending client state is overwritten. The upload mask joins the client state before a Push
 * (code.c).
 *
 * Threading: fl_training_cancel() from any thread while it runs.
 */

#include "client/work/wanted.h"
#include "client/work/worker.h"

/* Progress for logs: steps done of total. */
typedef void fl_training_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct fl_training;

/*
 * Takes `inputs`, chosen and complete, on error too. `worker` has to stay prepared for their setup
 * until the training is freed. `progress` may be NULL. FL_ESTATE: the inputs are for another setup,
 * or for none; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_training_new(const struct fl_worker *worker, const struct fl_task *task,
                                  struct fl_inputs *inputs, fl_training_progress_fn *progress,
                                  void *ctx, struct fl_training **ret, struct fl_err *err);
void fl_training_free(struct fl_training *training); /* NULL is allowed. */

/*
 * FL_ECANCELED; FL_ENUMERIC: diverged; FL_ESTATE: no model; FL_EPERM: below a limit of the
 * operator; errors of the disk and the trainer.
 */
FL_MUST_CHECK int fl_training_run(struct fl_training *training, struct fl_err *err);
void fl_training_cancel(struct fl_training *training);

/* The result, once: the caller's reference; NULL when the run failed. */
struct fl_result *fl_training_take(struct fl_training *training);

#endif
