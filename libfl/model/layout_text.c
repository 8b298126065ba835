#include <stdint.h>
#include <string.h>

#include "libfl/model/layout.h"

/* A line has a name, up to eight numbers and a word. */
#define LINE_MAX_BYTES (FL_NAME_MAX + FL_LAYOUT_MAX_DIMS * 21 + 16)

/* "200x784" or "scalar" into dims; FL_EFORMAT when it is neither. */
static int parse_dims(char *text, size_t *dims, size_t *n_dims)
{
    size_t n = 0;

    *n_dims = 0;
    if (strcmp(text, "scalar") == 0) {
        return FL_OK;
    }
    for (;;) {
        char *x = strchr(text, 'x');
        uint64_t value;

        if (x != NULL) {
            *x = '\0';
        }
        if (n == FL_LAYOUT_MAX_DIMS || fl_str_to_u64(text, &value) != FL_OK ||
            value > FL_LAYOUT_MAX_FLOATS) {
            return FL_EFORMAT;
        }
        dims[n++] = (size_t)value;
        if (x == NULL) {
            *n_dims = n;
            return FL_OK;
        }
        text = x + 1;
    }
}

/* One line without its end, writable. */
static int parse_line(struct fl_layout *layout, char *line, char unit[FL_NAME_MAX],
                      struct fl_err *err)
{
    char *space = strchr(line, ' ');
    char *rest;
    size_t dims[FL_LAYOUT_MAX_DIMS];
    size_t n_dims;
    bool buffer;

    if (space == NULL) {
        return fl_err_set(err, FL_EFORMAT, "expected 'unit NAME' or 'NAME DIMxDIM [buffer]'");
    }
    *space = '\0';
    rest = space + 1;
    if (strcmp(line, "unit") == 0) {
        if (fl_str_copy(unit, FL_NAME_MAX, rest) != FL_OK) {
            return fl_err_set(err, FL_EFORMAT, "the unit's name is too long");
        }
        return FL_OK;
    }
    space = strchr(rest, ' ');
    buffer = space != NULL;
    if (buffer) {
        *space = '\0';
    }
    if ((buffer && strcmp(space + 1, "buffer") != 0) || parse_dims(rest, dims, &n_dims) != FL_OK) {
        return fl_err_set(err, FL_EFORMAT, "expected 'unit NAME' or 'NAME DIMxDIM [buffer]'");
    }
    return fl_layout_add(layout, unit, line, dims, n_dims, buffer, err);
}

static int parse_lines(struct fl_layout *layout, const char *text, size_t len, struct fl_err *err)
{
    char unit[FL_NAME_MAX] = "";
    char line[LINE_MAX_BYTES];
    size_t number = 1;
    size_t pos = 0;

    while (pos < len) {
        const char *end = memchr(text + pos, '\n', len - pos);
        size_t n = end != NULL ? (size_t)(end - (text + pos)) : len - pos;
        int rv;

        if (end == NULL || n >= sizeof(line) || memchr(text + pos, '\0', n) != NULL) {
            return fl_err_set(err, FL_EFORMAT, "layout text, line %zu: too long or not ended",
                              number);
        }
        (void)memcpy(line, text + pos, n);
        line[n] = '\0';
        rv = parse_line(layout, line, unit, err);
        if (rv != FL_OK) {
            return fl_err_wrap(err, rv, "layout text, line %zu", number);
        }
        pos += n + 1;
        number++;
    }
    return FL_OK;
}

/* The text is what is hashed, so only the one way of writing a layout is taken. */
static int check_canonical(const struct fl_layout *layout, const char *text, size_t len,
                           struct fl_err *err)
{
    struct fl_buf own;
    bool same;
    int rv = fl_layout_text(layout, &own);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "layout text: %s", fl_strerror(rv));
    }
    same = own.len == len && memcmp(own.data, text, len) == 0;
    fl_buf_done(&own);
    if (!same) {
        return fl_err_set(err, FL_EFORMAT, "layout text: repeated or empty units, or odd numbers");
    }
    return FL_OK;
}

int fl_layout_from_text(const char *text, size_t len, struct fl_layout **ret, struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    int rv = fl_layout_create(&layout);

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "layout text: %s", fl_strerror(rv));
    }
    rv = parse_lines(layout, text, len, err);
    if (rv == FL_OK) {
        rv = fl_layout_finish(layout, err);
    }
    if (rv == FL_OK) {
        rv = check_canonical(layout, text, len, err);
    }
    if (rv != FL_OK) {
        fl_layout_free(layout);
        return rv;
    }
    *ret = layout;
    return FL_OK;
}
