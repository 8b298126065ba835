#ifndef FL_CLIENT_DAY_H
#define FL_CLIENT_DAY_H

/*
 * The number of rounds that this client trained today, in <state_dir>/rounds-today, so that a
 * restart does not reset it. Days are counted since 1970, in UTC.
 */

#include <stdint.h>

#include "libfl/base/err.h"

/* 0 when the file is missing, damaged, or of another day. */
FL_MUST_CHECK int fl_day_rounds(const char *state_dir, uint64_t day, uint64_t *ret,
                                struct fl_err *err);
/* Count one more round. */
FL_MUST_CHECK int fl_day_add(const char *state_dir, uint64_t day, struct fl_err *err);

#endif
