#ifndef FL_SERVER_WORK_ROOT_TRAINING_H
#define FL_SERVER_WORK_ROOT_TRAINING_H

/*
 * The reference update of a robust rule that trusts the server (docs/algorithms.md#fltrust): the
 * server trains on its root data set as a client does on its own data, with the same engine, from
 * the model of the round.
 *
 * The result follows from the settings, the seed, the round and the model alone, so a server that
 * was killed computes the same bits, and so does fl-sim.
 *
 * Threading: one training at a time, on the caller's thread; `cancel` may be set from any.
 */

#include <stdatomic.h>

#include "libfl/data/dataset.h"
#include "libfl/nn/net.h"
#include "libfl/strategy/strategy.h"

struct fl_root;

/* Borrowed until fl_root_free(), but for the network, which is copied where it is needed. */
struct fl_root_conf {
    /* The labelled data of the server: some of its samples, drawn from the seed, are the root data
       set, and the others are left to evaluate on. */
    const struct fl_dataset *data;
    const struct fl_net_spec *net;
    const struct fl_strategy *strategy; /* its robust rule has the options of the training */
    const struct fl_space *space;       /* of updates; NULL: they have the layout of the model */
    uint32_t epochs, steps, batch_size; /* of a client */
    double momentum, weight_decay;      /* likewise */
    uint64_t seed;                      /* of the federation */
};

/* FL_ECONF: the data has no sample left to evaluate on; FL_ESHAPE: the network does not fit it;
   FL_ENOMEM. Returns owned: fl_root_free(). */
FL_MUST_CHECK int fl_root_create(const struct fl_root_conf *conf, struct fl_root **ret,
                                 struct fl_err *err);
void fl_root_free(struct fl_root *root); /* NULL is allowed. */
/* Gives it the data that it borrows. */
void fl_root_own(struct fl_root *root, struct fl_dataset *data);
/* The samples that are not in the root data set. Borrowed. */
const struct fl_dataset *fl_root_rest(const struct fl_root *root);
/* Samples of the root data set. */
const struct fl_dataset *fl_root_data(const struct fl_root *root);

struct fl_root_task {
    uint64_t round, draw; /* of a hashed space */
    double learning_rate;
    const float *model;        /* exported order */
    const atomic_bool *cancel; /* NULL: never */
};

/*
 * The displacement of a training from the model, in the layout of updates. FL_ECANCELED;
 * FL_ENUMERIC: it diverged; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_root_train(struct fl_root *root, const struct fl_root_task *task,
                                float *update, struct fl_err *err);

#endif
