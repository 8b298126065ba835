#ifndef FL_CLIENT_DAY_H
#define FL_CLIENT_DAY_H

/*
 * How many rounds this client has trained today, in <state_dir>/rounds-today: a restart does not
 * begin again. Days are those since 1970, of UTC.
 */

#include <stdint.h>

#include "libfl/base/err.h"

/* 0 when the file is missing, damaged, or of another day. */
FL_MUST_CHECK int fl_day_rounds(const char *state_dir, uint64_t day, uint64_t *ret,
                                struct fl_err *err);
/* One more. */
FL_MUST_CHECK int fl_day_add(const char *state_dir, uint64_t day, struct fl_err *err);

#endif
