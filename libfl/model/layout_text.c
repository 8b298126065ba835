/*
 * The textual form of a layout, which is hashed and stored in files: written and parsed. Pure
 * functions on the caller's thread.
 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "libfl/model/layout.h"
#include "libfl/model/shape.h"

/* A line consists of a name, up to eight numbers and two words. */
#define LINE_MAX_BYTES (FL_NAME_MAX + FL_LAYOUT_MAX_DIMS * 21 + 24)
#define TEXT_MAX       ((size_t)(FL_LAYOUT_MAX_TENSORS + FL_LAYOUT_MAX_UNITS) * LINE_MAX_BYTES)

const char *fl__shape_text(char *out, size_t size, const size_t *dims, size_t n_dims)
{
    size_t used = 0;
    size_t i;

    (void)snprintf(out, size, "scalar");
    for (i = 0; i < n_dims && used < size; i++) {
        int n = snprintf(out + used, size - used, i == 0 ? "%zu" : "x%zu", dims[i]);

        used += n > 0 ? (size_t)n : 0;
    }
    return out;
}

int fl__layout_text(const struct fl_layout *layout, bool marks, struct fl_buf *ret)
{
    char dims[FL__SHAPE_TEXT_MAX];
    struct fl_buf text;
    size_t i;
    int rv;

    fl_buf_init(&text, TEXT_MAX);
    for (i = 0; i < fl_layout_tensors(layout); i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, i);
        const struct fl_unit *u = fl_layout_unit(layout, t->unit);

        if (u->first_tensor == i) {
            rv = fl_buf_printf(&text, "unit %s\n", u->name);
            if (rv != FL_OK) {
                goto fail;
            }
        }
        rv = fl_buf_printf(&text, "%s %s%s%s\n", t->name,
                           fl__shape_text(dims, sizeof(dims), t->dims, t->n_dims),
                           t->buffer ? " buffer" : "", marks && t->local ? " local" : "");
        if (rv != FL_OK) {
            goto fail;
        }
    }
    *ret = text;
    return FL_OK;
fail:
    fl_buf_done(&text);
    return rv;
}

int fl_layout_text(const struct fl_layout *layout, struct fl_buf *ret)
{
    return fl__layout_text(layout, /* marks= */ true, ret);
}

/* "200x784" or "scalar" into dims; FL_EFORMAT when it is neither. */
static int layout_parse_dims(char *text, size_t *dims, size_t *n_dims)
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

/* Parse the marks after the dimensions: "buffer", "local", or both in this order. */
static bool layout_parse_marks(const char *text, struct fl_tensor *t)
{
    static const struct {
        const char *text;
        bool buffer, local;
    } marks[] = {{"buffer", true, false}, {"local", false, true}, {"buffer local", true, true}};
    size_t i;

    for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        if (strcmp(text, marks[i].text) == 0) {
            t->buffer = marks[i].buffer;
            t->local = marks[i].local;
            return true;
        }
    }
    return false;
}

/* Parse one line without its end, writable. */
static int layout_parse_line(struct fl_layout *layout, char *line, char unit[FL_NAME_MAX],
                             struct fl_err *err)
{
    static const char expected[] = "expected 'unit NAME' or 'NAME DIMxDIM [buffer] [local]'";
    char *space = strchr(line, ' ');
    struct fl_tensor t = {.n_dims = 0};
    char *rest;

    if (space == NULL) {
        return fl_err_set(err, FL_EFORMAT, "%s", expected);
    }
    *space = '\0';
    rest = space + 1;
    if (strcmp(line, "unit") == 0) {
        if (fl_str_copy(unit, FL_NAME_MAX, rest) != FL_OK) {
            return fl_err_set(err, FL_EFORMAT, "the unit's name is longer than the limit");
        }
        return FL_OK;
    }
    space = strchr(rest, ' ');
    if (space != NULL) {
        *space = '\0';
    }
    if ((space != NULL && !layout_parse_marks(space + 1, &t)) ||
        layout_parse_dims(rest, t.dims, &t.n_dims) != FL_OK)
    {
        return fl_err_set(err, FL_EFORMAT, "%s", expected);
    }
    if (fl_str_copy(t.name, sizeof(t.name), line) != FL_OK) {
        return fl_err_set(err, FL_EINVAL, "a tensor's name is longer than %d bytes",
                          FL_NAME_MAX - 1);
    }
    return fl_layout_add_like(layout, unit, &t, err);
}

int fl_layout_from_text(const char *text, size_t len, struct fl_layout **ret, struct fl_err *err)
{
    struct fl_layout *layout = NULL;
    int rv = fl_layout_create(&layout);
    struct fl_buf own;
    bool same;
    char unit[FL_NAME_MAX] = "";
    char line[LINE_MAX_BYTES];
    size_t number = 1;
    size_t pos = 0;

    if (rv != FL_OK) {
        return fl_err_set(err, rv, "layout text: %s", fl_strerror(rv));
    }
    while (pos < len) {
        const char *end = memchr(text + pos, '\n', len - pos);
        size_t n = end != NULL ? (size_t)(end - (text + pos)) : len - pos;

        if (end == NULL || n >= sizeof(line) || memchr(text + pos, '\0', n) != NULL) {
            rv =
                fl_err_set(err, FL_EFORMAT, "layout text, line %zu: too long or not ended", number);
            goto fail;
        }
        (void)memcpy(line, text + pos, n);
        line[n] = '\0';
        rv = layout_parse_line(layout, line, unit, err);
        if (rv != FL_OK) {
            rv = fl_err_wrap(err, rv, "layout text, line %zu", number);
            goto fail;
        }
        pos += n + 1;
        number++;
    }
    rv = fl_layout_finish(layout, err);
    if (rv != FL_OK) {
        goto fail;
    }
    /* The digest is computed over the text, so only the canonical text of a layout is accepted. */
    rv = fl_layout_text(layout, &own);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv, "layout text: %s", fl_strerror(rv));
        goto fail;
    }
    same = own.len == len && memcmp(own.data, text, len) == 0;
    fl_buf_done(&own);
    if (!same) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "layout text is not canonical: repeated or empty units, or numbers with "
                        "leading zeros or signs");
        goto fail;
    }
    *ret = layout;
    return FL_OK;
fail:
    fl_layout_free(layout);
    return rv;
}
