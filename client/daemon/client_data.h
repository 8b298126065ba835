#ifndef FL_CLIENTD_DATA_H
#define FL_CLIENTD_DATA_H

/* The data set of a client and the trainer that uses it, as configured. */

#include "client/daemon/clientd_conf.h"
#include "client/train/trainer.h"
#include "libfl/base/log.h"

struct fl_local_data {
    struct fl_dataset *train,
        *test; /* owned; NULL: an external program has the data, or no data is open */
    uint64_t samples, evaluation_samples;
    bool trainer_counts; /* the trainer's program reports the counts at its start (trainer_start.h)
                          */
    uint64_t stamp;      /* fl_dataset_stamp() of the files, taken before they were read */
};

/*
 * `name`: of this client; `descriptors`: the soft limit of file descriptors that this process
 * started with. Both are passed to training programs. The trainer borrows `data` for its lifetime.
 */
FL_MUST_CHECK int fl_local_data_open(const struct fl_client_conf *conf, const char *name,
                                     uint64_t descriptors, const struct fl_log *log,
                                     struct fl_local_data *data, struct fl_trainer **ret,
                                     struct fl_err *err);
void fl_local_data_done(struct fl_local_data *data);

#endif
