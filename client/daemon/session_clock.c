#include "client/daemon/session_clock.h"

#include "libfl/base/clock.h"

/* Set by the build: SOURCE_DATE_EPOCH, or the time of configure. */
#ifndef FL_BUILT
#define FL_BUILT 0
#endif

int64_t fl_wall_seconds(void *ctx)
{
    (void)ctx;
    return (int64_t)(fl_clock_wall_ms() / 1000);
}

int64_t fl_built_seconds(void)
{
    return FL_BUILT;
}
