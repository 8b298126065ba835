#ifndef FL_LIB_NN_ENGINE_H
#define FL_LIB_NN_ENGINE_H

/*
 * Tasks of docs/trainers.md carried out by the built-in trainer, using only the messages
 * and the slots: the results equal those of `trainer: builtin` bit for bit, provided that the
 * messages contain everything.
 */

#include <jansson.h>

#include "client/train/trainer.h"

struct nn_engine {
    struct fl_train_model model; /* state before any message: layout and network */
    const struct fl_dataset *train, *test;
    json_t *described; /* the message `model` */
};

/* Contents of the slots of a task; NULL: not given. */
struct nn_given {
    const float *model, *anchor;
    const void *mixup;
    size_t mixup_len;
};

/* The fields of `done` beside type and id; owned. `ret` is the slot `model` of the result. */
json_t *nn_engine_train(struct nn_engine *engine, const json_t *task, const struct nn_given *given,
                        float *ret);
json_t *nn_engine_adapt(struct nn_engine *engine, const json_t *task, const struct nn_given *given);
/* `ret` is the slot `summary`, of `size` bytes. */
json_t *nn_engine_summary(struct nn_engine *engine, const json_t *task, void *ret, size_t size);

#endif
