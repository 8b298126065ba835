#ifndef FL_CLIENT_TRAIN_BUILTIN_IMPL_H
#define FL_CLIENT_TRAIN_BUILTIN_IMPL_H

/* Inside the built-in engine: its state, and the walk of one task through the samples. */

#include "client/train/trainer_impl.h"

/* How much the memory of an engine is for, in entries. */
struct fl__builtin_room {
    size_t order, order_test, x, y;
};

struct fl__builtin {
    struct fl_trainer base;
    const struct fl_dataset *train;
    const struct fl_dataset *test;
    const struct fl_kernels *kernels;
    /* Of the last prepare(); net NULL: none. */
    struct fl_net *net;
    struct fl_net_spec spec; /* of `net`; its layers are `layers` */
    char **layers;           /* owned, each of them */
    const struct fl_solver_ops *solver;
    struct fl_options *options;
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
    /* personal.adapt; `adapts` false: none */
    bool adapts, adapt_on_test;
    uint32_t adapt_epochs, adapt_steps;
    size_t max_batch;
    uint32_t *order;      /* of all samples that steps are made on */
    uint32_t *order_test; /* of one piece of an evaluation */
    float *x;             /* a batch or a piece, whichever is larger, [..][dim] */
    int32_t *y;
    struct fl__builtin_room room;
    struct fl_buf own_offer; /* of the solver, made when it is first needed; len 0: not yet */
};

/* The network that the server describes, copied. FL_ENOMEM. */
FL_MUST_CHECK int fl__builtin_describe(struct fl__builtin *b, const struct fl_net_spec *spec);
/* b->net as it was described, for batches of the data that is there. */
FL_MUST_CHECK int fl__builtin_make_net(struct fl__builtin *b, struct fl_err *err);
/* FL_ESHAPE: the network does not fit it. */
FL_MUST_CHECK int fl__builtin_check_data(const struct fl__builtin *b,
                                         const struct fl_dataset *train,
                                         const struct fl_dataset *test, struct fl_err *err);
/* For the data that is there. FL_ENOMEM. */
FL_MUST_CHECK int fl__builtin_take_memory(struct fl__builtin *b, struct fl_err *err);
/* The memory, and what was described. */
void fl__builtin_forget_data(struct fl__builtin *b);
FL_MUST_CHECK int fl__builtin_set_data(struct fl_trainer *trainer, const struct fl_dataset *train,
                                       const struct fl_dataset *test, struct fl_err *err);

/* How many steps are made on which samples. */
struct fl__walk {
    struct fl__builtin *b;
    const struct fl_train_task *task;
    const struct fl_dataset *ds;
    size_t batch;
    uint64_t n_batches; /* in one pass through the data */
    uint64_t n_steps;
    uint32_t cyclic; /* steps a round through one order that never changes; 0: shuffled passes */
};

/* What all steps together saw. */
struct fl__walk_sums {
    uint64_t samples;
    double loss; /* mean of a batch times its samples */
};

/* A walk of `epochs` passes, or when that is 0 of `steps` steps. */
struct fl__walk fl__walk_passes(struct fl__builtin *b, const struct fl_train_task *task,
                                const struct fl_dataset *ds, uint32_t epochs, uint32_t steps);
/* All its steps. FL_ECANCELED, FL_ENUMERIC. */
FL_MUST_CHECK int fl__walk_run(const struct fl__walk *walk, struct fl_solver *solver,
                               struct fl__walk_sums *ret, struct fl_err *err);

/* What solver->offer, which there is, tells of the training data. */
FL_MUST_CHECK int fl__offer_make(struct fl__builtin *b, uint64_t seed, struct fl_buf *out,
                                 struct fl_err *err);
/* b->own_offer, for a solver that makes one. FL_ENOMEM. */
FL_MUST_CHECK int fl__offer_own(struct fl__builtin *b, uint64_t seed, struct fl_err *err);

#endif
