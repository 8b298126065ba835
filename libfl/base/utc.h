#ifndef FL_BASE_UTC_H
#define FL_BASE_UTC_H

/*
 * Conversion between seconds since 1970 and UTC dates. Certificates and records have dates after
 * January 2038, beyond the 32-bit time_t of Debian 12 on armhf. Pure.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tm;

/* false: out of range of a struct tm, such as the year 300 000 000 000. */
bool fl_utc(int64_t s, struct tm *ret);
/* As mktime(), but in UTC; the day of the week is ignored. */
int64_t fl_utc_seconds(const struct tm *tm);

/* Room for any date. */
#define FL_UTC_TEXT 32
/* "2026-11-29T04:33:59Z"; false: out of range. */
bool fl_utc_text(int64_t s, char out[FL_UTC_TEXT]);

#endif
