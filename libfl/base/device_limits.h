#ifndef FL_BASE_DEVICE_LIMITS_H
#define FL_BASE_DEVICE_LIMITS_H

/*
 * Limits of a client that can be set on the server, beside those of its own file. The values are
 * texts: a limit of a later version is refused by name, not misread. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/base/match.h"

/* 0: none. */
struct fl_device_limits {
    uint64_t upload_rate, download_rate; /* bytes of payload per second */
    uint64_t rounds_per_day;
};

#define FL_DEVICE_LIMITS_MAX 3

/*
 * Reads "upload_rate=1 Mbit/s", "download_rate", "rounds_per_day=4". FL_EINVAL: another key, or
 * a value that is no limit, with what was expected.
 */
FL_MUST_CHECK int fl_device_limits_read(const struct fl_pair *pairs, size_t n,
                                        struct fl_device_limits *ret, struct fl_err *err);
/* Is there a limit of this name? */
bool fl_device_limits_has(const char *key);
/* The lower one of each. */
struct fl_device_limits fl_device_limits_both(const struct fl_device_limits *a,
                                              const struct fl_device_limits *b);

#endif
