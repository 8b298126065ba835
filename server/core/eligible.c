#include "server/core/eligible.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE_MS      UINT64_C(60000)
#define DAY_MS         (FL_DAY_MINUTES * MINUTE_MS)
#define OFFSET_MINUTES (14 * 60)

/* --- reading --- */

int fl_utc_offset_read(const char *text, int32_t *ret_minutes, struct fl_err *err)
{
    uint32_t minutes = 0;
    const char *rest = text[0] == '+' || text[0] == '-' ? fl_hours_time(text + 1, &minutes) : NULL;

    if (rest == NULL || *rest != '\0' || minutes > OFFSET_MINUTES) {
        return fl_err_set(err, FL_EINVAL,
                          "expected hours and minutes that local time is ahead of UTC, such as "
                          "+01:00 or -03:30, at most 14:00, found '%.64s'",
                          text);
    }
    *ret_minutes = text[0] == '-' ? -(int32_t)minutes : (int32_t)minutes;
    return FL_OK;
}

/* --- hours --- */

/* Time since midnight there. */
static uint64_t eligible_local_ms(const struct fl_eligible *e, uint64_t wall_ms)
{
    uint64_t ahead = (uint64_t)(FL_DAY_MINUTES + e->utc_offset) * MINUTE_MS;

    return (wall_ms % DAY_MS + ahead) % DAY_MS;
}

/* The span that begins next, or holds now (`*ret_wait` 0). NULL: there are none. */
static const struct fl_hours *hours_next(const struct fl_eligible *e, uint64_t wall_ms,
                                         uint64_t *ret_wait)
{
    uint64_t local = eligible_local_ms(e, wall_ms);
    const struct fl_hours *next = NULL;
    size_t i;

    *ret_wait = 0;
    for (i = 0; i < e->n_hours; i++) {
        uint64_t from = e->hours[i].from * MINUTE_MS;
        uint64_t wait = fl_hours_hold(&e->hours[i], (uint32_t)(local / MINUTE_MS))
                            ? 0
                            : (from + DAY_MS - local) % DAY_MS;

        if (next == NULL || wait < *ret_wait) {
            next = &e->hours[i];
            *ret_wait = wait;
        }
    }
    return next;
}

uint64_t fl_hours_wait_ms(const struct fl_eligible *e, uint64_t wall_ms)
{
    uint64_t wait;

    (void)hours_next(e, wall_ms, &wait);
    return wait;
}

const char *fl_hours_next(const struct fl_eligible *e, uint64_t wall_ms, char *out, size_t size)
{
    uint64_t wait;
    const struct fl_hours *next = hours_next(e, wall_ms, &wait);
    uint64_t minutes = (wait + MINUTE_MS - 1) / MINUTE_MS;
    uint32_t offset = (uint32_t)abs(e->utc_offset);

    if (next == NULL) {
        out[0] = '\0';
        return out;
    }
    (void)snprintf(out, size,
                   "%02" PRIu32 ":%02" PRIu32 " (utc_offset %c%02" PRIu32 ":%02" PRIu32
                   "), in %" PRIu64 " h %02" PRIu64 " min",
                   next->from / 60, next->from % 60, e->utc_offset < 0 ? '-' : '+', offset / 60,
                   offset % 60, minutes / 60, minutes % 60);
    return out;
}

/* --- labels --- */

bool fl_eligible_labels(const struct fl_eligible *e, const struct fl_pair *labels, size_t n)
{
    return fl_labels_match(e->labels, e->n_labels, labels, n);
}

const char *fl_eligible_wanted(const struct fl_eligible *e, char *out, size_t size)
{
    size_t used = 0;
    size_t i;

    out[0] = '\0';
    for (i = 0; i < e->n_labels && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s=%s", i > 0 ? ", " : "",
                                 e->labels[i].key, e->labels[i].value);
    }
    return out;
}

const char *fl_eligible_missing(const struct fl_eligible *e, const struct fl_pair *labels, size_t n,
                                char *out, size_t size)
{
    size_t i;

    out[0] = '\0';
    for (i = 0; i < e->n_labels; i++) {
        const char *key = e->labels[i].key;
        const char *value = fl_pairs_find(labels, n, key);

        if (value == NULL) {
            (void)snprintf(out, size, "%s is not announced", key);
            return out;
        }
        if (!fl_labels_value(e->labels, e->n_labels, key, value)) {
            (void)snprintf(out, size, "%s is '%s'", key, value);
            return out;
        }
    }
    return out;
}
