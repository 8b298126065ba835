#ifndef FL_SERVER_WORK_ROLLBACK_H
#define FL_SERVER_WORK_ROLLBACK_H

/*
 * `flctl rollback`: the federation returns to an earlier checkpoint (docs/operating.md). Requested
 * while the server runs, carried out by the next start. `wall_ms` is the wall clock. Belongs to the
 * store's thread.
 */

#include "server/work/server_work.h"

/*
 * Store the request, if it is possible. FL_ENOENT: no such checkpoint exists, it is the last round,
 * it is damaged, or it lacks a state vector; FL_ESTATE: client state would be reset and `force` is
 * not given. Nothing has changed then.
 */
FL_MUST_CHECK int fl_rollback_ask(const struct fl_federation *federation, uint64_t round,
                                  bool force, uint64_t wall_ms, struct fl_err *err);
/* At the start: carry out a requested rollback, before anything but the database is read from
   the folder. */
FL_MUST_CHECK int fl_rollback_carry_out(const struct fl_federation *federation, uint64_t wall_ms,
                                        struct fl_err *err);

#endif
