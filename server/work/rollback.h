#ifndef FL_SERVER_WORK_ROLLBACK_H
#define FL_SERVER_WORK_ROLLBACK_H

/*
 * `flctl rollback`: the federation goes back to a kept checkpoint (docs/changing.md). Asked while
 * the server runs, carried out by the next start. `wall_ms` is the wall clock. Belongs to the
 * thread of the store.
 */

#include "server/work/server_work.h"

/*
 * Write the wish down, when it can be done. FL_ENOENT: no such checkpoint is kept, there is
 * nothing behind it, it is damaged, or it lacks a state vector; FL_ESTATE: both sides keep state
 * between rounds and `force` is not given. Nothing has changed then.
 */
FL_MUST_CHECK int fl_rollback_ask(const struct fl_federation *federation, uint64_t round,
                                  bool force, uint64_t wall_ms, struct fl_err *err);
/* At the start, before anything is read of the folder but its database. */
FL_MUST_CHECK int fl_rollback_carry_out(const struct fl_federation *federation, uint64_t wall_ms,
                                        struct fl_err *err);

#endif
