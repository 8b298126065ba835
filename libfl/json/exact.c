/* Writes JSON with numbers that are read back as the same bits. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/json/json.h"

/* Maximum nesting depth; JSON of this project is flatter. */
#define DEEPEST 32

const char *fl_json_exact(double value, char out[FL_JSON_EXACT])
{
    int digits = 15;
    uint64_t want;
    uint64_t got;
    double back;

    if (!isfinite(value)) {
        (void)snprintf(out, FL_JSON_EXACT, "null");
        return out;
    }
    (void)memcpy(&want, &value, sizeof(want));
    do {
        (void)snprintf(out, FL_JSON_EXACT, "%.*g", digits, value);
        back = strtod(out, NULL);
        (void)memcpy(&got, &back, sizeof(got));
    } while (got != want && ++digits <= 17);
    if (strpbrk(out, ".e") == NULL) {
        /* Without a point or exponent it would be parsed as an integer, which has no -0. */
        (void)snprintf(out + strlen(out), FL_JSON_EXACT - strlen(out), ".0");
    }
    return out;
}

int fl_json_add_text(struct fl_buf *out, const char *text)
{
    json_t *value = json_string(text);
    char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    int rv = dump != NULL ? fl_buf_add(out, dump, strlen(dump)) : FL_ENOMEM;

    free(dump);
    json_decref(value);
    return rv;
}

static int exact_add(struct fl_buf *out, const json_t *value, int depth);

static int exact_begin_member(struct fl_buf *out, size_t i, int depth)
{
    return fl_buf_printf(out, "%s\n%*s", i > 0 ? "," : "", 2 * depth, "");
}

static int exact_end_members(struct fl_buf *out, size_t n, int depth, char mark)
{
    return n > 0 ? fl_buf_printf(out, "\n%*s%c", 2 * depth, "", mark)
                 : fl_buf_printf(out, "%c", mark);
}

static int exact_add_object(struct fl_buf *out, const json_t *value, int depth)
{
    /* jansson's iterator has no const variant; nothing is changed. */
    void *it = json_object_iter((json_t *)(uintptr_t)value);
    size_t i = 0;
    int rv = fl_buf_printf(out, "{");

    if (rv != FL_OK) {
        return rv;
    }
    while (it != NULL) {
        rv = exact_begin_member(out, i++, depth + 1);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_json_add_text(out, json_object_iter_key(it));
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_buf_printf(out, ": ");
        if (rv != FL_OK) {
            return rv;
        }
        rv = exact_add(out, json_object_iter_value(it), depth + 1);
        if (rv != FL_OK) {
            return rv;
        }
        it = json_object_iter_next((json_t *)(uintptr_t)value, it);
    }
    return exact_end_members(out, i, depth, '}');
}

static int exact_add_array(struct fl_buf *out, const json_t *value, int depth)
{
    size_t n = json_array_size(value);
    size_t i;
    int rv = fl_buf_printf(out, "[");

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        rv = exact_begin_member(out, i, depth + 1);
        if (rv != FL_OK) {
            return rv;
        }
        rv = exact_add(out, json_array_get(value, i), depth + 1);
        if (rv != FL_OK) {
            return rv;
        }
    }
    return exact_end_members(out, n, depth, ']');
}

static int exact_add(struct fl_buf *out, const json_t *value, int depth)
{
    char number[FL_JSON_EXACT];

    if (value == NULL) {
        return FL_ENOMEM;
    }
    if (depth > DEEPEST) {
        return FL_ELIMIT;
    }
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return exact_add_object(out, value, depth);
    case JSON_ARRAY:
        return exact_add_array(out, value, depth);
    case JSON_STRING:
        return fl_json_add_text(out, json_string_value(value));
    case JSON_INTEGER:
        return fl_buf_printf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    case JSON_REAL:
        return fl_buf_printf(out, "%s", fl_json_exact(json_real_value(value), number));
    case JSON_TRUE:
        return fl_buf_printf(out, "true");
    case JSON_FALSE:
        return fl_buf_printf(out, "false");
    case JSON_NULL:
        break;
    }
    return fl_buf_printf(out, "null");
}

int fl_json_add(struct fl_buf *out, const json_t *value)
{
    int rv = exact_add(out, value, 0);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_buf_printf(out, "\n");
}
