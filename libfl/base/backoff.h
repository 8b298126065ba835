#ifndef FL_BASE_BACKOFF_H
#define FL_BASE_BACKOFF_H

/*
 * Exponential backoff between failed attempts: the first wait, then `factor` times longer each, up
 * to a cap, with jitter so that many hosts do not retry at once. Pure: the caller counts failures,
 * measures time and draws from its own seeded stream.
 */

#include <stdint.h>

#include "libfl/base/rng.h"

struct fl_backoff {
    uint64_t first_ms;
    uint64_t cap_ms; /* when below first_ms, every wait is cap_ms */
    unsigned factor; /* at least 1: constant */
    unsigned jitter; /* percent, up and down, at most 100 */
};

/* The wait after `failures` consecutive failures, without jitter; 0 and 1 both give the first wait.
 */
uint64_t fl_backoff_base(const struct fl_backoff *rule, unsigned failures);
/* The same with jitter; takes one draw from `rng`. */
uint64_t fl_backoff_wait(const struct fl_backoff *rule, unsigned failures, struct fl_rng *rng);
/* From `less` percent below `wait_ms` to `more` percent above it: one draw. */
uint64_t fl_backoff_jitter(uint64_t wait_ms, unsigned less, unsigned more, struct fl_rng *rng);

#endif
