#ifndef FL_CLIENT_WORK_EVALUATION_H
#define FL_CLIENT_WORK_EVALUATION_H

/* Evaluates a model on the client's own test data, as the server requested. */

#include "client/work/wanted.h"
#include "client/work/worker.h"

struct fl_evaluation_result {
    struct fl_evaluation received, adapted; /* adapted: 0 samples when the model was not fitted */
};

struct fl_evaluation_request {    /* borrowed for the call */
    const struct fl_setup *setup; /* that `model` was fetched for */
    const struct fl_task *task;
    const float *model; /* [floats of the setup's layout] */
    double rate;        /* learning rate of the fitting; 0: that of the task */
    atomic_bool *cancel;
};
/*
 * Evaluate the model with the local tensors of this client put in, and fitted to the local data
 * when the personalization does that and `rate` or the task's learning rate is not 0. `cancel` ends
 * it. FL_ESTATE: `worker` is prepared for another setup by now; FL_ENOENT: no test data;
 * FL_ECANCELED; FL_ENUMERIC: fitting diverges. The result does not depend on earlier tasks of this
 * process: fitting draws from the client's own seed.
 */
FL_MUST_CHECK int fl_evaluation_run(const struct fl_worker *worker,
                                    const struct fl_evaluation_request *request,
                                    struct fl_evaluation_result *ret, struct fl_err *err);

#endif
