#ifndef FL_SERVERD_DRIVER_H
#define FL_SERVERD_DRIVER_H

/*
 * The coordinator thread: steps fl_coord and carries out its effects on the lanes and,
 * through fl_net_msg messages, on the network.
 *
 * Threading: fl_runtime_post() from any thread, everything else before the thread starts
 * or after it ended.
 */

#include "server/daemon/serverd.h"

/* Open the state, find the model to go on with. The thread does not run yet. */
FL_MUST_CHECK int fl_runtime_create(struct fl_serverd *srv, struct fl_runtime **ret, int *ret_exit,
                                    struct fl_err *err);
FL_MUST_CHECK int fl_runtime_start(struct fl_runtime *runtime, struct fl_err *err);
/* The coordinator's. Any thread. */
struct fl_loop *fl_runtime_loop(struct fl_runtime *runtime);
/* Takes `up`. */
void fl_runtime_post(struct fl_runtime *runtime, struct fl_coord_msg *up);
/* Stop the thread (no effect is carried out after) and join it. Idempotent. */
void fl_runtime_stop(struct fl_runtime *runtime);
/* After the lanes were freed. */
void fl_runtime_free(struct fl_runtime *runtime);

void fl_coord_msg_free(struct fl_coord_msg *up);
void fl_net_msg_free(struct fl_net_msg *down);

#endif
