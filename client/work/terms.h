#ifndef FL_CLIENT_WORK_TERMS_H
#define FL_CLIENT_WORK_TERMS_H

/*
 * What the operator of a client lets a server ask for, compared with what the server describes. An
 * update of few samples, or of one step, nearly is those samples (docs/what-updates-tell.md).
 */

#include "client/work/worker.h"

/*
 * Before anything is allocated for the model of `setup`. FL_EPERM: it is larger than
 * terms->largest_model.
 */
FL_MUST_CHECK int fl_terms_check_model(const struct fl_worker_terms *terms,
                                       const struct fl_setup *setup, struct fl_err *err);
/*
 * The training that the setup of `worker` describes, on the samples that its trainer has now.
 * FL_EPERM: an update would be of fewer samples or fewer steps, or a limit above 1 needs the number
 * of samples and the program does not tell it.
 */
FL_MUST_CHECK int fl_terms_check_training(const struct fl_worker *worker, struct fl_err *err);
/*
 * What a finished training reports of itself: a program may have said otherwise before, or have
 * other samples now. FL_EPERM: fewer than a limit; nothing of the update may leave the client.
 */
FL_MUST_CHECK int fl_terms_check_result(const struct fl_worker_terms *terms, uint64_t samples,
                                        uint64_t steps, struct fl_err *err);

#endif
