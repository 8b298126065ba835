#ifndef FL_NET_WATCHDOG_H
#define FL_NET_WATCHDOG_H

/*
 * The service manager's watchdog (WatchdogSec=), fed by the loops that do the work: the one that
 * runs this asks the other one, and only its answer feeds. So a loop that hangs ends the process,
 * and systemd starts it again; a thread or timer that lives beside a dead loop would hide it.
 *
 * Threading: create and close on `loop`.
 */

#include "libfl/net/loop.h"

struct fl_watchdog;

/*
 * `asked`: the loop that has to answer; NULL: `loop` alone. Where nobody expects to be fed this
 * does nothing.
 */
FL_MUST_CHECK int fl_watchdog_create(struct fl_loop *loop, struct fl_loop *asked,
                                     struct fl_watchdog **ret);
/*
 * Before each time the service manager is fed, `healthy`(ctx) is asked on `loop`; false: it is not
 * fed. For what neither loop notices, as a worker thread that never returns from a job.
 */
typedef bool fl_watchdog_healthy_fn(void *ctx);
void fl_watchdog_heed(struct fl_watchdog *watchdog, fl_watchdog_healthy_fn *healthy, void *ctx);
/* Feeds no more. NULL is allowed. */
void fl_watchdog_close(struct fl_watchdog *watchdog);

#endif
