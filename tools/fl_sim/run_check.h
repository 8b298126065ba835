#ifndef FL_SIM_RUN_CHECK_H
#define FL_SIM_RUN_CHECK_H

/* Checks of an experiment before anything runs, and the figures that they find. */

#include "tools/fl_sim/run.h"

/* `run` is borrowed, the other members belong to the check; zero them before the call. */
struct run_check {
    struct run *run;
    /* [n_partitions] each once; labels are borrowed from the experiment */
    struct fl_run_partition *partitions;
    size_t n_partitions, cap;
    char (*hashes)[80];
    size_t program;            /* first point with a program of the user; SIZE_MAX: none has one */
    uint64_t data_bytes, most; /* bytes: of samples; of memory beside them, of one trial */
};

/* Check data, network and device model, and model of each point, and of each trial with data of its
   own. Errors of setting_open() and setting_check(). */
FL_MUST_CHECK int run_check_all(struct run_check *c, struct fl_err *err);
/* After run_check_open(). FL_ENOMEM: this machine has less memory than so many processes with
   `at_once` trials need. */
FL_MUST_CHECK int run_check_memory(const struct run_check *c, uint64_t processes, unsigned at_once,
                                   struct fl_err *err);
void run_check_done(struct run_check *c);

#endif
