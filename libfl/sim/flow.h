#ifndef FL_SIM_FLOW_H
#define FL_SIM_FLOW_H

/*
 * Transfers through a star, in one direction: each flow goes through its own spoke and through the
 * one hub, whose capacity all flows of the moment share max-min fairly (water filling): there is
 * one level, and a flow gets the level or what its spoke allows, whichever is less. A fluid: rates
 * change at once when a flow comes, ends or is stopped, there are no packets.
 *
 * Times are microseconds, rates bytes a second. Rates count in steps of 1/256 byte a second, so
 * that sums of them are exact and no result depends on the order in which flows of one instant
 * were added. Bytes are conserved to the rounding of doubles.
 *
 * Time does not run backwards: each call takes a `now_us` that is at least that of the call
 * before. Completions on the way to `now_us` count at their own times.
 *
 * Cost: a change costs O(log n) of the flows under way; flows of equal spokes count as one where
 * spokes and level cross.
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
/* The hub has another capacity from `now_us` on. */
void fl_flows_set_hub(struct fl_flows *flows, uint64_t now_us, double rate);
/*
 * A flow of `bytes` bytes begins; `cap` is the rate of its spoke, 0 unlimited. `tag` is the
 * caller's and orders completions of one microsecond, so flows under way have different ones.
 * Its id is good until the flow was popped or stopped. FL_ENOMEM: nothing has begun.
 */
FL_MUST_CHECK int fl_flows_add(struct fl_flows *flows, uint64_t now_us, uint64_t bytes, double cap,
                               uint64_t tag, uint64_t *ret_id);
/* The spoke of a flow has another rate from `now_us` on. FL_ENOMEM: it keeps the one it has. */
FL_MUST_CHECK int fl_flows_set_cap(struct fl_flows *flows, uint64_t now_us, uint64_t id,
                                   double cap);
/*
 * Take out a flow that is not popped yet; `ret_done` (may be NULL) is how many of its bytes went,
 * all of them when it was complete.
 */
void fl_flows_stop(struct fl_flows *flows, uint64_t now_us, uint64_t id, uint64_t *ret_done);
/*
 * When is the next completion, if nothing changes? Rounded up to a microsecond, so it is never
 * told before the last byte went; one of no bytes completes at once. False: no flow is under way.
 */
bool fl_flows_next(struct fl_flows *flows, uint64_t *ret_at_us);
/* Take out the next flow that is complete at `now_us`; false when there is none. */
bool fl_flows_pop(struct fl_flows *flows, uint64_t now_us, uint64_t *ret_tag);

#endif
