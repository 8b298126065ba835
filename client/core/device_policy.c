/* The rules of `when`. Pure functions, any thread. */
#include "client/core/device_policy.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"

static bool when_in_hours(const struct fl_when *when, uint32_t minute, char *why)
{
    size_t used;
    size_t i;

    for (i = 0; i < when->n_hours; i++) {
        if (fl_hours_hold(&when->hours[i], minute)) {
            return true;
        }
    }
    if (when->n_hours == 0) {
        return true;
    }
    (void)snprintf(why, FL_WHEN_REASON, "it is %02u:%02u, outside its hours", minute / 60,
                   minute % 60);
    for (i = 0; i < when->n_hours; i++) {
        const struct fl_hours *span = &when->hours[i];

        used = strlen(why);
        (void)snprintf(why + used, FL_WHEN_REASON - used, "%s%02u:%02u-%02u:%02u",
                       i > 0 ? ", " : " ", span->from / 60, span->from % 60, span->to / 60,
                       span->to % 60);
    }
    return false;
}

/* Less is free than is asked for. */
static bool when_lacks(uint64_t wanted, uint64_t found, const char *what, char *why)
{
    char has[32];
    char least[32];

    if (wanted == 0 || found >= wanted) {
        return false;
    }
    (void)snprintf(why, FL_WHEN_REASON, "%s of %s is free, less than %s",
                   fl_str_bytes(has, sizeof(has), found), what,
                   fl_str_bytes(least, sizeof(least), wanted));
    return true;
}

bool fl_when_holds(const struct fl_when *when, const struct fl_when_facts *facts, char *why)
{
    why[0] = '\0';
    if (!when_in_hours(when, facts->minute, why)) {
        return false;
    }
    if (when->load_below > 0.0 && facts->load >= when->load_below) {
        (void)snprintf(why, FL_WHEN_REASON,
                       "it is busy: load %.2f for each processor, not below %.2f", facts->load,
                       when->load_below);
        return false;
    }
    if (when->mains && facts->mains == FL_FACT_NO) {
        (void)snprintf(why, FL_WHEN_REASON, "it runs on battery");
        return false;
    }
    if (when->unmetered && facts->unmetered == FL_FACT_NO) {
        (void)snprintf(why, FL_WHEN_REASON, "its network is metered, as NetworkManager says");
        return false;
    }
    return !when_lacks(when->free_memory, facts->free_memory, "memory", why) &&
           !when_lacks(when->free_disk, facts->free_disk, "disk space", why);
}
