#include "server/core/retain.h"

#include <math.h>

/* The span is divided along the clock, not by age: the borders stay in place, so that the last
   checkpoint of a part stays the last one as time passes. */
static void keep_span(const struct fl_retention *rule, uint64_t now_ms, struct fl_checkpoint *list,
                      size_t n)
{
    uint64_t part = rule->parts > 0 ? rule->span_ms / rule->parts : 0;
    uint64_t last = UINT64_MAX;
    size_t i;

    for (i = n; part > 0 && i-- > 0;) {
        uint64_t made = list[i].made_ms;

        if (made == 0 || made / part == last || (now_ms > made && now_ms - made > rule->span_ms)) {
            continue;
        }
        last = made / part;
        list[i].reasons |= FL_RETAIN_SPAN;
    }
}

static void keep_best(const struct fl_retention *rule, struct fl_checkpoint *list, size_t n)
{
    uint32_t k;
    size_t i;

    for (k = 0; k < rule->best && k < n; k++) {
        struct fl_checkpoint *best = NULL;

        for (i = 0; i < n; i++) {
            if ((list[i].reasons & FL_RETAIN_BEST) == 0 && isfinite(list[i].accuracy) &&
                list[i].accuracy >= 0.0 && (best == NULL || list[i].accuracy > best->accuracy))
            { /* Of two equal ones the older stays the best. */
                best = &list[i];
            }
        }
        if (best == NULL) {
            return;
        }
        best->reasons |= FL_RETAIN_BEST;
    }
}

void fl_retain(const struct fl_retention *rule, uint64_t now_ms, struct fl_checkpoint *list,
               size_t n)
{
    size_t keep = rule->keep > 0 ? rule->keep : 1;
    size_t newest = n > keep ? n - keep : 0;
    size_t i;

    for (i = 0; i < n; i++) {
        list[i].reasons = list[i].pinned ? (unsigned)FL_RETAIN_PINNED : 0u;
        if (rule->every != 0 && list[i].round % rule->every == 0) {
            list[i].reasons |= FL_RETAIN_EVERY;
        }
        if (i >= newest) {
            list[i].reasons |= FL_RETAIN_NEWEST;
        }
    }
    keep_span(rule, now_ms, list, n);
    keep_best(rule, list, n);
}
