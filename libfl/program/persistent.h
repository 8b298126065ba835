#ifndef FL_PROGRAM_RESIDENT_H
#define FL_PROGRAM_RESIDENT_H

/*
 * A program of the user that stays: started once, and handed one task after the other. What both
 * sides say is docs/trainer-protocol.md. Whatever the program does, a call here ends in time:
 * one that crashed, hung or said what that page does not allow is ended with its group, costs
 * the task it was at, and is started again for the next one, after a second, two, four ... up to
 * a minute, until a task succeeds.
 *
 * Errors name the program, what happened, what was expected, and the end of its stderr: FL_EPROTO:
 * it broke the protocol; FL_EIO: it ended, or says that it failed; FL_ENUMERIC: it says that the
 * numbers diverged; FL_ETIMEOUT; FL_ECANCELED; FL_ELIMIT: memory, or a model too large to describe;
 * FL_EVERSION; FL_ENOMEM.
 *
 * Threading: one call at a time, but for fl_persistent_interrupt(). The program is killed when the
 * thread ends whose call started it (program.h).
 */

#include <stdatomic.h>

#include "libfl/base/log.h"
#include "libfl/model/layout.h"
#include "libfl/program/program.h"

#define FL_PERSISTENT_VERSION 1
#define FL_PERSISTENT_TEXT    1001 /* of `software` and `error`, with the NUL; longer ones are cut */
#define FL_PERSISTENT_PARTS   32
#define FL_PERSISTENT_PART    32 /* of a name, with the NUL */

/* Where time comes from; a test has its own. */
struct fl_persistent_clock {
    uint64_t (*now_ms)(void *ctx); /* never goes back */
    void (*pause)(void *ctx, uint64_t ms);
    void *ctx;
};

struct fl_persistent_conf {         /* copied */
    const char *const *argv;        /* NULL-terminated; argv[0] is searched in PATH */
    const char *const *environment; /* "NAME=value", NULL-terminated; NULL: none */
    uint64_t memory_bytes;          /* 0: no limit */
    enum fl_program_memory memory_of;
    uint64_t descriptors; /* soft limit; 0: as ours */
    const char *client;   /* told to the program, as the next two */
    const char *data;     /* NULL: none */
    const char *purpose;  /* "train", "evaluate" or "try" */
    uint64_t start_limit_ms, cancel_grace_ms;
    uint64_t idle_exit_ms;                   /* 0: it stays */
    const struct fl_persistent_clock *clock; /* borrowed; NULL: the monotonic one */
    const struct fl_log *log;                /* borrowed; may be NULL */
};

enum fl_persistent_kind {
    FL_PERSISTENT_TRAIN,
    FL_PERSISTENT_EVALUATE,
    FL_PERSISTENT_ADAPT,
    FL_PERSISTENT_OFFER,
    FL_PERSISTENT_KINDS
};
/* "train" …, by kind. */
extern const char *const fl_persistent_kinds[];

/* What the program said of itself when it was started last. */
struct fl_persistent_ready {
    unsigned can; /* set of 1u << enum fl_persistent_kind */
    char parts[FL_PERSISTENT_PARTS][FL_PERSISTENT_PART];
    size_t n_parts;
    uint64_t samples, test_samples;
    char software[FL_PERSISTENT_TEXT];
};

/* Vectors of a model's shape that a task can be given. */
enum fl_persistent_vector {
    FL_PERSISTENT_MODEL,
    FL_PERSISTENT_ANCHOR,
    FL_PERSISTENT_GRADIENT,
    FL_PERSISTENT_DRIFT,
    FL_PERSISTENT_VECTORS
};

struct fl_persistent_model { /* copied */
    const struct fl_layout *layout;
    const size_t *input; /* of the network */
    size_t n_input;
    const char *const *layers;
    size_t n_layers;               /* 0: only units and tensors are known */
    const char *solver, *personal; /* objects as JSON text; NULL: null */
    const char *const *parts;      /* of every step, NULL-terminated; NULL: none */
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
    unsigned vectors;   /* set of 1u << enum fl_persistent_vector; the model is always there */
    size_t offer_bytes; /* the longest offer; 0: none is asked for */
};

struct fl_persistent_task {
    enum fl_persistent_kind kind;
    const float *given[FL_PERSISTENT_VECTORS]; /* of those that were described; NULL: not given */
    const void *mixup;                         /* slot `mixup`; NULL: not given */
    size_t mixup_len;
    uint64_t round;
    uint32_t attempt;
    uint64_t seed, order_seed; /* below 2^53 */
    double learning_rate, momentum, weight_decay;
    uint32_t epochs, steps, batch_size;
    bool evaluate_trained;
    bool on_test;              /* ADAPT: fit to the test data */
    const char *parts;         /* `do` as JSON text; NULL: {} */
    const char *solver;        /* OFFER: as in the model */
    const char *more;          /* further fields of the message as JSON text; NULL: none */
    uint64_t limit_ms;         /* from when it is handed over; 0: none */
    const char *limit_note;    /* behind the message that it was over; NULL: nothing */
    const atomic_bool *cancel; /* may be NULL */
    /* Of the program, as often as it likes; may be NULL. */
    void (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

struct fl_persistent_evaluation {
    uint64_t samples, correct;
    double loss_sum;
};

struct fl_persistent_answer {
    uint64_t samples, steps; /* TRAIN; at least 1 sample */
    double train_loss;
    bool has_received, has_trained, has_adapted;
    struct fl_persistent_evaluation received, trained, adapted;
    uint64_t offer_bytes; /* OFFER; at most those of the model */
    uint64_t handed_ms;   /* when the task was handed over, by the clock */
    uint64_t took_ms;     /* from then to the answer */
};

struct fl_persistent;

/* Starts nothing. FL_ENOENT, FL_EPERM: no such program; FL_ENOMEM. */
FL_MUST_CHECK int fl_persistent_create(const struct fl_persistent_conf *conf,
                                       struct fl_persistent **ret, struct fl_err *err);
/* Ends it at once; fl_persistent_stop() before is kinder. NULL is allowed. */
void fl_persistent_free(struct fl_persistent *r);

/* Start it when it does not run, and wait for `ready`. */
FL_MUST_CHECK int fl_persistent_start(struct fl_persistent *r, struct fl_err *err);
/* Of the last start; nothing can be done before the first. */
const struct fl_persistent_ready *fl_persistent_ready(const struct fl_persistent *r);
bool fl_persistent_can(const struct fl_persistent *r, enum fl_persistent_kind kind);
bool fl_persistent_has_part(const struct fl_persistent *r, const char *part);
/*
 * What tasks are about from now on. A program that runs hears it at once and has `wait_ms` to say
 * whether it is its own (FL_ESHAPE: it is not; then nothing is described); one that does not
 * run, or says nothing by then, with the next task.
 */
FL_MUST_CHECK int fl_persistent_describe(struct fl_persistent *r,
                                         const struct fl_persistent_model *model, uint64_t wait_ms,
                                         struct fl_err *err);
void fl_persistent_forget(struct fl_persistent *r);
/* Carry out a task, starting the program when it does not run. FL_ESTATE: nothing is described. */
FL_MUST_CHECK int fl_persistent_run(struct fl_persistent *r, const struct fl_persistent_task *task,
                                    struct fl_persistent_answer *ret, struct fl_err *err);
/*
 * Copies out what the task before left: the model, or its offer. What was checked has to be such a
 * copy. FL_ESTATE: the program does not run any more.
 */
FL_MUST_CHECK int fl_persistent_result(const struct fl_persistent *r, float *out,
                                       struct fl_err *err);
FL_MUST_CHECK int fl_persistent_offer(const struct fl_persistent *r, void *out, size_t len,
                                      struct fl_err *err);
/*
 * To be called when there is nothing to do: ends a program that has been idle for long enough. In
 * how many ms it is worth to call again; 0: not before another task.
 */
uint64_t fl_persistent_rest(struct fl_persistent *r);
/* `bye`; it is started again for the next task. */
void fl_persistent_stop(struct fl_persistent *r);
bool fl_persistent_runs(const struct fl_persistent *r);
/* From any thread: what is under way, and all that comes, is cancelled. For good. */
void fl_persistent_interrupt(struct fl_persistent *r);

#endif
