#ifndef FL_CLIENTD_TRAINER_START_H
#define FL_CLIENTD_TRAINER_START_H

/*
 * The first start of a persistent trainer, which knows how many samples there are: on the lane,
 * before the session begins. One that fails is tried again, after a second, two, four ... up to a
 * minute, for as long as it takes.
 */

#include "client/daemon/client_data.h"
#include "client/daemon/jobs.h"

struct fl_trainer_starting {
    const struct fl_jobs *jobs;
    struct fl_trainer *trainer;
    struct fl_local_data *data; /* gets the numbers */
    fl_loop_cb changed;         /* on the loop: it is ready, or failed */
    void *arg;
    /* Its own. */
    struct fl_timer *timer;
    bool ready;
    unsigned failures;
    uint64_t samples, evaluation_samples;
    char why[FL_ERR_BUF_SIZE]; /* the last try failed; empty: none has yet */
    int code;                  /* the lane's */
    struct fl_err err;
};

/* When the loop runs; all fields before `timer` are set. FL_ENOMEM. */
FL_MUST_CHECK int fl_trainer_starting_begin(struct fl_trainer_starting *starting);
/* Before the loop goes. All zero is allowed. */
void fl_trainer_starting_stop(struct fl_trainer_starting *starting);

#endif
