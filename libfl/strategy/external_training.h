#ifndef FL_STRATEGY_EXTERNAL_TRAINING_H
#define FL_STRATEGY_EXTERNAL_TRAINING_H

/*
 * Local training by an external trainer: a program that has its own network and makes the steps
 * itself (docs/trainers.md#parts). A solver declares here which capabilities its steps
 * need beyond plain gradient descent, provides the vectors of a task, and computes from start,
 * result and number of steps the client state and the payloads to send: the same as its finish()
 * with the built-in network.
 *
 * Blocks are float32 in the exported order, fl_layout_count() of them.
 */

#include "libfl/strategy/solver/solver.h"

/* Capabilities that a step can need; g is the gradient of a batch, x the parameters. */
enum fl_part {
    FL_CAPABILITY_PULL = 1,        /* g += mu (x - anchor) */
    FL_CAPABILITY_GRADIENT = 2,    /* g += gradient */
    FL_CAPABILITY_DRIFT = 4,       /* x += drift / steps, after each step */
    FL_CAPABILITY_PFEDME = 8,      /* the solver's own steps, by its options */
    FL_CAPABILITY_PER_FEDAVG = 16, /* likewise */
    FL_CAPABILITY_MIXUP = 32,      /* the same, with the data summaries of all clients */
    FL_CAPABILITY_SPACE = 64,      /* after each step x - model becomes the nearest P z (space.h) */
};
/* Names of the capabilities: fl_capability_names[i] for bit 1 << i; NULL-terminated. */
extern const char *const fl_capability_names[];

/* One task; borrowed for the calls. */
struct fl_external_task {
    const struct fl_layout *layout;
    const float *model;  /* parameters at the start of training */
    const float *anchor; /* as fl_solver_setup.anchor; NULL: `model` */
    double learning_rate, momentum;
    uint32_t n_selected, population; /* 0: unknown */
    bool adapting; /* as fl_solver_setup.adapting; true: inputs and kept are not read */
    /* In the order of ops->inputs and ops->keeps; NULL when the solver has none. */
    const struct fl_solver_bytes *inputs, *kept;
};

/* The steps of a task. */
struct fl_external {
    unsigned parts;       /* of enum fl_part */
    double learning_rate; /* of each step */
    double mu;            /* FL_CAPABILITY_PULL */
    float *gradient;      /* FL_CAPABILITY_GRADIENT; owned; 0 at buffers */
    float *drift;         /* FL_CAPABILITY_DRIFT; owned; 0 at buffers */
    float *places;        /* FL_CAPABILITY_SPACE: fl_space_places(); owned */
    size_t n_numbers;     /* of the space */
    /* FL_CAPABILITY_MIXUP: data summaries of all clients, one of the task's inputs; borrowed. */
    const struct fl_solver_bytes *mixup;
};

/*
 * The capabilities that training, or adapting a copy before its evaluation, needs with these
 * options.
 */
unsigned fl_external_parts(const struct fl_solver_ops *ops, const struct fl_options *o,
                           bool adapting);
/*
 * Describe the steps of one task. FL_EFORMAT, FL_ENUMERIC: an input or a client state is not a
 * block of the model; FL_ESTATE: the server did not send a number that the solver needs;
 * FL_ENOMEM. After success only, `*ret` must be freed with fl_external_done().
 */
FL_MUST_CHECK int fl_external_begin(const struct fl_solver_ops *ops, const struct fl_options *o,
                                    const struct fl_external_task *task, struct fl_external *ret,
                                    struct fl_err *err);
void fl_external_done(struct fl_external *external);
/* What a training step gave, and where the solver's part of the result goes. Borrows all. */
struct fl_external_outcome {
    const float *trained;
    uint64_t steps;
    struct fl_buf *kept; /* client state, in the order of ops->keeps */
    struct fl_buf *sent; /* payloads to send, in the order of fl_solver_sends() */
};

/*
 * After `steps` steps from task->model to `trained`: append the client state to kept[i] and the
 * payloads to send to sent[i]. Not for a task that only adapts.
 */
FL_MUST_CHECK int fl_external_finish(const struct fl_solver_ops *ops, const struct fl_options *o,
                                     const struct fl_external_task *task,
                                     const struct fl_external_outcome *outcome, struct fl_err *err);

#endif
