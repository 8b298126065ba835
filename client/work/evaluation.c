#include "client/work/evaluation.h"

#include <stdlib.h>

#include "client/work/local_model.h"

static int evaluation_measure(const struct fl_worker *worker,
                              const struct fl_evaluation_request *request, const float *model,
                              struct fl_evaluation_result *ret, struct fl_err *err)
{
    const struct fl_task *task = request->task;
    struct fl_train_task fit = {.asked = *task, .model = model, .cancel = request->cancel};

    fit.asked.key.round = task->key.round > 0 ? task->key.round : 1;
    fit.asked.seed = fit.asked.order_seed = worker->seed;
    fit.asked.deadline_ms = 0; /* An evaluation has the limits of the trainer only. */
    if (request->rate != 0.0) {
        fit.asked.learning_rate = request->rate;
    }

    /* Fitting needs a learning rate. */
    if (request->setup->personal->adapts && fit.asked.learning_rate != 0.0) {
        return fl_trainer_adapt(worker->trainer, &fit, &ret->received, &ret->adapted, err);
    }
    return fl_trainer_evaluate(worker->trainer, model, request->cancel, &ret->received, err);
}

int fl_evaluation_run(const struct fl_worker *worker, const struct fl_evaluation_request *request,
                      struct fl_evaluation_result *ret, struct fl_err *err)
{
    float *own = NULL;
    int rv;

    *ret = (struct fl_evaluation_result){.received = {0}};
    if (request->setup != worker->setup) {
        return fl_err_set(err, FL_ESTATE,
                          "the setup changed: the evaluation was for another model");
    }
    rv = fl_local_copy(worker, request->setup->layout, request->model, &own, err);
    if (rv != FL_OK) {
        goto done;
    }
    rv = evaluation_measure(worker, request, own != NULL ? own : request->model, ret, err);
done:
    free(own);
    return rv;
}
