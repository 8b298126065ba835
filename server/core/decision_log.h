#ifndef FL_CORE_DECISION_LOG_H
#define FL_CORE_DECISION_LOG_H

/*
 * The decision log: one line for each decision of the coordinator about a client (selection, upload
 * mask, acceptance). A log at level `debug` holds these lines, in a daemon as in a simulation, so
 * that both can be compared. They carry no times: only what follows from the settings, the data and
 * which clients answered.
 */

#include "server/core/coord.h"

#define FL_DECISION_LOG_SIZE 512

/*
 * The line of an effect of the last step, when it is TASK, PLAN, ACCEPTED, REJECTED, DISMISSED,
 * EVALUATE_CLIENT or PERSIST_UPDATE; NULL for any other. `n_units`: of the layout. Units that do
 * not fit are abbreviated with "...". Returns `out`.
 */
const char *fl_decision_log(const struct fl_coord *coord, const struct fl_effect *effect,
                            size_t n_units, char out[FL_DECISION_LOG_SIZE]);

#endif
