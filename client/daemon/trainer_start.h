#ifndef FL_CLIENTD_TRAINER_START_H
#define FL_CLIENTD_TRAINER_START_H

/*
 * The first start of a persistent trainer, which reports the number of samples: on the training
 * thread, before the session starts. A failed start is retried after 1 s, 2 s, 4 s, ... up to a
 * minute, without limit.
 */

#include "client/daemon/client_data.h"
#include "client/daemon/jobs.h"

struct fl_trainer_starting {
    const struct fl_jobs *jobs;
    struct fl_trainer *trainer;
    struct fl_local_data *data; /* receives the numbers of samples */
    fl_loop_cb changed;         /* called on the loop when the start succeeded or failed */
    void *arg;
    /* Private. */
    struct fl_timer *timer;
    bool ready;
    unsigned failures;
    uint64_t samples, evaluation_samples;
    char why[FL_ERR_BUF_SIZE]; /* error of the last failed start; "": none */
    int code;                  /* written by the training thread, as is `err` */
    struct fl_err err;
};

/* Set all fields before `timer` first. FL_ENOMEM. */
FL_MUST_CHECK int fl_trainer_starting_begin(struct fl_trainer_starting *starting);
/* Call it before the loop is freed. All zero is allowed. */
void fl_trainer_starting_stop(struct fl_trainer_starting *starting);

#endif
