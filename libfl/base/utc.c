/*
 * This file alone is compiled with a 64-bit time_t where the C library offers one: OpenSSL and
 * other libraries were built with the 32-bit one on such machines, and have functions that take a
 * time_t.
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

bool fl_utc_text(int64_t s, char out[FL_UTC_TEXT])
{
    struct tm tm;

    return fl_utc(s, &tm) && strftime(out, FL_UTC_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm) != 0;
}

int64_t fl_utc_seconds(const struct tm *tm)
{
    struct tm copy = *tm;

    return timegm(&copy);
}
