#ifndef FL_CLIENT_WORK_WORKER_H
#define FL_CLIENT_WORK_WORKER_H

/*
 * What a client does with a task, as plain functions that return when the work is done. They use no
 * connection, loop, thread or clock, so that a daemon, a test and a simulator run the same code.
 * setup.h is the setup of a federation, settle_state.h the client state before the payloads of a
 * task are fetched, inputs.h those payloads, training.h a training, evaluation.h an evaluation,
 * code.h the encoding of an update.
 *
 * A worker is a trainer and the client state kept between rounds, both prepared for one setup at a
 * time.
 *
 * Threading: one call at a time; fl_worker_prepare() and fl_worker_forget() while no other call
 * runs. The other members do not change.
 */

#include "client/store/client_state.h"
#include "client/train/trainer.h"
#include "client/work/setup.h"

/* Peer of log lines that the server can cause (fl_log_peer() limits their rate). */
#define FL_WORK_SERVER "the server"

/* Names of client state that no solver owns; a solver's are "SOLVER.NAME". */
#define FL_KEEP_PERSONAL "own.personal"
#define FL_KEEP_ANCHOR   "own.anchor"
#define FL_KEEP_PREVIOUS "update.previous"
#define FL_KEEP_RESIDUAL "codec.residual"
#define FL_KEEP_MOMENTUM "update.momentum"
#define FL_KEEP_LOCAL    "model.local"

/* The operator's limits on what a server may request. All zero: no limits, and no data summary. */
struct fl_worker_terms {
    bool summaries;         /* a data summary may be sent */
    uint64_t least_group;   /* least samples in each of its means */
    uint64_t least_samples; /* least samples of an update; here and in the next member 0 means 1 */
    uint64_t least_steps;
    uint64_t largest_model; /* bytes of its parameters; 0: no limit */
};

struct fl_worker {
    struct fl_trainer *trainer;    /* owned; NULL: none yet, and nothing is prepared for it */
    struct fl_client_state *keeps; /* owned */
    struct fl_setup *setup;        /* both are prepared for it; a reference; NULL: none */
    const char *state_dir;         /* borrowed; NULL: only `keeps` uses the disk */
    const struct fl_log *log;      /* borrowed; may be NULL */
    struct fl_worker_terms terms;
    uint64_t seed; /* of this client, constant over restarts */
    bool release;  /* fl_train_task.release: return memory between tasks */
};

/* The seed of the client `name`: `configured`, or a hash of the name when that is 0. */
uint64_t fl_worker_seed(const char *name, uint64_t configured);

/* Free the trainer and the client state in memory, release the setup. All zero is allowed. */
void fl_worker_done(struct fl_worker *worker);

/*
 * Prepare the worker for `setup` and take a reference to it. On error nothing is prepared:
 * FL_ESHAPE (the network does not fit the data), FL_ELIMIT, FL_ENOMEM.
 */
FL_MUST_CHECK int fl_worker_prepare(struct fl_worker *worker, struct fl_setup *setup,
                                    struct fl_err *err);
/* Prepare a trainer that has no worker yet for `setup`. FL_ESHAPE, FL_ENOMEM. */
FL_MUST_CHECK int fl_worker_prepare_trainer(struct fl_trainer *trainer,
                                            const struct fl_setup *setup, struct fl_err *err);
/* Release the setup; the worker is prepared for none. */
void fl_worker_forget(struct fl_worker *worker);

/*
 * Why `result`, made by an earlier process or for an earlier Welcome, cannot be reported and sent
 * with the current setup; NULL: it can, or `result` is NULL.
 */
const char *fl_worker_unfit(const struct fl_worker *worker, const struct fl_result *result);

/* The client state name of a solver's `name`: "SOLVER.NAME". FL_ELIMIT: too long. */
FL_MUST_CHECK int fl_kept_name(const struct fl_solver_ops *solver, const char *name,
                               char ret[FL_NAME_MAX]);

#endif
