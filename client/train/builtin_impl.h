#ifndef FL_CLIENT_TRAIN_BUILTIN_IMPL_H
#define FL_CLIENT_TRAIN_BUILTIN_IMPL_H

/* Private to the built-in engine: its state, and the batches (walk) of one task. */

#include "client/train/trainer_impl.h"

/* Capacities of the buffers, in entries. */
struct fl__builtin_room {
    size_t order, order_test, x, y;
};

struct fl__builtin {
    struct fl_trainer base;
    const struct fl_dataset *train;
    const struct fl_dataset *test;
    const struct fl_kernels *kernels;
    /* Set by the last fl_trainer_prepare(); net NULL: not prepared. */
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
    uint32_t *order;      /* order of all samples that steps are made on */
    uint32_t *order_test; /* order within one piece of an evaluation */
    float *x;             /* a batch or a piece, whichever is larger, [..][dim] */
    int32_t *y;
    struct fl__builtin_room room;
    struct fl_buf
        own_summary; /* data summary of the solver, computed on first use; len 0: not yet */
};

/* Copies the network that the server describes. FL_ENOMEM. */
FL_MUST_CHECK int fl__builtin_describe(struct fl__builtin *b, const struct fl_net_spec *spec);
/* Creates b->net as described, for batches of the current data. */
FL_MUST_CHECK int fl__builtin_make_net(struct fl__builtin *b, struct fl_err *err);
/* FL_ESHAPE: the network does not fit the data. */
FL_MUST_CHECK int fl__builtin_check_data(const struct fl__builtin *b,
                                         const struct fl_dataset *train,
                                         const struct fl_dataset *test, struct fl_err *err);
/* Allocates the buffers for these data. FL_ENOMEM. */
FL_MUST_CHECK int fl__builtin_take_memory(struct fl__builtin *b, const struct fl_dataset *train,
                                          const struct fl_dataset *test, struct fl_err *err);
/* Frees the buffers and the description. */
void fl__builtin_forget_data(struct fl__builtin *b);
FL_MUST_CHECK int fl__builtin_set_data(struct fl_trainer *trainer, const struct fl_dataset *train,
                                       const struct fl_dataset *test, struct fl_err *err);

/* Of a task in a hashed space. */
struct fl__builtin_space {
    struct fl_space_map map;
    struct fl_space_steps steps; /* refer to the map: not to be moved */
};

/* For the model that was loaded into the network. FL_ENOMEM: nothing to free. */
FL_MUST_CHECK int fl__builtin_space_begin(struct fl_net *net, const struct fl_space *space,
                                          uint64_t round, struct fl__builtin_space *ret);
void fl__builtin_space_done(struct fl__builtin_space *space); /* All zero is allowed. */

/* The steps of one task: their number, and the samples of each. */
struct fl__walk {
    struct fl__builtin *b;
    const struct fl_train_task *task;
    const struct fl_dataset *ds;
    const struct fl_space_steps *space; /* NULL: steps are in all entries */
    size_t batch;
    uint64_t n_batches; /* per pass through the data */
    uint64_t n_steps;
    uint32_t cyclic; /* steps per round in one fixed order; 0: shuffled passes */
};

/* Sums over all steps. */
struct fl__walk_sums {
    uint64_t samples;
    double loss; /* sum of batch mean times batch size */
};

/* A walk of `epochs` passes, or of `steps` steps when `epochs` is 0. */
struct fl__walk fl__walk_passes(struct fl__builtin *b, const struct fl_train_task *task,
                                const struct fl_dataset *ds, uint32_t epochs, uint32_t steps);
/* Makes all steps of the walk. FL_ECANCELED, FL_ENUMERIC. */
FL_MUST_CHECK int fl__walk_run(const struct fl__walk *walk, struct fl_solver *solver,
                               struct fl__walk_sums *ret, struct fl_err *err);

/* Appends the solver's summary of the training data; solver->summary must not be NULL. */
FL_MUST_CHECK int fl__summary_make(struct fl__builtin *b, uint64_t seed, struct fl_buf *out,
                                   struct fl_err *err);
/* Fills b->own_summary if the solver makes a data summary. FL_ENOMEM. */
FL_MUST_CHECK int fl__summary_own(struct fl__builtin *b, uint64_t seed, struct fl_err *err);

#endif
