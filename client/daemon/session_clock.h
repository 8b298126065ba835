#ifndef FL_CLIENTD_CLOCK_H
#define FL_CLIENTD_CLOCK_H

/* The wall clock, for certificates. */

#include <stdint.h>

/* Seconds since 1970; `ctx` is ignored. */
int64_t fl_wall_seconds(void *ctx);
/* Build time of this program in seconds since 1970: a clock before it is wrong. 0: unknown. */
int64_t fl_built_seconds(void);

#endif
