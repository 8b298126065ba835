#ifndef FL_BASE_CLOCK_H
#define FL_BASE_CLOCK_H

/* Clocks, for the glue rooms only: the pure rooms get time as an argument. */

#include <stdint.h>

/* Milliseconds since an arbitrary start; never goes back. */
uint64_t fl_clock_ms(void);
/* The same in nanoseconds, for measuring. */
uint64_t fl_clock_ns(void);
/* Milliseconds since 1970, for records that people read. */
uint64_t fl_clock_wall_ms(void);

#endif
