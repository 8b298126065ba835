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

/* Clocks of two hosts that differ by less agree, as far as certificates and people need it. */
#define FL_CLOCKS_AGREE_MS 60000
#define FL_CLOCKS_TEXT     256
/*
 * "the clocks differ by 2 days (this host: …, the server: …); set the wrong one (timedatectl)" of
 * two times since 1970; `other` names the other host. NULL when they agree, or its time is 0: not
 * sent. Returns `out`.
 */
const char *fl_clocks_text(char out[FL_CLOCKS_TEXT], int64_t ours_ms, const char *other,
                           uint64_t theirs_ms);

#endif
