#ifndef FL_MODEL_ACCURACY_H
#define FL_MODEL_ACCURACY_H

/* The evaluation of a model on test data. */

#include <stdint.h>

#include "libfl/figures/eval_metrics.h"

struct fl_evaluation {
    uint64_t samples, correct; /* correct <= samples; a model with another measure has 0 correct */
    double loss_sum;           /* the sum of the losses, not their mean */
    char metrics[FL_EVAL_METRICS_TEXT]; /* libfl/figures/eval_metrics.h; "": none */
};

#endif
