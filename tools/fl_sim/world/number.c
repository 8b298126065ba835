/* Numbers of a description: those with units of libfl/base/quantity.h, shares, speeds and plain
   ones, in base units and within what each may be. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/quantity.h"
#include "libfl/base/str.h"
#include "tools/fl_sim/world/world_impl.h"

#define QUOTED_MAX 64

static const struct kind {
    const char *list, *words; /* NULL: those of `quantity` */
    double min, max;
    enum fl_quantity quantity; /* FL_QUANTITY_COUNT: none */
    double base;               /* of the quantity's base units in one of ours */
} kinds[] = {
    [FL__RATE] = {NULL, NULL, 1, 1e12, FL_QUANTITY_RATE, 8},
    [FL__TIME] = {NULL, NULL, 0, 1e9, FL_QUANTITY_TIME, 1e6},
    [FL__SIZE] = {NULL, NULL, 1, 1e15, FL_QUANTITY_SIZE, 1},
    [FL__SHARE] = {"%", "a share such as 5% or 0.05", 0, 1, FL_QUANTITY_COUNT, 1},
    [FL__SPEED] = {"samples/s", "samples a second such as 500", 1e-3, 1e12, FL_QUANTITY_COUNT, 1},
    [FL__NUMBER] = {"", "a number", 0, 1e12, FL_QUANTITY_COUNT, 1},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool find_own(const char *text, enum fl__unit_kind *ret_kind, double *ret_factor)
{
    static const struct {
        const char *name;
        enum fl__unit_kind kind;
        double factor;
    } own[] = {{"%", FL__SHARE, 0.01}, {"share", FL__SHARE, 1}, {"samples/s", FL__SPEED, 1}};
    size_t i;

    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        if (strcmp(own[i].name, text) == 0) {
            *ret_kind = own[i].kind;
            *ret_factor = own[i].factor;
            return true;
        }
    }
    return false;
}

bool fl__unit_find(const char *text, enum fl__unit_kind *ret_kind, double *ret_factor)
{
    enum fl_quantity quantity;
    double base;
    size_t i;

    if (!fl_quantity_unit(text, &quantity, &base)) {
        return find_own(text, ret_kind, ret_factor);
    }
    for (i = 0; i < N_KINDS; i++) {
        if (kinds[i].quantity == quantity) {
            *ret_kind = (enum fl__unit_kind)i;
            *ret_factor = base / kinds[i].base;
        }
    }
    return true;
}

const char *fl__unit_list(enum fl__unit_kind kind)
{
    return kinds[kind].list != NULL ? kinds[kind].list : fl_quantity_units(kinds[kind].quantity);
}

const char *fl__unit_words(enum fl__unit_kind kind)
{
    return kinds[kind].words != NULL ? kinds[kind].words : fl_quantity_words(kinds[kind].quantity);
}

bool fl__number(const char *text, double *ret)
{
    /* strtod also takes hexadecimal, "inf" and "nan", which nobody means here. */
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

/* A share, a speed or a plain number, for which no unit is needed. */
static int read_own(enum fl__unit_kind kind, const char *text, double *ret, struct fl_err *err)
{
    char quoted[QUOTED_MAX];
    char number[QUOTED_MAX];
    size_t len = fl_quantity_number(text);
    const char *unit = text + len + strspn(text + len, " ");
    enum fl__unit_kind of = kind;
    double factor = 1;

    (void)fl_log_quote(quoted, sizeof(quoted), text, strlen(text));
    (void)snprintf(number, sizeof(number), "%.*s", (int)(len < 63 ? len : 63), text);
    if (len == 0 || len > 63 || !fl__number(number, ret)) {
        return fl_err_set(err, FL_ECONF, "expected %s, found %s", kinds[kind].words, quoted);
    }
    if (unit[0] != '\0' && (!find_own(unit, &of, &factor) || of != kind)) {
        return fl_err_set(err, FL_ECONF, "expected %s, found %s%s%s", kinds[kind].words, quoted,
                          kinds[kind].list[0] != '\0' ? ": units are " : "", kinds[kind].list);
    }
    *ret *= factor;
    return FL_OK;
}

int fl__quantity(enum fl__unit_kind kind, const char *text, double *ret, struct fl_err *err)
{
    const struct kind *k = &kinds[kind];
    char quoted[QUOTED_MAX];
    const char *why;
    double value = 0;
    int rv;

    if (k->quantity == FL_QUANTITY_COUNT) {
        rv = read_own(kind, text, &value, err);
    } else {
        rv = fl_quantity_parse(k->quantity, text, &value, err) == FL_OK ? FL_OK : FL_ECONF;
    }
    if (rv != FL_OK) {
        return rv;
    }
    why = fl__refuses(kind, value / k->base);
    if (why != NULL) {
        return fl_err_set(err, FL_ECONF, "expected %s, but %s %s", fl__unit_words(kind),
                          fl_log_quote(quoted, sizeof(quoted), text, strlen(text)), why);
    }
    *ret = value / k->base;
    return FL_OK;
}

uint64_t fl__us(double seconds)
{
    return (uint64_t)nearbyint(seconds * 1e6);
}
