#ifndef FL_SIM_LOCAL_DAEMONS_H
#define FL_SIM_LOCAL_DAEMONS_H

/*
 * The processes of a federation on this machine: fl-serverd, an fl-clientd for each client, and
 * flctl, whose lines are the committed rounds. The kernel kills them when the thread that started
 * them ends. Their logs are NAME.log in the folder of their files. Threading: one thread.
 */

#include "tools/fl_sim/local_files.h"

struct local_daemons;

/*
 * Starts all of them, after fl_local_write(); the programs are those beside this one, or of PATH.
 * Borrows `conf`. FL_ENOENT: a program is missing; FL_EIO: one ended, with the end of its log.
 */
FL_MUST_CHECK int local_daemons_start(const struct fl_local_conf *conf, struct local_daemons **ret,
                                      struct fl_err *err);
/*
 * Waits for the next committed round. `*ret` NULL: all rounds are done; else a line of JSON, valid
 * until the next call. FL_EIO: a daemon ended with an error, which is named with the end of its
 * log; FL_ECANCELED: `cancel` was set.
 */
FL_MUST_CHECK int local_daemons_round(struct local_daemons *daemons, const atomic_bool *cancel,
                                      const char **ret, struct fl_err *err);
/* Ends them and waits for their end. NULL is allowed. */
void local_daemons_free(struct local_daemons *daemons);

#endif
