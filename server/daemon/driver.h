#ifndef FL_SERVERD_DRIVER_H
#define FL_SERVERD_DRIVER_H

/*
 * The coordinator thread: steps fl_coord and carries out its effects on the lanes and,
 * through fl_down messages, on the network.
 *
 * Threading: fl_driver_post() from any thread, everything else before the thread starts
 * or after it ended.
 */

#include "server/daemon/server.h"

/* Open the state, find the model to go on with. The thread does not run yet. */
FL_MUST_CHECK int fl_driver_create(struct fl_serverd *srv, struct fl_driver **ret, int *ret_exit,
                                   struct fl_err *err);
FL_MUST_CHECK int fl_driver_start(struct fl_driver *driver, struct fl_err *err);
/* The coordinator's. Any thread. */
struct fl_loop *fl_driver_loop(struct fl_driver *driver);
/* Takes `up`. */
void fl_driver_post(struct fl_driver *driver, struct fl_up *up);
/* Stop the thread (no effect is carried out after) and join it. Idempotent. */
void fl_driver_stop(struct fl_driver *driver);
/* After the lanes were freed. */
void fl_driver_free(struct fl_driver *driver);

void fl_up_free(struct fl_up *up);
void fl_down_free(struct fl_down *down);

#endif
