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
#include "libfl/program/persistent.h"
#include "libfl/strategy/strategy.h"

/* What the server described in Welcome; borrowed by fl_trainer_prepare() for the call. */
struct fl_train_model {
    const struct fl_layout *layout;
    struct fl_net_spec net; /* n_layers 0: only units and tensors are known */
    const struct fl_solver_ops *solver;
    const struct fl_options *solver_options;
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
    const struct fl_personal_ops *personal;
    const struct fl_options *personal_options; /* copied */
};

struct fl_train_task {
    uint64_t round;
    uint32_t attempt;
    const float *model; /* where training starts, exported order */
    /* Of fl_solver_setup; NULL: `model`. */
    const float *anchor;
    /* personal.own: `delta` of the result holds parameters, not a displacement from `model`. */
    bool raw;
    /*
     * What the built-in engine works in goes back to the system when the steps are made, before the
     * result takes its memory: lower peaks, and a first step of the next task that is a little
     * slower.
     */
    bool release;
    bool evaluate_trained; /* fill `trained` of the result when there is test data */
    double learning_rate;
    uint64_t seed;
    uint64_t offer_seed;              /* what fl_trainer_offer() was called with */
    struct fl_solver_bytes own_offer; /* what was told with it; NULL: what it makes with it now */
    /* Of the one order that `steps` walk through, the same in every round; 0: not told. */
    uint64_t order_seed;
    uint64_t deadline_ms; /* span; the command is ended after it */
    uint32_t n_selected;  /* K_t; 0: not told */
    uint32_t population;  /* N; 0: not told */
    /* In the order of solver->inputs and solver->keeps; NULL when it has none. */
    const struct fl_solver_bytes *inputs;
    const struct fl_solver_bytes *kept;
    atomic_bool *cancel;
    /* Progress for logs: done of total steps; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

struct fl_train_evaluation {
    uint64_t samples, correct;
    double loss_sum;
};

struct fl_train_result {
    uint64_t samples, steps;
    double train_loss;
    float *delta;      /* trained - received, exported order; owned, free() */
    float *divergence; /* [units], trainable entries; owned, free() */
    bool has_received; /* evaluation of the received model on the local test data */
    uint64_t eval_samples, eval_correct;
    double eval_loss_sum;
    bool has_trained; /* the personal model, after training */
    struct fl_train_evaluation trained;
    /* In the order of solver->keeps and solver->sends; owned. */
    struct fl_buf *kept, *sent;
    size_t n_kept, n_sent;
};
void fl_train_result_done(struct fl_train_result *result);

struct fl_trainer;

/*
 * Built-in engine over `train` (and `test`, may be NULL): keeps references. `kernels` compute;
 * NULL: the fastest that are here.
 */
FL_MUST_CHECK int fl_trainer_builtin(const struct fl_dataset *train, const struct fl_dataset *test,
                                     const struct fl_kernels *kernels, struct fl_trainer **ret,
                                     struct fl_err *err);
/*
 * From now on over these, in place of those before: another client's, or another part of it. What
 * then comes of a task is bit for bit what a new trainer over them makes of it. Keeps references;
 * what was prepared stays so. On error the data before stays. FL_EINVAL: no samples; FL_ESHAPE as
 * fl_trainer_prepare(); FL_EUNIMPL: a command trainer; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_trainer_set_data(struct fl_trainer *trainer, const struct fl_dataset *train,
                                      const struct fl_dataset *test, struct fl_err *err);

struct fl_command_conf {
    const char *const *argv; /* NULL-terminated; {task} is replaced by the task file's path */
    const char *work_dir;    /* a folder per task is made in it */
    uint64_t time_limit_ms;  /* 0: only the task's deadline */
    uint64_t first_limit_ms; /* of runs before the first good one; 0: only the other two */
    /*
     * Ended after so many times its longest good run, straggler_min_ms at least; 0: only after the
     * time limit and the deadline.
     */
    double straggler_factor;
    uint64_t straggler_min_ms;
    uint64_t memory_bytes; /* 0: none */
    enum fl_program_memory memory_of;
    const char *const *environment; /* "NAME=value", NULL-terminated; NULL: as ours */
    uint64_t descriptors;           /* soft limit of open ones; 0: that of this process */
    uint64_t samples;               /* that it has, before the first result says; 0: not known */
    const char *data;               /* told to the program in task.json as its data; NULL: none */
    const struct fl_log *log;       /* gets what it writes to stderr; may be NULL */
};
FL_MUST_CHECK int fl_trainer_command(const struct fl_command_conf *conf, struct fl_trainer **ret,
                                     struct fl_err *err);
/* Of a program that stays (docs/trainer-protocol.md). */
struct fl_persistent_options {
    const char *client; /* told to the program */
    uint64_t start_limit_ms, cancel_grace_ms;
    uint64_t idle_exit_ms;                   /* 0: never */
    const struct fl_persistent_clock *clock; /* as in fl_persistent_conf */
};
/*
 * Starts nothing. Of `conf` work_dir and samples are not used. FL_ENOENT, FL_EPERM: no such
 * program; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_trainer_persistent(const struct fl_command_conf *conf,
                                        const struct fl_persistent_options *options,
                                        struct fl_trainer **ret, struct fl_err *err);
/*
 * Start the program of such a trainer when it does not run, before anything else is asked of it;
 * `*ret_samples` and `*ret_test_samples` are what it says it has, the latter 0 when it cannot
 * evaluate. After an error it may be called again. The errors of fl_persistent_start().
 */
FL_MUST_CHECK int fl_trainer_start(struct fl_trainer *trainer, uint64_t *ret_samples,
                                   uint64_t *ret_test_samples, struct fl_err *err);
/* Is the program there, in PATH when it has no slash, and may it be run? Says what is wrong. */
FL_MUST_CHECK int fl_trainer_command_find(const char *program, struct fl_err *err);
void fl_trainer_free(struct fl_trainer *trainer);

/*
 * Take what the server described. FL_ESHAPE: the network does not fit the data (inputs,
 * label count), with both numbers. Called again after every Welcome.
 */
FL_MUST_CHECK int fl_trainer_prepare(struct fl_trainer *trainer, const struct fl_train_model *model,
                                     struct fl_err *err);
/*
 * Train. FL_ECANCELED; FL_ENUMERIC: diverged (loss or parameters not finite);
 * command: FL_EIO and others with exit code and the tail of its stderr.
 */
FL_MUST_CHECK int fl_trainer_run(struct fl_trainer *trainer, const struct fl_train_task *task,
                                 struct fl_train_result *ret, struct fl_err *err);
/* Training samples that it has now; 0: not known. */
uint64_t fl_trainer_samples(const struct fl_trainer *trainer);
/*
 * What the solver tells of the data (fl_solver_ops.offer), appended to `out`. FL_EUNIMPL: a
 * command trainer; FL_ESTATE: the solver offers nothing.
 */
FL_MUST_CHECK int fl_trainer_offer(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out,
                                   struct fl_err *err);
/*
 * Evaluate task->model on the local test data, then, when personal.adapts, a copy of it that was
 * fitted to the local data. `*ret_adapted` has 0 samples when it was not. FL_ENOENT without test
 * data; FL_ECANCELED; FL_ENUMERIC when fitting diverges.
 */
FL_MUST_CHECK int fl_trainer_adapt(struct fl_trainer *trainer, const struct fl_train_task *task,
                                   struct fl_train_evaluation *ret_received,
                                   struct fl_train_evaluation *ret_adapted, struct fl_err *err);
/* Evaluate a model on the local test data; FL_ENOENT without test data; FL_ECANCELED: `cancel`,
   which may be NULL, was set. */
FL_MUST_CHECK int fl_trainer_evaluate(struct fl_trainer *trainer, const float *model,
                                      atomic_bool *cancel, uint64_t *ret_samples,
                                      uint64_t *ret_correct, double *ret_loss_sum,
                                      struct fl_err *err);

/*
 * When there is nothing to do: a program that stays may end itself. In how many ms to call it
 * again; 0: not before another task.
 */
uint64_t fl_trainer_rest(struct fl_trainer *trainer);
/* Ends what runs between tasks, on the thread that runs them. */
void fl_trainer_stop(struct fl_trainer *trainer);
/* From any thread, for good: what a program is at, and all that comes, is cancelled. */
void fl_trainer_interrupt(struct fl_trainer *trainer);

#endif
