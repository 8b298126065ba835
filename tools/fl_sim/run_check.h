#ifndef FL_SIM_RUN_CHECK_H
#define FL_SIM_RUN_CHECK_H

/* What is checked of an experiment before anything runs, and what is found out by it. */

#include "tools/fl_sim/run.h"

/* `run` is borrowed, the rest belongs to the check; all zero but for `run` before it. */
struct run_check {
    struct run *run;
    struct fl_run_partition *partitions; /* [n_partitions] each once; labels are the experiment's */
    size_t n_partitions, cap;
    char (*hashes)[80];
    uint64_t data_bytes, most; /* of samples; of memory beside them, of one trial */
};

/* Data, world and model of each point, and of each trial whose data are its own. Errors of
   setting_open() and setting_check(). */
FL_MUST_CHECK int run_check_all(struct run_check *c, struct fl_err *err);
/* After that. FL_ENOMEM: this machine has less than so many processes with `at_once` trials need.
 */
FL_MUST_CHECK int run_check_memory(const struct run_check *c, uint64_t processes, unsigned at_once,
                                   struct fl_err *err);
void run_check_done(struct run_check *c);

#endif
