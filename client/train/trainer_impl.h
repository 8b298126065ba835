#ifndef FL_CLIENT_TRAIN_TRAINER_IMPL_H
#define FL_CLIENT_TRAIN_TRAINER_IMPL_H

/* Shared by the trainers. */

#include "client/train/trainer.h"

struct fl__trainer_ops {
    void (*free)(struct fl_trainer *trainer);
    int (*prepare)(struct fl_trainer *trainer, const struct fl_train_model *model,
                   struct fl_err *err);
    int (*run)(struct fl_trainer *trainer, const struct fl_train_task *task,
               struct fl_train_result *ret, struct fl_err *err);
    int (*summary)(struct fl_trainer *trainer, uint64_t seed, struct fl_buf *out,
                   struct fl_err *err);
    uint64_t (*samples)(const struct fl_trainer *trainer); /* NULL: not known */
    int (*adapt)(struct fl_trainer *trainer, const struct fl_train_task *task,
                 struct fl_evaluation *ret_received, struct fl_evaluation *ret_adapted,
                 struct fl_err *err);
    int (*evaluate)(struct fl_trainer *trainer, const float *model, atomic_bool *cancel,
                    struct fl_evaluation *ret, struct fl_err *err);
    /* NULL: the program has its own data */
    int (*set_data)(struct fl_trainer *trainer, const struct fl_dataset *train,
                    const struct fl_dataset *test, struct fl_err *err);
    /* NULL: it trains on its data */
    int (*act_for)(struct fl_trainer *trainer, const struct fl_persistent_client *client,
                   struct fl_err *err);
    /* NULL: nothing runs between tasks. */
    int (*start)(struct fl_trainer *trainer, uint64_t *ret_samples, uint64_t *ret_test_samples,
                 struct fl_err *err);
    uint64_t (*rest)(struct fl_trainer *trainer);
    void (*stop)(struct fl_trainer *trainer);
    void (*interrupt)(struct fl_trainer *trainer);
};

/* First member of every trainer. */
struct fl_trainer {
    const struct fl__trainer_ops *ops;
};

/*
 * Turns the trained parameters in ret->delta into the displacement from task->model, unless the
 * task wants them raw, and fills ret->divergence. FL_ENUMERIC when a parameter is not finite;
 * FL_ENOMEM.
 */
FL_MUST_CHECK int fl__train_finish(const struct fl_layout *layout, const struct fl_train_task *task,
                                   struct fl_train_result *ret, struct fl_err *err);
/* Creates `n` empty buffers for the client state or the extra uploads of a solver. FL_ENOMEM. */
FL_MUST_CHECK int fl__train_extras(size_t n, struct fl_buf **ret, size_t *ret_n,
                                   struct fl_err *err);
static inline bool fl__train_canceled(const struct fl_train_task *task)
{
    return task->cancel != NULL && atomic_load_explicit(task->cancel, memory_order_relaxed);
}

#endif
