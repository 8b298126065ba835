#ifndef FL_CLIENT_TRAIN_VALIDATION_H
#define FL_CLIENT_TRAIN_VALIDATION_H

/*
 * The evaluation data of a client: the test part of its data, or else a share of the training part
 * (data.validation), the same samples after every start.
 */

#include "libfl/data/dataset.h"

/*
 * Fill *test (NULL: the data has no test part) with `share` of `train`, which keeps the rest;
 * stays as it is with a test part, or a share of 0. The set is owned, as of fl_dataset_split().
 */
FL_MUST_CHECK int fl_train_keep_back(struct fl_dataset *train, double share,
                                     struct fl_dataset **test, struct fl_err *err);
/* Number of samples out of `n` that the split removes from training. */
size_t fl_train_kept_back(size_t n, bool has_test, double share);

#endif
