#ifndef FL_BASE_HOURS_H
#define FL_BASE_HOURS_H

/* Hours of the day, as "22:00-06:00". Pure. */

#include <stdbool.h>
#include <stdint.h>

#include "libfl/base/err.h"

#define FL_DAY_MINUTES 1440
/* Spans of one setting. */
#define FL_HOURS_MAX 16

/* Minutes since midnight, `to` not included; `to` below `from`: over midnight. */
struct fl_hours {
    uint32_t from, to;
};

/* Reads "HH:MM", up to 24:00: the text behind it, or NULL. */
const char *fl_hours_time(const char *text, uint32_t *ret_minutes);
/* "22:00-06:00", up to 24:00. FL_EINVAL: with what was expected; a span without a minute is none.
 */
FL_MUST_CHECK int fl_hours_read(const char *text, struct fl_hours *ret, struct fl_err *err);
/* Does a minute of the day belong to it? */
bool fl_hours_hold(const struct fl_hours *hours, uint32_t minute);

#endif
