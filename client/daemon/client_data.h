#ifndef FL_CLIENTD_DATA_H
#define FL_CLIENTD_DATA_H

/* The client's data, and the trainer that works on it, as the configuration names them. */

#include "client/daemon/clientd_conf.h"
#include "client/train/trainer.h"
#include "libfl/base/log.h"

struct fl_local_data {
    struct fl_dataset *train, *test; /* owned; NULL: a program has the data, or there is none */
    uint64_t samples, evaluation_samples;
    bool asks;      /* the trainer's program knows them once it is started (trainer_start.h) */
    uint64_t stamp; /* of the files, before they were read */
};

/*
 * `name`: this client's, for programs. `descriptors`: the soft limit of them that this process was
 * started with, for programs. Borrows `data` for as long as the trainer lives.
 */
FL_MUST_CHECK int fl_local_data_open(const struct fl_client_conf *conf, const char *name,
                                     uint64_t descriptors, const struct fl_log *log,
                                     struct fl_local_data *data, struct fl_trainer **ret,
                                     struct fl_err *err);
/* command.environment as "NAME=value", for fl_str_list_free(). NULL without memory. */
char **fl_local_environment(const struct fl_client_conf *conf);
void fl_local_data_done(struct fl_local_data *data);

#endif
