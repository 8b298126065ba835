#ifndef FL_SERVER_WORK_MEASURE_H
#define FL_SERVER_WORK_MEASURE_H

/* Evaluation of a model by the built-in engine. */

#include <stdatomic.h>

#include "libfl/data/dataset.h"
#include "libfl/nn/net.h"

/* Accuracy and mean loss of `theta` on all of `test`, with `net` (a network that takes such
   samples). Returns early, with meaningless figures, when `cancel` is set. FL_ENOMEM. */
FL_MUST_CHECK int fl_measure(struct fl_net *net, const struct fl_dataset *test, const float *theta,
                             const atomic_bool *cancel, double *ret_accuracy, double *ret_loss);

#endif
