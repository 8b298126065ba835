#ifndef FL_BASE_CLOCK_H
#define FL_BASE_CLOCK_H

/* Clocks, for code that does I/O: pure modules get the time as an argument. */

#include <stdint.h>

/* Monotonic milliseconds since an arbitrary start. */
uint64_t fl_clock_ms(void);
/* The same in nanoseconds, for measuring. */
uint64_t fl_clock_ns(void);
/* Milliseconds since 1970, for records shown to operators. */
uint64_t fl_clock_wall_ms(void);

#endif
