#include "libfl/base/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
    struct timespec ts = {0};

    (void)clock_gettime(id, &ts);
    return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

uint64_t fl_clock_ms(void)
{
    return read_ns(CLOCK_MONOTONIC) / 1000000;
}

uint64_t fl_clock_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

uint64_t fl_clock_wall_ms(void)
{
    return read_ns(CLOCK_REALTIME) / 1000000;
}
