#include "client/train/limit.h"

struct fl__limit fl__limit_from(const struct fl_command_conf *conf)
{
    return (struct fl__limit){.time_limit_ms = conf->time_limit_ms,
                              .first_limit_ms = conf->first_limit_ms,
                              .straggler_factor = conf->straggler_factor,
                              .straggler_min_ms = conf->straggler_min_ms};
}

static uint64_t limit_min(uint64_t a, uint64_t b)
{
    return b != 0 && (a == 0 || b < a) ? b : a;
}

/*
 * Before the first good run there is no run time to derive a limit from, so first_limit_ms applies.
 */
uint64_t fl__limit_of(const struct fl__limit *l, uint64_t deadline_ms)
{
    double factor_ms = l->straggler_factor * (double)l->longest_ms;
    uint64_t limit = limit_min(deadline_ms, l->time_limit_ms);

    if (l->longest_ms == 0) {
        limit = limit_min(limit, l->first_limit_ms);
    } else if (factor_ms > 0.0) {
        factor_ms =
            factor_ms > (double)l->straggler_min_ms ? factor_ms : (double)l->straggler_min_ms;
        limit = limit_min(limit, factor_ms < 1e15 ? (uint64_t)factor_ms : 0);
    }
    return limit;
}

const char *fl__limit_note(const struct fl__limit *l, uint64_t deadline_ms)
{
    return l->longest_ms == 0 && l->first_limit_ms != 0 &&
                   fl__limit_of(l, deadline_ms) == l->first_limit_ms
               ? ": the first run here may take no longer (command.first_limit)"
               : "";
}

void fl__limit_good(struct fl__limit *l, uint64_t took_ms)
{
    if (took_ms >= l->longest_ms) {
        l->longest_ms = took_ms > 0 ? took_ms : 1;
    }
}

void fl__limit_forget(struct fl__limit *l)
{
    l->longest_ms = 0;
}
