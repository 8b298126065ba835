/*
 * Single values of options: text to number, number to text, and the description of the expected
 * form. Pure functions without allocation, any thread.
 */

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/base/quantity.h"
#include "libfl/base/str.h"
#include "libfl/conf/conf_impl.h"

/* Length of an invalid value in a message, enough to recognise it. */
#define FOUND_MAX 96

/* The base units in which the types with a unit are stored. */
static const struct fl_quantity_range *stored_in(enum fl_opt_type type)
{
    static const struct fl_quantity_range size = {.kind = FL_QUANTITY_SIZE, .step = 1};
    static const struct fl_quantity_range ms = {.kind = FL_QUANTITY_TIME, .step = 1000};
    static const struct fl_quantity_range rate = {
        .kind = FL_QUANTITY_RATE, .step = 8, .none = "none"};

    return type == FL_OPT_BYTES      ? &size
           : type == FL_OPT_DURATION ? &ms
           : type == FL_OPT_RATE     ? &rate
                                     : NULL;
}

const char *fl__opt_format(enum fl_opt_type type, const struct fl__opt_number *number, char *out,
                           size_t size)
{
    switch (type) {
    case FL_OPT_BOOL:
        (void)snprintf(out, size, "%s", number->i != 0 ? "yes" : "no");
        break;
    case FL_OPT_INT:
    case FL_OPT_INT_LIST:
        (void)snprintf(out, size, "%" PRId64, number->i);
        break;
    case FL_OPT_FLOAT: {
        int digits;

        for (digits = 6; digits <= 17; digits++) {
            double back = 0.0;

            (void)snprintf(out, size, "%.*g", digits, number->f);
            if (fl_str_to_double(out, &back) == FL_OK && !(back < number->f) && !(back > number->f))
            {
                break;
            }
        }
        break;
    }
    case FL_OPT_BYTES:
    case FL_OPT_DURATION:
    case FL_OPT_RATE:
        (void)fl_quantity_text(stored_in(type), number->u, out, size);
        break;
    case FL_OPT_STRING:
    case FL_OPT_ENUM:
    case FL_OPT_STRING_LIST:
    case FL_OPT_MAP:
        if (size > 0) {
            out[0] = '\0';
        }
        break;
    }
    return out;
}

static bool has_range(const struct fl_opt_spec *spec)
{
    return spec->min < 0.0 || spec->min > 0.0 || spec->max < 0.0 || spec->max > 0.0;
}

static const char *bound_text(const struct fl_opt_spec *spec, double value, char *out, size_t size)
{
    struct fl__opt_number number = {.u = value > 0.0 ? (uint64_t)value : 0};

    if (stored_in(spec->type) != NULL) {
        return fl__opt_format(spec->type, &number, out, size);
    }
    (void)snprintf(out, size, "%.15g", value);
    return out;
}

const char *fl__opt_range(const struct fl_opt_spec *spec, char *out, size_t size)
{
    char lo[48];
    char hi[48];

    if (!has_range(spec)) {
        (void)snprintf(out, size, "%s", "");
    } else if (isinf(spec->max)) {
        (void)snprintf(out, size, "at least %s", bound_text(spec, spec->min, lo, sizeof(lo)));
    } else if (isinf(spec->min)) {
        (void)snprintf(out, size, "at most %s", bound_text(spec, spec->max, hi, sizeof(hi)));
    } else {
        (void)snprintf(out, size, "%s to %s", bound_text(spec, spec->min, lo, sizeof(lo)),
                       bound_text(spec, spec->max, hi, sizeof(hi)));
    }
    return out;
}

static const char *type_words(enum fl_opt_type type)
{
    switch (type) {
    case FL_OPT_BOOL:
        return "yes or no";
    case FL_OPT_INT:
        return "a whole number";
    case FL_OPT_FLOAT:
        return "a number";
    case FL_OPT_BYTES:
        return fl_quantity_words(FL_QUANTITY_SIZE);
    case FL_OPT_DURATION:
        return fl_quantity_words(FL_QUANTITY_TIME);
    case FL_OPT_RATE:
        return "a rate such as 2Mbit/s or 500kB/s, or none";
    case FL_OPT_STRING:
        return "a text";
    case FL_OPT_ENUM:
        return "one of";
    case FL_OPT_STRING_LIST:
        return "a list of texts";
    case FL_OPT_INT_LIST:
        return "a list of whole numbers";
    case FL_OPT_MAP:
        return "a mapping of text to text";
    }
    return "a value";
}

const char *fl__opt_describe(const struct fl_opt_spec *spec, char *out, size_t size)
{
    char range[128];
    size_t used = 0;
    size_t i;

    if ((spec->flags & (unsigned)FL_OPT_MANY) != 0) {
        (void)snprintf(out, size, "a mapping of text to text or to a list of texts");
        return out;
    }
    if (spec->type != FL_OPT_ENUM) {
        (void)fl__opt_range(spec, range, sizeof(range));
        (void)snprintf(out, size, "%s%s%s%s", type_words(spec->type), range[0] != '\0' ? ", " : "",
                       range, spec->type == FL_OPT_INT_LIST && range[0] != '\0' ? " each" : "");
        return out;
    }
    (void)snprintf(out, size, "one of ");
    used = strlen(out);
    for (i = 0; spec->choices[i] != NULL && used + 1 < size; i++) {
        (void)snprintf(out + used, size - used, "%s%s", i > 0 ? ", " : "", spec->choices[i]);
        used += strlen(out + used);
    }
    return out;
}

int fl__opt_refuse(const struct fl_opt_spec *spec, const char *found, struct fl_err *err)
{
    char want[320];

    return fl_err_set(err, FL_ECONF, "expected %s, found %s",
                      fl__opt_describe(spec, want, sizeof(want)), found);
}

static const char *quote_found(const struct fl_opt_spec *spec, const char *text, char *out,
                               size_t size)
{
    if ((spec->flags & (unsigned)FL_OPT_SECRET) != 0) {
        (void)snprintf(out, size, "something else (not shown)");
        return out;
    }
    return fl_log_quote(out, size, text, strlen(text));
}

static bool parse_bool(const char *text, int64_t *ret)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on"};
    size_t i;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t j = 0;

        /* Case is ignored: YAML 1.1 has True and TRUE as well. */
        while (words[i][j] != '\0' && (text[j] == words[i][j] || text[j] == words[i][j] - 32)) {
            j++;
        }
        if (words[i][j] == '\0' && text[j] == '\0') {
            *ret = (int64_t)(i & 1);
            return true;
        }
    }
    return false;
}

static int parse_quantity(const struct fl_opt_spec *spec, const char *text, uint64_t *ret,
                          struct fl_err *err)
{
    struct fl_quantity_range range = *stored_in(spec->type);

    if (has_range(spec)) {
        range.min = spec->min > 0.0 ? (uint64_t)spec->min : 0;
        range.max = spec->max < (double)FL_QUANTITY_MAX ? (uint64_t)spec->max : 0;
    }
    if (fl_quantity_read(&range, text, ret, err) != FL_OK) {
        return FL_ECONF;
    }
    return FL_OK;
}

static int parse_enum(const struct fl_opt_spec *spec, const char *text, int64_t *ret,
                      struct fl_err *err)
{
    const char *near = NULL;
    char found[FOUND_MAX];
    size_t n;
    int rv;

    for (n = 0; spec->choices[n] != NULL; n++) {
        if (strcmp(spec->choices[n], text) == 0) {
            *ret = (int64_t)n;
            return FL_OK;
        }
    }
    rv = fl__opt_refuse(spec, quote_found(spec, text, found, sizeof(found)), err);
    near = fl_str_nearest(text, spec->choices, n);
    if (near != NULL && err != NULL) {
        size_t used = strlen(err->msg);

        (void)snprintf(err->msg + used, sizeof(err->msg) - used, ", did you mean '%s'?", near);
    }
    return rv;
}

int fl__opt_parse(const struct fl_opt_spec *spec, const char *text, struct fl__opt_number *ret,
                  struct fl_err *err)
{
    struct fl__opt_number number = {0};
    double value = 0.0;
    bool good = true;
    int rv = FL_OK;

    switch (spec->type) {
    case FL_OPT_BOOL:
        good = parse_bool(text, &number.i);
        break;
    case FL_OPT_INT:
    case FL_OPT_INT_LIST:
        good = fl_str_to_i64(text, &number.i) == FL_OK;
        value = (double)number.i;
        break;
    case FL_OPT_FLOAT:
        /* strtod also accepts hexadecimal, which no configuration uses. */
        good = strspn(text, "0123456789+-.eE") == strlen(text) &&
               fl_str_to_double(text, &number.f) == FL_OK;
        value = number.f;
        break;
    case FL_OPT_BYTES:
    case FL_OPT_DURATION:
    case FL_OPT_RATE:
        rv = parse_quantity(spec, text, &number.u, err);
        if (rv != FL_OK) {
            return rv;
        }
        *ret = number;
        return FL_OK;
    case FL_OPT_ENUM:
        rv = parse_enum(spec, text, &number.i, err);
        break;
    case FL_OPT_STRING:
    case FL_OPT_STRING_LIST:
    case FL_OPT_MAP:
        *ret = number;
        return FL_OK;
    }
    if (rv != FL_OK) {
        return rv;
    }
    if (!good || (spec->type != FL_OPT_BOOL && spec->type != FL_OPT_ENUM && has_range(spec) &&
                  !(value >= spec->min && value <= spec->max)))
    {
        char found[FOUND_MAX];

        return fl__opt_refuse(spec, quote_found(spec, text, found, sizeof(found)), err);
    }
    *ret = number;
    return FL_OK;
}

int fl__opt_unknown(const char *what, const char *name, const char *const *known, size_t n,
                    struct fl_err *err)
{
    const char *near = fl_str_nearest(name, known, n);
    char quoted[FOUND_MAX];
    char list[256];
    size_t used = 0;
    size_t i;

    (void)fl_log_quote(quoted, sizeof(quoted), name, strlen(name));
    if (near != NULL) {
        return fl_err_set(err, FL_ECONF, "unknown %s %s, did you mean '%s'?", what, quoted, near);
    }
    list[0] = '\0';
    for (i = 0; i < n; i++) {
        size_t need = strlen(known[i]) + 2;

        if (used + need + sizeof(", ...") > sizeof(list)) {
            (void)snprintf(list + used, sizeof(list) - used, ", ...");
            break;
        }
        (void)snprintf(list + used, sizeof(list) - used, "%s%s", i > 0 ? ", " : "", known[i]);
        used += strlen(list + used);
    }
    return fl_err_set(err, FL_ECONF, "unknown %s %s, known: %s", what, quoted,
                      n > 0 ? list : "none");
}
