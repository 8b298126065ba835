#include "libfl/base/hours.h"

#include <stddef.h>

const char *fl_hours_time(const char *text, uint32_t *ret_minutes)
{
    uint32_t hour;
    uint32_t minute;
    size_t i;

    for (i = 0; i < 5; i++) {
        if (i == 2 ? text[i] != ':' : text[i] < '0' || text[i] > '9') {
            return NULL;
        }
    }
    hour = (uint32_t)(text[0] - '0') * 10 + (uint32_t)(text[1] - '0');
    minute = (uint32_t)(text[3] - '0') * 10 + (uint32_t)(text[4] - '0');
    *ret_minutes = hour * 60 + minute;
    return minute < 60 && *ret_minutes <= FL_DAY_MINUTES ? text + 5 : NULL;
}

int fl_hours_read(const char *text, struct fl_hours *ret, struct fl_err *err)
{
    struct fl_hours hours = {0, 0};
    const char *rest = fl_hours_time(text, &hours.from);

    if (rest != NULL && *rest == '-') {
        rest = fl_hours_time(rest + 1, &hours.to);
    } else {
        rest = NULL;
    }
    if (rest == NULL || *rest != '\0' || hours.from == FL_DAY_MINUTES) {
        return fl_err_set(
            err, FL_EINVAL,
            "expected two times of the day such as 22:00-06:00, 00:00 to 24:00, found "
            "'%.64s'",
            text);
    }
    if (hours.from == hours.to) {
        return fl_err_set(
            err, FL_EINVAL,
            "expected two different times, found '%.64s': the whole day is 00:00-24:00", text);
    }
    *ret = hours;
    return FL_OK;
}

bool fl_hours_hold(const struct fl_hours *hours, uint32_t minute)
{
    return hours->from < hours->to ? minute >= hours->from && minute < hours->to
                                   : minute >= hours->from || minute < hours->to;
}
