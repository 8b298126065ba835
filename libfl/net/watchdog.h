#ifndef FL_NET_WATCHDOG_H
#define FL_NET_WATCHDOG_H

/*
 * Feeds the service manager's watchdog (WatchdogSec=) from the loops that do the work: the loop
 * that runs the watchdog pings a second one, and feeds only after its reply. So a loop that hangs
 * ends the process, and systemd restarts it; a separate thread or timer beside a hung loop would
 * hide it.
 *
 * Threading: create and close on `loop`.
 */

#include "libfl/net/loop.h"

struct fl_watchdog;

/*
 * `asked`: the second loop, which must reply; NULL: `loop` alone. Without a watchdog in the unit
 * this does nothing.
 */
FL_MUST_CHECK int fl_watchdog_create(struct fl_loop *loop, struct fl_loop *asked,
                                     struct fl_watchdog **ret);
/*
 * Calls `healthy`(ctx) on `loop` each time before feeding; false: the watchdog is not fed. For
 * failures that neither loop notices, such as a worker thread that never returns from a job.
 */
typedef bool fl_watchdog_healthy_fn(void *ctx);
void fl_watchdog_heed(struct fl_watchdog *watchdog, fl_watchdog_healthy_fn *healthy, void *ctx);
/* Stops feeding. NULL is allowed. */
void fl_watchdog_close(struct fl_watchdog *watchdog);

#endif
