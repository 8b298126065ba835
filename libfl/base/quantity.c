/*
 * Parses and prints durations, sizes and rates with units. Any thread; pure.
 */

#include "libfl/base/quantity.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/str.h"

/* Longer numbers are rejected. */
#define NUMBER_MAX 64
/* Most bytes of a wrong value in a message. */
#define FOUND_MAX 96

/* The units of each kind from largest to smallest; of equal units the first is printed. */
static const struct unit {
    const char *name;
    enum fl_quantity kind;
    uint64_t base;
    bool printed;
} units[] = {
    {"d", FL_QUANTITY_TIME, UINT64_C(86400000000), false},
    {"h", FL_QUANTITY_TIME, UINT64_C(3600000000), true},
    {"m", FL_QUANTITY_TIME, 60000000, true},
    {"min", FL_QUANTITY_TIME, 60000000, false},
    {"s", FL_QUANTITY_TIME, 1000000, true},
    {"ms", FL_QUANTITY_TIME, 1000, true},
    {"us", FL_QUANTITY_TIME, 1, true},
    {"T", FL_QUANTITY_SIZE, UINT64_C(1) << 40, true},
    {"TiB", FL_QUANTITY_SIZE, UINT64_C(1) << 40, false},
    {"TB", FL_QUANTITY_SIZE, UINT64_C(1000000000000), false},
    {"G", FL_QUANTITY_SIZE, UINT64_C(1) << 30, true},
    {"GiB", FL_QUANTITY_SIZE, UINT64_C(1) << 30, false},
    {"GB", FL_QUANTITY_SIZE, UINT64_C(1000000000), false},
    {"M", FL_QUANTITY_SIZE, UINT64_C(1) << 20, true},
    {"MiB", FL_QUANTITY_SIZE, UINT64_C(1) << 20, false},
    {"MB", FL_QUANTITY_SIZE, 1000000, false},
    {"K", FL_QUANTITY_SIZE, UINT64_C(1) << 10, true},
    {"KiB", FL_QUANTITY_SIZE, UINT64_C(1) << 10, false},
    {"kB", FL_QUANTITY_SIZE, 1000, false},
    {"KB", FL_QUANTITY_SIZE, 1000, false},
    {"", FL_QUANTITY_SIZE, 1, true},
    {"B", FL_QUANTITY_SIZE, 1, false},
    {"GB/s", FL_QUANTITY_RATE, UINT64_C(8000000000), true},
    {"Gbit/s", FL_QUANTITY_RATE, UINT64_C(1000000000), true},
    {"MB/s", FL_QUANTITY_RATE, 8000000, true},
    {"Mbit/s", FL_QUANTITY_RATE, 1000000, true},
    {"kB/s", FL_QUANTITY_RATE, 8000, true},
    {"KB/s", FL_QUANTITY_RATE, 8000, false},
    {"kbit/s", FL_QUANTITY_RATE, 1000, true},
    {"Kbit/s", FL_QUANTITY_RATE, 1000, false},
    {"B/s", FL_QUANTITY_RATE, 8, true},
    {"bit/s", FL_QUANTITY_RATE, 1, true},
};
#define N_UNITS (sizeof(units) / sizeof(units[0]))

static const struct {
    const char *words, *list;
    const char *zero; /* text of 0 */
} kinds[FL_QUANTITY_COUNT] = {
    [FL_QUANTITY_TIME] = {"a duration such as 10s", "us, ms, s, m, h, d", "0s"},
    [FL_QUANTITY_SIZE] = {"a size such as 64K, 8M or 1G",
                          "B, K, M, G, T, kB, MB, GB, TB, KiB, MiB, GiB, TiB", "0"},
    [FL_QUANTITY_RATE] = {"a rate such as 2Mbit/s or 500kB/s",
                          "bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s", "0bit/s"},
};

const char *fl_quantity_words(enum fl_quantity kind)
{
    return kinds[kind].words;
}

const char *fl_quantity_units(enum fl_quantity kind)
{
    return kinds[kind].list;
}

static const struct unit *find_unit(const char *name)
{
    size_t i;

    for (i = 0; i < N_UNITS; i++) {
        if (strcmp(units[i].name, name) == 0) {
            return &units[i];
        }
    }
    return NULL;
}

bool fl_quantity_unit(const char *name, enum fl_quantity *ret_kind, double *ret_base)
{
    const struct unit *unit = name[0] != '\0' ? find_unit(name) : NULL;

    if (unit == NULL) {
        return false;
    }
    *ret_kind = unit->kind;
    *ret_base = (double)unit->base;
    return true;
}

size_t fl_quantity_number(const char *text)
{
    size_t n = strspn(text, "0123456789+-.");

    if ((text[n] == 'e' || text[n] == 'E') && n > 0) {
        size_t sign = text[n + 1] == '+' || text[n + 1] == '-';
        size_t digits = strspn(text + n + 1 + sign, "0123456789");

        n += digits > 0 ? 1 + sign + digits : 0;
    }
    return n;
}

/* NULL, or the reason of the error, to be appended to the message after the value. */
static const char *quantity_parse_text(enum fl_quantity kind, const char *text, double *ret,
                                       char *why, size_t size)
{
    char number[NUMBER_MAX];
    size_t len = fl_quantity_number(text);
    const char *name = text + len + (text[len] == ' ' ? 1 : 0);
    const struct unit *unit = find_unit(name);
    double value;

    if (len == 0 || len >= sizeof(number)) {
        return "";
    }
    (void)memcpy(number, text, len);
    number[len] = '\0';
    if (number[len - 1] == '.' || number[0] == '.' || fl_str_to_double(number, &value) != FL_OK) {
        return "";
    }
    if (unit == NULL || unit->kind != kind || (name[0] == '\0' && text[len] != '\0')) {
        (void)snprintf(why, size, name[0] == '\0' ? ": add a unit (%s)" : ": units are %s",
                       kinds[kind].list);
        return why;
    }
    *ret = value * (double)unit->base;
    return *ret >= 0.0 && isfinite(*ret) ? NULL : "";
}

/* ", 10ms to 1h", ", at least 1s" or nothing. */
static const char *range_text(const struct fl_quantity_range *range, char *out, size_t size)
{
    const struct fl_quantity_range plain = {.kind = range->kind, .step = range->step};
    char lo[FL_QUANTITY_TEXT];
    char hi[FL_QUANTITY_TEXT];

    out[0] = '\0';
    (void)fl_quantity_text(&plain, range->min, lo, sizeof(lo));
    if (range->max != 0) {
        (void)snprintf(out, size, ", %s to %s", lo,
                       fl_quantity_text(&plain, range->max, hi, sizeof(hi)));
    } else if (range->min > 0) {
        (void)snprintf(out, size, ", at least %s", lo);
    }
    return out;
}

static int reject_quantity(const struct fl_quantity_range *range, const char *text, const char *why,
                           struct fl_err *err)
{
    char within[2 * FL_QUANTITY_TEXT + 16];
    char found[FOUND_MAX];

    return fl_err_set(err, FL_EINVAL, "expected %s%s%s%s, found %s%s", kinds[range->kind].words,
                      range->none != NULL ? ", or " : "", range->none != NULL ? range->none : "",
                      range_text(range, within, sizeof(within)),
                      fl_log_quote(found, sizeof(found), text, strlen(text)), why);
}

int fl_quantity_parse(enum fl_quantity kind, const char *text, double *ret, struct fl_err *err)
{
    const struct fl_quantity_range all = {.kind = kind, .step = 1};
    char hint[128];
    double value;
    const char *why = quantity_parse_text(kind, text, &value, hint, sizeof(hint));

    if (why != NULL) {
        return reject_quantity(&all, text, why, err);
    }
    *ret = value;
    return FL_OK;
}

int fl_quantity_read(const struct fl_quantity_range *range, const char *text, uint64_t *ret,
                     struct fl_err *err)
{
    char hint[128];
    char step[FL_QUANTITY_TEXT];
    double value;
    double whole;
    const char *why;

    FL_REQUIRE(range->step > 0 && range->min <= FL_QUANTITY_MAX && range->max <= FL_QUANTITY_MAX);
    if (range->none != NULL && (strcmp(text, range->none) == 0 || strcmp(text, "0") == 0)) {
        *ret = 0;
        return FL_OK;
    }
    why = quantity_parse_text(range->kind, text, &value, hint, sizeof(hint));
    if (why != NULL) {
        return reject_quantity(range, text, why, err);
    }
    value /= (double)range->step;
    whole = round(value);
    if (range->kind != FL_QUANTITY_RATE && fabs(value - whole) > 2.0 * DBL_EPSILON * value) {
        (void)snprintf(hint, sizeof(hint), ": a multiple of %s is needed",
                       fl_quantity_text(range, 1, step, sizeof(step)));
        return reject_quantity(range, text, hint, err);
    }
    if (whole < (double)range->min ||
        whole > (double)(range->max != 0 ? range->max : FL_QUANTITY_MAX)) {
        return reject_quantity(range, text, "", err);
    }
    *ret = (uint64_t)whole;
    return FL_OK;
}

const char *fl_quantity_text(const struct fl_quantity_range *range, uint64_t value, char *out,
                             size_t size)
{
    size_t i;

    (void)snprintf(out, size, "%s", range->none != NULL ? range->none : kinds[range->kind].zero);
    for (i = 0; i < N_UNITS && value > 0; i++) {
        uint64_t steps = units[i].base / range->step;

        if (units[i].kind == range->kind && units[i].printed && units[i].base % range->step == 0 &&
            steps > 0 && value % steps == 0)
        {
            (void)snprintf(out, size, "%" PRIu64 "%s", value / steps, units[i].name);
            break;
        }
    }
    return out;
}
