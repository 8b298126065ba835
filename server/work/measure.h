#ifndef FL_SERVER_WORK_MEASURE_H
#define FL_SERVER_WORK_MEASURE_H

/* Evaluation of a model by the built-in engine. */

#include <stdatomic.h>

#include "libfl/data/dataset.h"
#include "libfl/nn/net.h"
#include "libfl/nn/net_metrics.h"

/* What an evaluation of the server found. */
struct fl_evaluated {
    double accuracy, loss;              /* loss: mean over samples */
    char metrics[FL_EVAL_METRICS_TEXT]; /* libfl/figures/eval_metrics.h */
};

/* Accuracy and mean loss of `theta` on all of `test`, with `net` (a network that takes such
   samples), and `metrics` of as many samples (NULL: none). Returns early, with meaningless figures,
   when `cancel` is set. FL_ENOMEM. */
FL_MUST_CHECK int fl_measure(struct fl_net *net, const struct fl_dataset *test, const float *theta,
                             struct fl_net_metrics *metrics, const atomic_bool *cancel,
                             struct fl_evaluated *ret);

#endif
