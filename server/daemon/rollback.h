#ifndef FL_SERVERD_ROLLBACK_H
#define FL_SERVERD_ROLLBACK_H

/*
 * `flctl rollback`: the federation goes back to a kept checkpoint (docs/changing.md). Asked on the
 * database lane while the server runs, carried out by the next start.
 */

#include "server/daemon/driver_impl.h"

/*
 * Write the wish down, when it can be done. FL_ENOENT: no such checkpoint is kept, there is
 * nothing behind it, it is damaged, or it lacks a state vector; FL_ESTATE: both sides keep state
 * between rounds and `force` is not given. Nothing has changed then.
 */
FL_MUST_CHECK int fl_rollback_ask(struct fl_driver *driver, uint64_t round, bool force,
                                  struct fl_err *err);
/* At the start, before anything is read of the folder but its database. */
FL_MUST_CHECK int fl_rollback_carry_out(struct fl_driver *driver, struct fl_err *err);

#endif
