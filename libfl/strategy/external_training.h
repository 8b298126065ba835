#ifndef FL_STRATEGY_OUTSIDE_H
#define FL_STRATEGY_OUTSIDE_H

/*
 * Local training by somebody else: a program that has its own network and makes the steps itself
 * (docs/trainer-protocol.md#parts). A solver says here what its steps need beyond plain gradient
 * descent, hands over the vectors of a task, and makes of start, result and number of steps what is
 * kept and what is sent: the same as its finish() with our own network.
 *
 * Blocks are float32 in the exported order, fl_layout_count() of them.
 */

#include "libfl/strategy/solver.h"

/* What a step can need; g is the gradient of a batch, x the parameters. */
enum fl_part {
    FL_CAPABILITY_PULL = 1,        /* g += mu (x - anchor) */
    FL_CAPABILITY_GRADIENT = 2,    /* g += gradient */
    FL_CAPABILITY_DRIFT = 4,       /* x += drift / steps, behind each step */
    FL_CAPABILITY_PFEDME = 8,      /* the solver's own steps, by its options */
    FL_CAPABILITY_PER_FEDAVG = 16, /* likewise */
    FL_CAPABILITY_MIXUP = 32,      /* likewise, with the means of all clients */
};
/* Their names: the one of bit 1 << i is fl_capability_names[i]; ended by NULL. */
extern const char *const fl_capability_names[];

/* One task; borrowed for the calls. */
struct fl_external_task {
    const struct fl_layout *layout;
    const float *model;  /* where training starts */
    const float *anchor; /* as fl_solver_setup.anchor; NULL: `model` */
    double learning_rate, momentum;
    uint32_t n_selected, population; /* 0: not told */
    bool adapting; /* as fl_solver_setup.adapting: then inputs and kept are not read */
    /* In the order of ops->inputs and ops->keeps; NULL when it has none. */
    const struct fl_solver_bytes *inputs, *kept;
};

/* What the steps of a task are. */
struct fl_external {
    unsigned parts;       /* of enum fl_part */
    double learning_rate; /* of each step */
    double mu;            /* FL_CAPABILITY_PULL */
    float *gradient;      /* FL_CAPABILITY_GRADIENT; owned; 0 at buffers */
    float *drift;         /* FL_CAPABILITY_DRIFT; owned; 0 at buffers */
    /* FL_CAPABILITY_MIXUP: what all clients offered, of the task's inputs; borrowed. */
    const struct fl_solver_bytes *mixup;
};

/* The parts that training, or fitting a copy before its evaluation, has with these options. */
unsigned fl_external_parts(const struct fl_solver_ops *ops, const struct fl_options *o,
                           bool adapting);
/*
 * What one task's steps are. FL_EFORMAT, FL_ENUMERIC: an input or what was kept is not a model's
 * block; FL_ESTATE: the server did not tell what the solver needs; FL_ENOMEM. `*ret` is to be
 * freed with fl_external_done() after success only.
 */
FL_MUST_CHECK int fl_external_begin(const struct fl_solver_ops *ops, const struct fl_options *o,
                                    const struct fl_external_task *task, struct fl_external *ret,
                                    struct fl_err *err);
void fl_external_done(struct fl_external *outside);
/*
 * After `steps` steps that led from task->model to `trained`: append what is kept to kept[i] and
 * what is sent to sent[i], in the order of ops->keeps and of fl_solver_sends(). Not for a task that
 * only adapted.
 */
FL_MUST_CHECK int fl_external_finish(const struct fl_solver_ops *ops, const struct fl_options *o,
                                     const struct fl_external_task *task, const float *trained,
                                     uint64_t steps, struct fl_buf *kept, struct fl_buf *sent,
                                     struct fl_err *err);

#endif
