#ifndef FL_CLIENT_WORK_EVALUATION_H
#define FL_CLIENT_WORK_EVALUATION_H

/* One evaluation of a model on the client's own test data, as the server asked for it. */

#include "client/work/task.h"
#include "client/work/worker.h"

struct fl_evaluation {
    struct fl_train_evaluation received, adapted; /* adapted: 0 samples when it was not fitted */
};

/*
 * `model` [floats of the setup's layout] with what stays on this client of it, and fitted to the
 * local data where the federation's clients do that and `rate` or the task's learning rate says how
 * fast. `cancel` ends it. FL_ESTATE: `worker` is prepared for another setup by now; FL_ENOENT: no
 * test data; FL_ECANCELED; FL_ENUMERIC: fitting diverges. What is found does not depend on the
 * tasks that this process had: fitting draws from the client's own seed.
 */
FL_MUST_CHECK int fl_evaluation_run(const struct fl_worker *worker, const struct fl_setup *setup,
                                    const struct fl_task *task, const float *model, double rate,
                                    atomic_bool *cancel, struct fl_evaluation *ret,
                                    struct fl_err *err);

#endif
