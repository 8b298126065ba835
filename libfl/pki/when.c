#include "libfl/pki/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "libfl/base/utc.h"

const char *fl_when_text(char *out, size_t size, int64_t s)
{
    struct tm tm;

    if (!fl_utc(s, &tm) || strftime(out, size, "%Y-%m-%d %H:%M:%SZ", &tm) == 0) {
        (void)snprintf(out, size, "%" PRId64 " s after 1970", s);
    }
    return out;
}

const char *fl_span_text(char *out, size_t size, int64_t s)
{
    /* A year of 365.2425 days, so that centuries are exact. */
    static const struct {
        int64_t s;
        const char *one;
        const char *many;
    } units[] = {{31556952, "year", "years"},
                 {86400, "day", "days"},
                 {3600, "hour", "hours"},
                 {60, "minute", "minutes"},
                 {1, "second", "seconds"}};
    uint64_t span = s < 0 ? 0 - (uint64_t)s : (uint64_t)s;
    size_t i = 0;
    uint64_t n;

    while (i < sizeof(units) / sizeof(units[0]) - 1 && span < (uint64_t)units[i].s) {
        i++;
    }
    n = span / (uint64_t)units[i].s;
    (void)snprintf(out, size, "%" PRIu64 " %s", n, n == 1 ? units[i].one : units[i].many);
    return out;
}

const char *fl_clocks_text(char out[FL_CLOCKS_TEXT], int64_t ours_ms, const char *other,
                           uint64_t theirs_ms)
{
    uint64_t ours = ours_ms > 0 ? (uint64_t)ours_ms : 0;
    uint64_t apart = ours > theirs_ms ? ours - theirs_ms : theirs_ms - ours;
    char a[FL_WHEN_TEXT];
    char b[FL_WHEN_TEXT];
    char span[FL_WHEN_TEXT];

    if (theirs_ms == 0 || apart < FL_CLOCKS_AGREE_MS) {
        return NULL;
    }
    (void)snprintf(
        out, FL_CLOCKS_TEXT,
        "the clocks differ by %s (this host: %s, the %s: %s); set the wrong one (timedatectl)",
        fl_span_text(span, sizeof(span), (int64_t)(apart / 1000)),
        fl_when_text(a, sizeof(a), (int64_t)(ours / 1000)), other,
        fl_when_text(b, sizeof(b), (int64_t)(theirs_ms / 1000)));
    return out;
}
