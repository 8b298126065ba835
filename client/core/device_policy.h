#ifndef FL_CLIENT_CORE_DEVICE_POLICY_H
#define FL_CLIENT_CORE_DEVICE_POLICY_H

/*
 * When a device is available: rules of the configuration (`when`), compared with facts about the
 * device. Pure: the caller reads clock and device.
 *
 * A fact that the device does not report keeps no rule from holding: a host without a battery is on
 * mains power.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/hours.h"

#define FL_WHEN_REASON 256

struct fl_when {
    struct fl_hours hours[FL_HOURS_MAX]; /* local time */
    size_t n_hours;                      /* 0: at any time */
    double load_below;                   /* load average of a minute for each processor; 0: any */
    bool mains;                          /* on mains power only */
    bool unmetered;                      /* on an unmetered network only */
    uint64_t free_memory, free_disk;     /* bytes; 0: any */
};

enum fl_fact { FL_FACT_UNKNOWN, FL_FACT_NO, FL_FACT_YES };

struct fl_when_facts {
    uint32_t minute; /* of the day, local time */
    double load;     /* as load_below; negative: unknown */
    enum fl_fact mains, unmetered;
    uint64_t free_memory, free_disk; /* UINT64_MAX: unknown */
};

/* Do all rules hold? `why`, of FL_WHEN_REASON bytes: "", or the first one that does not. */
bool fl_when_holds(const struct fl_when *when, const struct fl_when_facts *facts, char *why);

#endif
