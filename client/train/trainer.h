#ifndef FL_CLIENT_TRAIN_TRAINER_H
#define FL_CLIENT_TRAIN_TRAINER_H

/*
 * Local training: from a received model to a result, by the built-in engine or by the
 * user's own program. Runs on its own thread, never in an event loop, and can be
 * cancelled between steps.
 *
 * Threading: one call at a time per trainer; `cancel` may be set from any thread.
 */

#include <stdatomic.h>

#include "libfl/data/dataset.h"
#include "libfl/model/task.h"
#include "libfl/program/persistent.h"
#include "libfl/strategy/strategy.h"

/* What the server described in Welcome; borrowed by fl_trainer_prepare() for the call. */
struct fl_train_model {
    const struct fl_layout *layout;
    struct fl_net_spec net; /* n_layers 0: only the units and tensors are described */
    const struct fl_solver_ops *solver;
    const struct fl_options *solver_options;
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
    const struct fl_personal_ops *personal;
    const struct fl_options *personal_options; /* copied */
    const struct fl_space *space;              /* of the tasks; NULL: none */
    unsigned metrics; /* of the built-in engine's evaluations: a set of 1u << enum fl_net_metric */
};

struct fl_train_task {
    struct fl_task asked; /* a command is ended after deadline_ms; 0: no such limit */
    const float *model;   /* where training starts, exported order */
    /* Of fl_solver_setup; NULL: `model`. */
    const float *anchor;
    /* personal.own: `delta` of the result holds parameters, not a displacement from `model`. */
    bool raw;
    /*
     * The built-in engine frees its work memory after the last step, before it allocates the
     * result: lower peak memory, and a slightly slower first step of the next task.
     */
    bool release;
    /*
     * Updates are folded into this space. The built-in engine trains in it, and so does a program
     * that declared the part `space`; others train all entries. NULL: none.
     */
    const struct fl_space *space;
    /*
     * The steps of the personal model of a policy with `beside`, in place of the solver's; inputs
     * and kept are not read. Only where fl_trainer_prepare() got such a policy.
     */
    bool beside;
    bool evaluate_trained; /* fill `trained` of the result when there is test data */
    uint64_t summary_seed; /* seed that fl_trainer_summary() was called with */
    struct fl_solver_bytes
        own_summary; /* data summary sent with that seed; NULL: it is made again */
    /* In the order of solver->inputs and solver->keeps; NULL when it has none. */
    const struct fl_solver_bytes *inputs;
    const struct fl_solver_bytes *kept;
    atomic_bool *cancel;
    /* Progress for logs: done of total steps; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

struct fl_train_result {
    uint64_t samples, steps;
    double train_loss;
    float *delta;      /* trained - received, exported order; owned, free() */
    float *divergence; /* [units], trainable entries; owned, free() */
    bool has_received; /* evaluation of the received model on the local test data */
    bool has_trained;  /* of the personal model, after training */
    struct fl_evaluation received, trained;
    /* In the order of solver->keeps and solver->sends; owned. */
    struct fl_buf *kept, *sent;
    size_t n_kept, n_sent;
};
void fl_train_result_done(struct fl_train_result *result);

struct fl_trainer;

/*
 * Built-in engine over `train` (and `test`, may be NULL): keeps references. `kernels` compute;
 * NULL: the fastest of this machine.
 */
FL_MUST_CHECK int fl_trainer_builtin(const struct fl_dataset *train, const struct fl_dataset *test,
                                     const struct fl_kernels *kernels, struct fl_trainer **ret,
                                     struct fl_err *err);
/*
 * Replaces the data: another client's, or another part of it. Results are bit for bit those of a
 * new trainer over this data. Keeps references; fl_trainer_prepare() stays in effect. On error the
 * previous data stays. FL_EINVAL: no samples; FL_ESHAPE as fl_trainer_prepare(); FL_EUNIMPL: a
 * command trainer; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_trainer_set_data(struct fl_trainer *trainer, const struct fl_dataset *train,
                                      const struct fl_dataset *test, struct fl_err *err);

/*
 * The following tasks of a command trainer are for this client, which is copied. FL_EUNIMPL: the
 * built-in engine; the program is told with its next task, where it may be refused
 * (fl_persistent_act_for()). FL_ENOMEM.
 */
FL_MUST_CHECK int fl_trainer_act_for(struct fl_trainer *trainer,
                                     const struct fl_persistent_client *client, struct fl_err *err);

/* The user's own program (docs/trainers.md). */
struct fl_command_conf {
    /* `purpose` NULL: "train"; `client` NULL: "". */
    struct fl_persistent_conf program;
    uint64_t time_limit_ms;  /* 0: only the task's deadline */
    uint64_t first_limit_ms; /* limit of runs before the first good one; 0: only the other two */
    /*
     * Limit as a multiple of its longest good run, at least straggler_min_ms; 0: only the time
     * limit and the deadline.
     */
    double straggler_factor;
    uint64_t straggler_min_ms;
};
/*
 * Does not start the program. FL_ECONF: no program is given; the errors of fl_persistent_create().
 */
FL_MUST_CHECK int fl_trainer_command(const struct fl_command_conf *conf, struct fl_trainer **ret,
                                     struct fl_err *err);
/*
 * Starts the program of a persistent trainer if it does not run, before any other call;
 * `*ret_samples` and `*ret_test_samples` are the numbers it declares, the latter 0 when it cannot
 * evaluate. May be called again after an error. The errors of fl_persistent_start().
 */
FL_MUST_CHECK int fl_trainer_start(struct fl_trainer *trainer, uint64_t *ret_samples,
                                   uint64_t *ret_test_samples, struct fl_err *err);
/* Checks the program and its script without starting it: fl_program_check(). FL_ECONF: no argv. */
FL_MUST_CHECK int fl_trainer_command_find(const char *const *argv, struct fl_err *err);
void fl_trainer_free(struct fl_trainer *trainer);

/*
 * Prepares for the model that the server described. FL_ESHAPE: the network does not fit the data
 * (inputs, label count), with both numbers. Called again after every Welcome.
 */
FL_MUST_CHECK int fl_trainer_prepare(struct fl_trainer *trainer, const struct fl_train_model *model,
                                     struct fl_err *err);
/*
 * Train. FL_ECANCELED; FL_ENUMERIC: diverged (loss or parameters not finite);
 * command: FL_EIO and others with exit code and the tail of its stderr.
 */
FL_MUST_CHECK int fl_trainer_run(struct fl_trainer *trainer, const struct fl_train_task *task,
                                 struct fl_train_result *ret, struct fl_err *err);
/* Current number of training samples; 0: unknown. */
uint64_t fl_trainer_samples(const struct fl_trainer *trainer);
/*
 * Appends the data summary of the solver (fl_solver_ops.summary) to `out`. FL_EUNIMPL: a command
 * trainer; FL_ESTATE: the solver has none.
 */
FL_MUST_CHECK int fl_trainer_summary(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out,
                                     struct fl_err *err);
/*
 * Evaluate task->model on the local test data, then, when personal.adapts, a copy of it that was
 * fitted to the local data. `*ret_adapted` has 0 samples when it was not. FL_ENOENT without test
 * data; FL_ECANCELED; FL_ENUMERIC when fitting diverges.
 */
FL_MUST_CHECK int fl_trainer_adapt(struct fl_trainer *trainer, const struct fl_train_task *task,
                                   struct fl_evaluation *ret_received,
                                   struct fl_evaluation *ret_adapted, struct fl_err *err);
/* Evaluate a model on the local test data; FL_ENOENT without test data; FL_ECANCELED: `cancel`,
   which may be NULL, was set. */
FL_MUST_CHECK int fl_trainer_evaluate(struct fl_trainer *trainer, const float *model,
                                      atomic_bool *cancel, struct fl_evaluation *ret,
                                      struct fl_err *err);

/*
 * To be called when idle: a persistent program may end itself. Returns in how many ms to call it
 * again; 0: not before the next task.
 */
uint64_t fl_trainer_rest(struct fl_trainer *trainer);
/* Ends the persistent program, on the thread that runs the tasks. */
void fl_trainer_stop(struct fl_trainer *trainer);
/* Cancels the current and all later tasks of the program. Any thread; cannot be undone. */
void fl_trainer_interrupt(struct fl_trainer *trainer);

#endif
