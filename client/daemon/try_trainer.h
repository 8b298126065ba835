#ifndef FL_CLIENTD_TRY_TRAINER_H
#define FL_CLIENTD_TRY_TRAINER_H

/*
 * A dry run of the configured training program without a server
 * (docs/trainers.md#trying-a-program): runs each task that the program declares, prints
 * times and upload sizes, and checks that it follows the protocol.
 */

#include "client/daemon/clientd_conf.h"

struct fl_try_options {
    const char *model; /* a safetensors file; NULL: only the start is checked */
    bool json;
    double learning_rate;
    uint32_t epochs, batch_size;
};
#define FL_TRY_OPTIONS                                       \
    {                                                        \
        .learning_rate = 0.01, .epochs = 1, .batch_size = 16 \
    }

/* Prints the report to stdout. Returns an exit code. */
int fl_try_trainer(const struct fl_client_conf *conf, const struct fl_try_options *options);

#endif
