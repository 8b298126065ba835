#ifndef FL_PKI_WHEN_H
#define FL_PKI_WHEN_H

/* Formats times and spans for messages about clocks and certificates. Pure. */

#include <stddef.h>
#include <stdint.h>

#define FL_WHEN_TEXT 40

/* "2026-11-20 18:15:02Z" of seconds since 1970; returns `out`. */
const char *fl_when_text(char *out, size_t size, int64_t s);
/* "56 years", "3 days", "12 s": the largest unit that fits; returns `out`. */
const char *fl_span_text(char *out, size_t size, int64_t s);

#endif
