/* Parses numbers with units. Prefixes of rates are powers of 1 000, as usual for networks; sizes
   have both kinds. Pure functions, any thread. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/world/world_impl.h"

#define QUOTED_MAX 64

static const struct unit {
    const char *name;
    enum fl__unit_kind kind;
    double factor;
} units[] = {
    {"bit/s", FL__RATE, 0.125},
    {"Kbit/s", FL__RATE, 125},
    {"KB/s", FL__RATE, 1e3},
    {"kbit/s", FL__RATE, 125},
    {"Mbit/s", FL__RATE, 125e3},
    {"Gbit/s", FL__RATE, 125e6},
    {"B/s", FL__RATE, 1},
    {"kB/s", FL__RATE, 1e3},
    {"MB/s", FL__RATE, 1e6},
    {"GB/s", FL__RATE, 1e9},
    {"us", FL__TIME, 1e-6},
    {"ms", FL__TIME, 1e-3},
    {"s", FL__TIME, 1},
    {"m", FL__TIME, 60},
    {"min", FL__TIME, 60},
    {"h", FL__TIME, 3600},
    {"d", FL__TIME, 86400},
    {"B", FL__SIZE, 1},
    {"kB", FL__SIZE, 1e3},
    {"MB", FL__SIZE, 1e6},
    {"GB", FL__SIZE, 1e9},
    {"TB", FL__SIZE, 1e12},
    {"KiB", FL__SIZE, 1024},
    {"MiB", FL__SIZE, 1048576},
    {"GiB", FL__SIZE, 1073741824.0},
    {"%", FL__SHARE, 0.01},
    {"share", FL__SHARE, 1},
    {"samples/s", FL__SPEED, 1},
};

static const struct kind {
    const char *list, *words;
    double min, max;
} kinds[] = {
    [FL__RATE] = {"bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s", "a rate such as 2Mbit/s",
                  1, 1e12},
    [FL__TIME] = {"us, ms, s, min, h, d", "a time such as 40ms", 0, 1e9},
    [FL__SIZE] = {"B, kB, MB, GB, TB, KiB, MiB, GiB", "a size such as 1.5GB", 1, 1e15},
    [FL__SHARE] = {"%", "a share such as 5% or 0.05", 0, 1},
    [FL__SPEED] = {"samples/s", "samples a second such as 500", 1e-3, 1e12},
    [FL__NUMBER] = {"", "a number", 0, 1e12},
};

bool fl__unit_find(const char *text, enum fl__unit_kind *ret_kind, double *ret_factor)
{
    size_t i;

    for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(units[i].name, text) == 0) {
            *ret_kind = units[i].kind;
            *ret_factor = units[i].factor;
            return true;
        }
    }
    return false;
}

const char *fl__unit_list(enum fl__unit_kind kind)
{
    return kinds[kind].list;
}

const char *fl__unit_words(enum fl__unit_kind kind)
{
    return kinds[kind].words;
}

bool fl__number(const char *text, double *ret)
{
    /* strtod() also accepts hexadecimal, "inf" and "nan", which are errors here. */
    return strspn(text, "0123456789+-.eE") == strlen(text) && fl_str_to_double(text, ret) == FL_OK;
}

const char *fl__refuses(enum fl__unit_kind kind, double value)
{
    if (!isfinite(value)) {
        return "is not finite";
    }
    if (value < 0) {
        return "is negative";
    }
    if (kind == FL__SHARE && value > 1) {
        return "is more than 100 %";
    }
    if (value <= 0 && kinds[kind].min > 0) {
        return "is zero";
    }
    if (value < kinds[kind].min) {
        return "is too small";
    }
    return value > kinds[kind].max ? "is too large" : NULL;
}

double fl__within(enum fl__unit_kind kind, double value)
{
    return fmin(fmax(value, kinds[kind].min), kinds[kind].max);
}

/* Length of the number at the beginning; an "e" belongs to it only when digits follow. */
static size_t quantity_number_len(const char *text)
{
    size_t n = strspn(text, "0123456789+-.");

    if ((text[n] == 'e' || text[n] == 'E') && n > 0) {
        size_t sign = text[n + 1] == '+' || text[n + 1] == '-';
        size_t digits = strspn(text + n + 1 + sign, "0123456789");

        n += digits > 0 ? 1 + sign + digits : 0;
    }
    return n;
}

int fl__quantity(enum fl__unit_kind kind, const char *text, double *ret, struct fl_err *err)
{
    bool bare_allowed = kind == FL__SHARE || kind == FL__SPEED || kind == FL__NUMBER;
    char quoted[QUOTED_MAX];
    char number[64];
    size_t len = quantity_number_len(text);
    const char *unit = text + len + strspn(text + len, " ");
    enum fl__unit_kind of;
    double factor = 1;
    double value;
    const char *why;

    (void)fl_log_quote(quoted, sizeof(quoted), text, strlen(text));
    (void)snprintf(number, sizeof(number), "%.*s", (int)(len < 63 ? len : 63), text);
    if (len == 0 || len > 63 || !fl__number(number, &value)) {
        return fl_err_set(err, FL_ECONF, "expected %s, found %s", kinds[kind].words, quoted);
    }
    if (unit[0] == '\0' && !bare_allowed) {
        return fl_err_set(err, FL_ECONF, "expected %s, found %s: add a unit (%s)",
                          kinds[kind].words, quoted, kinds[kind].list);
    }
    if (unit[0] != '\0' && (!fl__unit_find(unit, &of, &factor) || of != kind)) {
        return fl_err_set(err, FL_ECONF, "expected %s, found %s%s%s", kinds[kind].words, quoted,
                          kinds[kind].list[0] != '\0' ? ": units are " : "", kinds[kind].list);
    }
    why = fl__refuses(kind, value * factor);
    if (why != NULL) {
        return fl_err_set(err, FL_ECONF, "expected %s, but %s %s", kinds[kind].words, quoted, why);
    }
    *ret = value * factor;
    return FL_OK;
}

uint64_t fl__us(double seconds)
{
    return (uint64_t)nearbyint(seconds * 1e6);
}
