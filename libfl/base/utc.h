#ifndef FL_BASE_UTC_H
#define FL_BASE_UTC_H

/*
 * Dates of seconds since 1970, and back. Certificates and records have dates after January 2038,
 * which are beyond a time_t of 32 bits, as that of Debian 12 on armhf. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tm;

/* false: beyond what a struct tm holds, as the year 300 000 000 000. */
bool fl_utc(int64_t s, struct tm *ret);
/* What mktime() would make of `tm` in UTC; the day of the week does not count. */
int64_t fl_utc_seconds(const struct tm *tm);

#endif
