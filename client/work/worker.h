#ifndef FL_CLIENT_WORK_WORKER_H
#define FL_CLIENT_WORK_WORKER_H

/*
 * The room: what a client does with a task, as plain functions that return when it is done. They
 * know no connection, loop, lane or clock, so that a daemon, a test and a simulator run the same.
 * setup.h is what a server described, settle_state.h what comes before the bundles of a task are
 * fetched, inputs.h those bundles, sim_training.h a training, evaluation.h an evaluation, code.h an
 * update on its way to its bytes.
 *
 * A worker is who does it: a trainer and what is kept between rounds, both prepared for one
 * setup at a time.
 *
 * Threading: one call at a time; fl_worker_prepare() and fl_worker_forget() while none is under
 * way. The rest of a worker does not change.
 */

#include "client/store/client_state.h"
#include "client/train/trainer.h"
#include "client/work/setup.h"

/* The peer of lines that the server can cause (fl_log_peer()). */
#define FL_WORK_SERVER "the server"

/* Names of what is kept that no solver owns; a solver's are "SOLVER.NAME". */
#define FL_KEEP_PERSONAL "own.personal"
#define FL_KEEP_ANCHOR   "own.anchor"
#define FL_KEEP_PREVIOUS "update.previous"
#define FL_KEEP_RESIDUAL "codec.residual"
#define FL_KEEP_LOCAL    "model.local"

/* What the operator of this client lets a server ask for. All zero: no limits, and no summary. */
struct fl_worker_terms {
    bool offers;            /* a data summary may be sent */
    uint64_t least_group;   /* samples in each of its means at least */
    uint64_t least_samples; /* that an update is made of; this and the next: 0 is 1 */
    uint64_t least_steps;
    uint64_t largest_model; /* bytes of its parameters; 0: no limit */
};

struct fl_worker {
    struct fl_trainer *trainer;    /* owned; NULL: none yet, which prepares nothing */
    struct fl_client_state *keeps; /* owned */
    struct fl_setup *setup;        /* what both are prepared for, a reference; NULL: nothing */
    const char *state_dir;         /* borrowed; NULL: nothing but `keeps` touches the disk */
    const struct fl_log *log;      /* borrowed; may be NULL */
    struct fl_worker_terms terms;
    uint64_t seed; /* of this client, the same in every run */
    bool release;  /* fl_train_task.release: other programs want the memory */
};

/* The seed of the client of that name: `configured`, or, when that is 0, one made of the name. */
uint64_t fl_worker_seed(const char *name, uint64_t configured);

/* Frees the trainer and what is kept in memory, gives the setup back. All zero is allowed. */
void fl_worker_done(struct fl_worker *worker);

/*
 * From now on for `setup`, to which a reference is taken. On error nothing is prepared: a network
 * that does not fit the data (FL_ESHAPE), FL_ELIMIT, FL_ENOMEM.
 */
FL_MUST_CHECK int fl_worker_prepare(struct fl_worker *worker, struct fl_setup *setup,
                                    struct fl_err *err);
/* One that has no worker yet, for what `setup` describes. FL_ESHAPE, FL_ENOMEM. */
FL_MUST_CHECK int fl_worker_prepare_trainer(struct fl_trainer *trainer,
                                            const struct fl_setup *setup, struct fl_err *err);
/* Does a client of `setup` keep something between rounds? */
bool fl_worker_client_state(const struct fl_setup *setup);
/* Nothing is described any more. */
void fl_worker_forget(struct fl_worker *worker);

/*
 * Why `result`, made by an earlier run or before another Welcome, cannot be reported and sent
 * under the setup that the worker is prepared for; NULL: it can.
 */
const char *fl_worker_unfit(const struct fl_worker *worker, const struct fl_result *result);

/* What a solver keeps under `name`: "SOLVER.NAME". FL_ELIMIT: too long. */
FL_MUST_CHECK int fl_kept_name(const struct fl_solver_ops *solver, const char *name,
                               char ret[FL_NAME_MAX]);

#endif
