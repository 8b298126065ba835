#include "client/work/evaluation.h"

#include <stdlib.h>

#include "client/work/local_model.h"

static int evaluation_measure(const struct fl_worker *worker, const struct fl_setup *setup,
                              const struct fl_task *task, const float *model, double rate,
                              atomic_bool *cancel, struct fl_evaluation_result *ret,
                              struct fl_err *err)
{
    struct fl_evaluation *r = &ret->received;
    struct fl_train_task fit = {.round = task->key.round > 0 ? task->key.round : 1,
                                .model = model,
                                .learning_rate = rate != 0.0 ? rate : task->learning_rate,
                                .seed = worker->seed,
                                .order_seed = worker->seed,
                                .n_selected = task->n_selected,
                                .population = task->population,
                                .cancel = cancel};

    /* Fitting needs a learning rate. */
    if (setup->personal->adapts && fit.learning_rate != 0.0) {
        return fl_trainer_adapt(worker->trainer, &fit, r, &ret->adapted, err);
    }
    return fl_trainer_evaluate(worker->trainer, model, cancel, r, err);
}

int fl_evaluation_run(const struct fl_worker *worker, const struct fl_setup *setup,
                      const struct fl_task *task, const float *model, double rate,
                      atomic_bool *cancel, struct fl_evaluation_result *ret, struct fl_err *err)
{
    float *own = NULL;
    int rv;

    *ret = (struct fl_evaluation_result){.received = {0}};
    if (setup != worker->setup) {
        return fl_err_set(err, FL_ESTATE,
                          "the setup changed: the evaluation was for another model");
    }
    rv = fl_local_copy(worker, setup->layout, model, &own, err);
    if (rv == FL_OK) {
        rv = evaluation_measure(worker, setup, task, own != NULL ? own : model, rate, cancel, ret,
                                err);
    }
    free(own);
    return rv;
}
