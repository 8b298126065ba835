#ifndef FL_MODEL_ACCURACY_H
#define FL_MODEL_ACCURACY_H

/* The evaluation of a model on test data. */

#include <stdint.h>

struct fl_evaluation {
    uint64_t samples, correct; /* correct <= samples; a model with another measure has 0 correct */
    double loss_sum;           /* the sum of the losses, not their mean */
};

#endif
