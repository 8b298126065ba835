#ifndef FL_CLIENT_TRAIN_BUILTIN_IMPL_H
#define FL_CLIENT_TRAIN_BUILTIN_IMPL_H

/* Private to the built-in engine: its state. */

#include "client/train/trainer_impl.h"
#include "libfl/nn/net_metrics.h"

/* Capacities of the buffers, in entries. */
struct fl__builtin_room {
    size_t order, order_test, x, y;
    size_t metrics; /* samples */
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
    struct fl_options *beside; /* of fl_solver_prox, for tasks with `beside`; NULL: none */
    const struct fl_personal_ops *personal;
    struct fl_options *personal_options; /* NULL without `personal` */
    uint32_t epochs, steps, batch_size;
    double momentum, weight_decay;
    /* personal.adapt; `adapts` false: none */
    bool adapts, adapt_on_test;
    uint32_t adapt_epochs, adapt_steps;
    unsigned which_metrics; /* of evaluations */
    struct fl_net_metrics
        *metrics; /* for `room.metrics` samples; NULL: none, or no test data yet */
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

/* Appends the solver's summary of the training data; solver->summary must not be NULL. */
FL_MUST_CHECK int fl__summary_make(struct fl__builtin *b, uint64_t seed, struct fl_buf *out,
                                   struct fl_err *err);
/* Fills b->own_summary if the solver makes a data summary. FL_ENOMEM. */
FL_MUST_CHECK int fl__summary_own(struct fl__builtin *b, uint64_t seed, struct fl_err *err);

#endif
