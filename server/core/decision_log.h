#ifndef FL_CORE_TOLD_H
#define FL_CORE_TOLD_H

/*
 * What the coordinator decides about single clients, a line each: who was selected, what each was
 * asked for, what was taken of it. A log at level `debug` holds them, of a daemon and of a
 * simulation alike, so that one can be held against the other. Without times: only what follows
 * from the settings, the data and who answered.
 */

#include "server/core/coord.h"

#define FL_DECISION_LOG_SIZE 512

/*
 * The line of one of the last step's effects, when it is TASK, PLAN, ACCEPTED, REJECTED, DISMISSED,
 * EVALUATE_CLIENT, or PERSIST_UPDATE; NULL of any other. `n_units`: of the layout. Units that do
 * not fit are left out with "...". Returns `out`.
 */
const char *fl_decision_log(const struct fl_coord *coord, const struct fl_effect *effect,
                            size_t n_units, char out[FL_DECISION_LOG_SIZE]);

#endif
