#ifndef FL_CORE_ELIGIBLE_H
#define FL_CORE_ELIGIBLE_H

/*
 * Which clients can be selected, and when (round.eligible): by the labels that they announced, and
 * by hours of the day. Pure: the time is an argument, in ms since 1970.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libfl/base/hours.h"
#include "libfl/base/match.h"

/* Size of the texts below. */
#define FL_ELIGIBLE_TEXT 256

/* All zero: every client, at any time. */
struct fl_eligible {
    const struct fl_pair *labels; /* as fl_labels_match() takes them; borrowed */
    size_t n_labels;
    struct fl_hours hours[FL_HOURS_MAX];
    size_t n_hours;
    int32_t utc_offset; /* of the hours, in minutes: local time is UTC and this */
};

/* "+01:00", "-03:30", up to 14 hours. FL_EINVAL: with what was expected. */
FL_MUST_CHECK int fl_utc_offset_read(const char *text, int32_t *ret_minutes, struct fl_err *err);

/* How long until clients can be selected again; 0: they can. At most a day. */
uint64_t fl_hours_wait_ms(const struct fl_eligible *e, uint64_t wall_ms);
/* "22:00 (utc_offset +01:00), in 7 h 30 min": when the next hours begin. Returns `out`. */
const char *fl_hours_next(const struct fl_eligible *e, uint64_t wall_ms, char *out, size_t size);

bool fl_eligible_labels(const struct fl_eligible *e, const struct fl_pair *labels, size_t n);
/* "site=berlin, site=paris": the labels that are wanted. Returns `out`. */
const char *fl_eligible_wanted(const struct fl_eligible *e, char *out, size_t size);
/* "site is 'rome'", "rack is not announced": the first label that does not match; "": all do.
   Returns `out`. */
const char *fl_eligible_missing(const struct fl_eligible *e, const struct fl_pair *labels, size_t n,
                                char *out, size_t size);

#endif
