#ifndef FL_CLIENTD_CLOCK_H
#define FL_CLIENTD_CLOCK_H

/* The wall clock, for certificates. */

#include <stdint.h>

/* Seconds since 1970; the argument is not looked at. */
int64_t fl_wall_seconds(void *ctx);
/* When this program was built: what says an earlier time is wrong. 0: not known. */
int64_t fl_built_seconds(void);

#endif
