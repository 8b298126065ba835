#ifndef FL_BASE_BACKOFF_H
#define FL_BASE_BACKOFF_H

/*
 * Waits between attempts that fail: the first, then `factor` times as long each, up to a cap, with
 * jitter so that many hosts do not come back at once. Pure: the caller counts failures, keeps the
 * time and draws from its own seeded stream.
 */

#include <stdint.h>

#include "libfl/base/rng.h"

struct fl_backoff {
    uint64_t first_ms;
    uint64_t cap_ms; /* below first_ms it is every wait */
    unsigned factor; /* at least 1: constant */
    unsigned jitter; /* percent, up and down, at most 100 */
};

/* The wait after `failures` of them in a row, without jitter; 0 and 1 are both the first. */
uint64_t fl_backoff_base(const struct fl_backoff *rule, unsigned failures);
/* The same with jitter: `rng` gives one draw. */
uint64_t fl_backoff_wait(const struct fl_backoff *rule, unsigned failures, struct fl_rng *rng);
/* From `less` percent below `wait_ms` to `more` percent above it: one draw. */
uint64_t fl_backoff_jitter(uint64_t wait_ms, unsigned less, unsigned more, struct fl_rng *rng);

#endif
