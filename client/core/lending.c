/* The rules of `when`. Pure functions, any thread. */
#include "client/core/lending.h"

#include <stdio.h>
#include <string.h>

#include "libfl/base/str.h"

/* "HH:MM" with 24:00 as the end of the day; -1: it is none. */
static int when_minute(const char *text)
{
    int hour = (text[0] - '0') * 10 + text[1] - '0';
    int minute = (text[3] - '0') * 10 + text[4] - '0';

    return hour > 24 || minute > 59 || hour * 60 + minute > FL_WHEN_DAY ? -1 : hour * 60 + minute;
}

int fl_when_span_parse(const char *text, struct fl_when_span *ret, struct fl_err *err)
{
    static const char pattern[] = "00:00-00:00";
    struct fl_when_span span;
    size_t i;

    for (i = 0; i < sizeof(pattern) - 1; i++) {
        bool fits = pattern[i] == '0' ? text[i] >= '0' && text[i] <= '9' : text[i] == pattern[i];

        if (!fits) {
            goto bad;
        }
    }
    span = (struct fl_when_span){when_minute(text), when_minute(text + 6)};
    if (text[i] != '\0' || span.from < 0 || span.to < 0 || span.from == FL_WHEN_DAY) {
        goto bad;
    }
    if (span.from == span.to) {
        return fl_err_set(err, FL_EINVAL,
                          "'%s' never holds: expected an end after the beginning, or 00:00-24:00 "
                          "for the whole day",
                          text);
    }
    *ret = span;
    return FL_OK;
bad:
    return fl_err_set(err, FL_EINVAL,
                      "expected hours such as 22:00-06:00, in the time of this host, found '%.40s'",
                      text);
}

static bool when_in_span(const struct fl_when_span *span, int minute)
{
    return span->from < span->to ? minute >= span->from && minute < span->to
                                 : minute >= span->from || minute < span->to;
}

static bool when_in_hours(const struct fl_when *when, int minute, char *why)
{
    size_t used;
    size_t i;

    for (i = 0; i < when->n_hours; i++) {
        if (when_in_span(&when->hours[i], minute)) {
            return true;
        }
    }
    if (when->n_hours == 0) {
        return true;
    }
    (void)snprintf(why, FL_WHEN_REASON, "it is %02d:%02d, outside its hours", minute / 60,
                   minute % 60);
    for (i = 0; i < when->n_hours; i++) {
        const struct fl_when_span *span = &when->hours[i];

        used = strlen(why);
        (void)snprintf(why + used, FL_WHEN_REASON - used, "%s%02d:%02d-%02d:%02d",
                       i > 0 ? ", " : " ", span->from / 60, span->from % 60, span->to / 60,
                       span->to % 60);
    }
    return false;
}

/* Less is free than is asked for. */
static bool when_lacks(uint64_t wanted, uint64_t found, const char *what, char *why)
{
    char has[32];
    char least[32];

    if (wanted == 0 || found >= wanted) {
        return false;
    }
    (void)snprintf(why, FL_WHEN_REASON, "%s of %s is free, less than %s",
                   fl_str_bytes(has, sizeof(has), found), what,
                   fl_str_bytes(least, sizeof(least), wanted));
    return true;
}

bool fl_when_holds(const struct fl_when *when, const struct fl_when_facts *facts, char *why)
{
    why[0] = '\0';
    if (!when_in_hours(when, facts->minute, why)) {
        return false;
    }
    if (when->load_below > 0.0 && facts->load >= when->load_below) {
        (void)snprintf(why, FL_WHEN_REASON,
                       "it is busy: load %.2f for each processor, not below %.2f", facts->load,
                       when->load_below);
        return false;
    }
    if (when->mains && facts->mains == FL_FACT_NO) {
        (void)snprintf(why, FL_WHEN_REASON, "it runs on battery");
        return false;
    }
    if (when->unmetered && facts->unmetered == FL_FACT_NO) {
        (void)snprintf(why, FL_WHEN_REASON, "its network is metered, as NetworkManager says");
        return false;
    }
    return !when_lacks(when->free_memory, facts->free_memory, "memory", why) &&
           !when_lacks(when->free_disk, facts->free_disk, "disk space", why);
}
