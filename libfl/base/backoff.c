#include "libfl/base/backoff.h"

#include "libfl/base/err.h"

uint64_t fl_backoff_base(const struct fl_backoff *rule, unsigned failures)
{
    uint64_t wait = rule->first_ms;
    unsigned i;

    FL_REQUIRE(rule->factor > 0);
    for (i = 1; i < failures && wait < rule->cap_ms && rule->factor > 1; i++) {
        wait = wait > rule->cap_ms / rule->factor ? rule->cap_ms : wait * rule->factor;
    }
    return wait < rule->cap_ms ? wait : rule->cap_ms;
}

static uint64_t percent_of(uint64_t value, unsigned percent)
{
    return value / 100 * percent + value % 100 * percent / 100;
}

uint64_t fl_backoff_jitter(uint64_t wait_ms, unsigned less, unsigned more, struct fl_rng *rng)
{
    uint64_t below = percent_of(wait_ms, less);
    uint64_t above = percent_of(wait_ms, more);

    FL_REQUIRE(less <= 100 && more <= 100 && wait_ms <= UINT64_MAX / 2 - 1);
    return wait_ms - below + fl_rng_below(rng, below + above + 1);
}

uint64_t fl_backoff_wait(const struct fl_backoff *rule, unsigned failures, struct fl_rng *rng)
{
    return fl_backoff_jitter(fl_backoff_base(rule, failures), rule->jitter, rule->jitter, rng);
}
