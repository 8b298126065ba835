#ifndef FL_SERVERD_DRIVER_H
#define FL_SERVERD_DRIVER_H

/*
 * The coordinator thread: steps fl_coord and executes its effects on the worker threads and,
 * through fl_net_msg messages, in the network front end.
 *
 * Threading: fl_runtime_post() from any thread, everything else before the thread starts or after
 * it ended.
 */

#include "server/daemon/serverd.h"

/* Open the state and load the model to continue with. Does not start the thread. */
FL_MUST_CHECK int fl_runtime_create(struct fl_serverd *srv, struct fl_runtime **ret, int *ret_exit,
                                    struct fl_err *err);
FL_MUST_CHECK int fl_runtime_start(struct fl_runtime *runtime, struct fl_err *err);
/* The coordinator's loop. Any thread. */
struct fl_loop *fl_runtime_loop(struct fl_runtime *runtime);
/* Takes `up`. */
void fl_runtime_post(struct fl_runtime *runtime, struct fl_coord_msg *up);
/* Stop the thread (no effect is executed after) and join it. Idempotent. */
void fl_runtime_stop(struct fl_runtime *runtime);
/* Call after the worker threads were freed. */
void fl_runtime_free(struct fl_runtime *runtime);

#endif
