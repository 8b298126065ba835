#ifndef FL_PROGRAM_PERSISTENT_H
#define FL_PROGRAM_PERSISTENT_H

/*
 * An external trainer: a program of the user that is started once and gets one task after the
 * other, or with `work_dir` one that is started for each task, gets it as files and ends after it.
 * Both interfaces are docs/trainers.md. Whatever the program does, each call returns
 * within its time limits: a program that crashes, hangs or violates the protocol is killed with its
 * process group and fails the current task. A persistent one is restarted for the next task, after
 * a backoff of 1, 2, 4 ... up to 60 s, until a task succeeds.
 *
 * Errors name the program, what happened, what was expected, and the end of its stderr: FL_EPROTO:
 * it violated the protocol; FL_EIO: it ended, or reported a failure; FL_ENUMERIC: it reported that
 * the numbers diverged, or its model is not finite; FL_ETIMEOUT; FL_ECANCELED; FL_ELIMIT: memory,
 * or a model too large to describe; FL_EVERSION; FL_ENOMEM. Of the files of a program per task:
 * FL_ENOENT: one is missing; FL_EFORMAT, FL_ESHAPE: its content.
 *
 * Threading: one call at a time, except fl_persistent_interrupt(). The kernel kills the program
 * when the thread whose call started it ends (program.h).
 */

#include <stdatomic.h>

#include "libfl/base/log.h"
#include "libfl/model/accuracy.h"
#include "libfl/model/layout.h"
#include "libfl/model/task.h"
#include "libfl/program/program.h"

#define FL_PERSISTENT_VERSION 1
/* size of `software` and `error`, with the NUL; longer ones are truncated */
#define FL_PERSISTENT_TEXT  1001
#define FL_PERSISTENT_PARTS 32
#define FL_PERSISTENT_PART  32 /* size of a name, with the NUL */

/* Source of time; tests replace it. */
struct fl_persistent_clock {
    uint64_t (*now_ms)(void *ctx); /* monotonic */
    void (*pause)(void *ctx, uint64_t ms);
    void *ctx;
};

struct fl_persistent_conf { /* copied */
    /* NULL-terminated; argv[0] is searched in PATH; of a program per task {task} is replaced */
    const char *const *argv;
    const char *const *environment; /* "NAME=value", NULL-terminated; NULL: none */
    /*
     * NULL: the program is persistent; else it is started for each task, which gets a folder in
     * this one. It can train, and its number of samples is `samples` until its first result.
     */
    const char *work_dir;
    uint64_t samples;
    uint64_t memory_bytes; /* 0: no limit */
    enum fl_program_memory memory_of;
    uint64_t descriptors; /* soft limit; 0: that of this process */
    const char *client;   /* sent to the program, as the next two; not NULL, nor is `purpose` */
    const char *data;     /* NULL: none */
    const char *purpose;  /* "train", "evaluate", "simulate", "try" or "aggregate" */
    uint64_t start_limit_ms, cancel_grace_ms;
    uint64_t idle_exit_ms;                   /* idle timeout; 0: none */
    const struct fl_persistent_clock *clock; /* borrowed; NULL: CLOCK_MONOTONIC */
    const struct fl_log *log;                /* borrowed; may be NULL */
};

enum fl_persistent_kind {
    FL_PERSISTENT_TRAIN,
    FL_PERSISTENT_EVALUATE,
    FL_PERSISTENT_ADAPT,
    FL_PERSISTENT_SUMMARY,
    FL_PERSISTENT_AGGREGATE,
    FL_PERSISTENT_KINDS
};
/* "train" …, by kind. */
extern const char *const fl_persistent_kinds[];

/* The fields of `ready` at the last start; of a program per task what such a program can do. */
struct fl_persistent_ready {
    unsigned can; /* set of 1u << enum fl_persistent_kind */
    char parts[FL_PERSISTENT_PARTS][FL_PERSISTENT_PART];
    size_t n_parts;
    uint64_t samples, test_samples;
    bool clients; /* it can act for several clients in turn */
    char software[FL_PERSISTENT_TEXT];
};

/* A client that the program acts for: one of several in turn, as a simulation has them. */
struct fl_persistent_client {
    const char *name;             /* NULL: the server, which evaluates the common model */
    uint64_t number, of;          /* from 0 on, of so many; 0 of the server */
    const char *data;             /* a folder; NULL: the program knows where its data is */
    const uint32_t *train, *test; /* [n_train], [n_test] samples of `data`; NULL: all there are */
    size_t n_train, n_test;
};

/* Vectors of a model's shape that a task can have as input. */
enum fl_persistent_vector {
    FL_PERSISTENT_MODEL,
    FL_PERSISTENT_ANCHOR,
    FL_PERSISTENT_GRADIENT,
    FL_PERSISTENT_DRIFT,
    FL_PERSISTENT_PLACES,
    FL_PERSISTENT_VECTORS
};

struct fl_persistent_model { /* copied */
    const struct fl_layout *layout;
    const size_t *input; /* of the network */
    size_t n_input;
    const char *const *layers;
    size_t n_layers;               /* 0: the model has units and tensors only */
    const char *solver, *personal; /* objects as JSON text; NULL: null */
    const char *const *parts;      /* labels of all steps, NULL-terminated; NULL: none */
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
    unsigned vectors;     /* set of 1u << enum fl_persistent_vector; the model is always included */
    size_t summary_bytes; /* maximum size of a data summary; 0: none is requested */
    /* Of a program that aggregates, which has no result model: room for the updates of so many
       clients, and for a state of so many bytes; both above 0. Else both 0. */
    size_t clients, state_bytes;
};

/* A client whose update an AGGREGATE task contains. */
struct fl_persistent_update {
    const char *client;
    uint64_t samples, steps;
    double train_loss;
};

/* The memory of an AGGREGATE task, which the caller fills; rows are those of the updates. */
struct fl_persistent_room {
    float *updates;  /* [clients of the model][entries of the layout] */
    double *mean;    /* [entries] */
    double *weights; /* [clients of the model][units] */
};

struct fl_persistent_round {
    const struct fl_persistent_update *updates; /* [n] */
    size_t n;                                   /* at most `clients` of the model */
    const void *state;                          /* what it returned for the round before */
    size_t state_len;                           /* 0: none; at most `state_bytes` of the model */
    double *step;                               /* [entries] gets the step, all finite */
    double *scores;                             /* [n] gets its scores, if it returned some */
};

struct fl_persistent_task {
    enum fl_persistent_kind kind;
    const float *given[FL_PERSISTENT_VECTORS]; /* of the described vectors; NULL: not given */
    const void *mixup;                         /* slot `mixup`; NULL: not given */
    size_t mixup_len;
    struct fl_task asked; /* the program gets the low 53 bits of seeds */
    double momentum, weight_decay;
    uint32_t epochs, steps, batch_size;
    bool evaluate_trained;
    bool on_test;       /* ADAPT: fit to the test data */
    float *trained;     /* TRAIN: gets the trained parameters, all finite; NULL: nothing */
    const char *parts;  /* `do` as JSON text; NULL: {} */
    const char *solver; /* SUMMARY: as in the model */
    const struct fl_persistent_round *aggregate; /* AGGREGATE */
    const char *more;          /* further fields of the message as JSON text; NULL: none */
    uint64_t limit_ms;         /* from the start of the task; 0: none */
    const char *limit_note;    /* appended to the message of a timeout; NULL: nothing */
    const atomic_bool *cancel; /* may be NULL */
    /* Called for each `progress` of the program, at any rate; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

struct fl_persistent_answer {
    uint64_t samples, steps; /* TRAIN; at least 1 sample */
    double train_loss;
    bool has_received, has_trained, has_adapted;
    struct fl_evaluation received, trained, adapted;
    uint64_t summary_bytes; /* SUMMARY; at most that of the model */
    uint64_t state_bytes;   /* AGGREGATE; at most that of the model */
    bool has_scores;        /* AGGREGATE; all finite and at least 0 */
    uint64_t handed_ms;     /* when the task was sent, by the clock */
    uint64_t took_ms;       /* from then to the answer */
};

struct fl_persistent;

/*
 * Does not start the program. FL_ENOENT, FL_EPERM: no such program; FL_ENOMEM; the errors of
 * creating work_dir.
 */
FL_MUST_CHECK int fl_persistent_create(const struct fl_persistent_conf *conf,
                                       struct fl_persistent **ret, struct fl_err *err);
/* Kills the program; call fl_persistent_stop() before to let it exit. NULL is allowed. */
void fl_persistent_free(struct fl_persistent *r);

/* Start the program if it is not running, and wait for `ready`. One per task needs no start. */
FL_MUST_CHECK int fl_persistent_start(struct fl_persistent *r, struct fl_err *err);
/* Of the last start; no capabilities before the first one. */
const struct fl_persistent_ready *fl_persistent_ready(const struct fl_persistent *r);
bool fl_persistent_can(const struct fl_persistent *r, enum fl_persistent_kind kind);
bool fl_persistent_has_part(const struct fl_persistent *r, const char *part);
/*
 * Set the model of the following tasks. A running program gets it at once and has `wait_ms` to
 * accept or reject it (FL_ESHAPE: rejected; then no model is set); a program that is not running,
 * or does not answer in time, gets it with the next task.
 */
FL_MUST_CHECK int fl_persistent_describe(struct fl_persistent *r,
                                         const struct fl_persistent_model *model, uint64_t wait_ms,
                                         struct fl_err *err);
void fl_persistent_forget(struct fl_persistent *r);
/*
 * The following tasks are for this client, which is copied. The program is told with the next task
 * or fl_persistent_count(); one that is started again is told again. FL_ENOMEM.
 */
FL_MUST_CHECK int fl_persistent_act_for(struct fl_persistent *r,
                                        const struct fl_persistent_client *client,
                                        struct fl_err *err);
/*
 * How many samples the client has, for which the program acts, as it says. Starts the program if it
 * is not running. FL_EUNIMPL: it acts for one client only; FL_ESTATE: a description of the model is
 * not answered yet.
 */
FL_MUST_CHECK int fl_persistent_count(struct fl_persistent *r, uint64_t *ret_samples,
                                      uint64_t *ret_test_samples, struct fl_err *err);
/*
 * Run a task; starts the program if it is not running. FL_ESTATE: no model is set. A program per
 * task trains only, and `trained` of the task is not NULL.
 */
FL_MUST_CHECK int fl_persistent_run(struct fl_persistent *r, const struct fl_persistent_task *task,
                                    struct fl_persistent_answer *ret, struct fl_err *err);
/*
 * Start the program if it is not running, and get the memory for the updates of an AGGREGATE task,
 * which is valid until the task has run, or until any other call. fl_persistent_run() of a prepared
 * task fails with FL_EIO if the program has exited meanwhile.
 */
FL_MUST_CHECK int fl_persistent_prepare(struct fl_persistent *r, const atomic_bool *cancel,
                                        struct fl_persistent_room *ret, struct fl_err *err);
/*
 * Copy the result of the previous task out of the shared memory: the model (as `trained` of a task
 * does, without the check), or its data summary. Check only this copy, as the program can change
 * the original. FL_ESTATE: the program is not running any more.
 */
FL_MUST_CHECK int fl_persistent_result(const struct fl_persistent *r, float *out,
                                       struct fl_err *err);
FL_MUST_CHECK int fl_persistent_summary(const struct fl_persistent *r, void *out, size_t len,
                                        struct fl_err *err);
/* The same for the state of an AGGREGATE task. */
FL_MUST_CHECK int fl_persistent_state(const struct fl_persistent *r, void *out, size_t len,
                                      struct fl_err *err);
/*
 * Call when there is no task: stops a program whose idle timeout has passed. Returns the ms after
 * which to call again; 0: not before the next task.
 */
uint64_t fl_persistent_rest(struct fl_persistent *r);
/* Send `bye` and wait for the exit; the program is started again for the next task. */
void fl_persistent_stop(struct fl_persistent *r);
bool fl_persistent_per_task(const struct fl_persistent *r);
bool fl_persistent_runs(const struct fl_persistent *r);
/* Any thread: cancels the running call and all later ones, permanently. */
void fl_persistent_interrupt(struct fl_persistent *r);

#endif
