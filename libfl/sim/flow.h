#ifndef FL_SIM_FLOW_H
#define FL_SIM_FLOW_H

/*
 * Fluid model of transfers through a star network, in one direction: each flow uses its own link
 * (spoke) and the shared hub, whose capacity is shared max-min fairly (water filling): there is one
 * level, and the rate of a flow is the smaller of the level and the rate of its spoke. Rates change
 * at once when a flow starts, ends or is stopped; there are no packets.
 *
 * Times are microseconds, rates bytes a second. Rates are multiples of 1/256 byte per second, so
 * their sums are exact and results do not depend on the order in which flows of one instant were
 * added. Bytes are conserved within the rounding of doubles.
 *
 * Time does not go backwards: the `now_us` of each call must be at least that of the previous call.
 * Completions before `now_us` take effect at their own times.
 *
 * Cost: O(log n) per change for n active flows; flows with equal spokes change sides together.
 *
 * Threading: none.
 */

#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_flows;

/* `hub_rate` 0: unlimited. A rate is finite and not negative. FL_ENOMEM. */
FL_MUST_CHECK int fl_flows_create(double hub_rate, struct fl_flows **ret);
void fl_flows_free(struct fl_flows *flows); /* NULL is allowed. */
/*
 * Start a flow of `bytes` bytes; `cap` is the rate of its spoke, 0 unlimited. `tag` is defined
 * by the caller and orders completions in one microsecond, so active flows must have different
 * tags. The id is valid until the flow is popped or stopped. FL_ENOMEM: nothing was started.
 */
FL_MUST_CHECK int fl_flows_add(struct fl_flows *flows, uint64_t now_us, uint64_t bytes, double cap,
                               uint64_t tag, uint64_t *ret_id);
/* Set the rate of a flow's spoke from `now_us` on. FL_ENOMEM: it is unchanged. */
FL_MUST_CHECK int fl_flows_set_cap(struct fl_flows *flows, uint64_t now_us, uint64_t id,
                                   double cap);
/*
 * Remove a flow that was not popped yet; `ret_done` (may be NULL) is the number of bytes
 * transferred, all of them when it was complete.
 */
void fl_flows_stop(struct fl_flows *flows, uint64_t now_us, uint64_t id, uint64_t *ret_done);
/*
 * Time of the next completion if nothing changes, rounded up to a microsecond, so never before
 * the last byte; a flow of 0 bytes completes at once. False: no active flow.
 */
bool fl_flows_next(struct fl_flows *flows, uint64_t *ret_at_us);
/* Remove the next flow that is complete at `now_us`; false when there is none. */
bool fl_flows_pop(struct fl_flows *flows, uint64_t now_us, uint64_t *ret_tag);

#endif
