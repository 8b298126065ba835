#include "client/train/validation.h"

/* The split must be the same after a restart. */
#define SEED 1

int fl_train_keep_back(struct fl_dataset *train, double share, struct fl_dataset **test,
                       struct fl_err *err)
{
    return *test == NULL && share > 0.0 ? fl_dataset_split(train, share, SEED, test, err) : FL_OK;
}

size_t fl_train_kept_back(size_t n, bool has_test, double share)
{
    return has_test ? 0 : fl_dataset_split_count(n, share);
}
