#ifndef FL_CLIENT_WORK_TERMS_H
#define FL_CLIENT_WORK_TERMS_H

/*
 * The operator's limits on what a server may request, checked against the setup. An update of few
 * samples, or of one step, reveals nearly those samples (docs/security.md).
 */

#include "client/work/worker.h"

/*
 * Call it before allocating memory for the model of `setup`. FL_EPERM: the model is larger than
 * terms->largest_model.
 */
FL_MUST_CHECK int fl_terms_check_model(const struct fl_worker_terms *terms,
                                       const struct fl_setup *setup, struct fl_err *err);
/*
 * Check the training of the worker's setup with the samples that its trainer has now. FL_EPERM: an
 * update would have too few samples or steps, or a limit above 1 needs the number of samples and
 * the program does not report it.
 */
FL_MUST_CHECK int fl_terms_check_training(const struct fl_worker *worker, struct fl_err *err);
/*
 * Check the numbers that a finished training reports: a program may have announced others before.
 * FL_EPERM: below a limit; nothing of the update may leave the client.
 */
FL_MUST_CHECK int fl_terms_check_result(const struct fl_worker_terms *terms, uint64_t samples,
                                        uint64_t steps, struct fl_err *err);

#endif
