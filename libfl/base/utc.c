/*
 * Alone with a time_t of 64 bits, wherever the C library has one: OpenSSL and others were built
 * with the short one on such a machine, and functions of theirs take a time_t.
 */
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
#define _TIME_BITS 64
#include <time.h>

#include "libfl/base/utc.h"

_Static_assert(sizeof(time_t) == sizeof(int64_t), "dates after 2038 need a time_t of 64 bits");

bool fl_utc(int64_t s, struct tm *ret)
{
    time_t t = s;

    return gmtime_r(&t, ret) != NULL;
}

int64_t fl_utc_seconds(const struct tm *tm)
{
    struct tm copy = *tm;

    return timegm(&copy);
}
