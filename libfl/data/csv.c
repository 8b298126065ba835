/*
 * Data as CSV: one sample a line, features then the class number in the last column. A first line
 * without any number is a heading. Values are read one at a time, so a long line needs no memory
 * beyond its values. Runs on the caller's thread; bytes come from struct fl_source (plain or gzip).
 * Does not split the text: libfl/base/csv_split.h does.
 */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libfl/base/csv_split.h"
#include "libfl/base/log.h"
#include "libfl/base/str.h"
#include "libfl/data/format.h"

#define READ_AHEAD ((size_t)1 << 16)
#define FIELD_MAX  64
#define NO_WIDTH   SIZE_MAX

struct csv {
    struct fl_csv text;
    struct fl_source *src;
    struct fl_err *err;
    float *x;
    size_t n_x, cap_x;
    int32_t *y;
    size_t n_y, cap_y;
    size_t width;       /* columns, label included; NO_WIDTH before the first line */
    double label;       /* value in the last column of this line */
    size_t n_words;     /* first line: number of fields that are no numbers */
    struct fl_err word; /* the error message of the first of them */
};

static int csv_grow(struct csv *c, void **data, size_t *cap, size_t size)
{
    size_t want = *cap < 1024 ? 1024 : *cap + *cap / 2;
    void *more;

    if (want > FL_DATA_MAX_BYTES / size) {
        return fl_err_set(c->err, FL_ELIMIT, "'%s', line %" PRIu64 ": more data than may be held",
                          c->src->name, c->text.line);
    }
    more = realloc(*data, want * size);
    if (more == NULL) {
        return fl_err_set(c->err, FL_ENOMEM, "'%s': out of memory for its values", c->src->name);
    }
    *data = more;
    *cap = want;
    return FL_OK;
}

static int push_x(struct csv *c, double value)
{
    void *data = c->x;
    int rv = FL_OK;

    if (c->n_x == c->cap_x) {
        rv = csv_grow(c, &data, &c->cap_x, sizeof(*c->x));
        c->x = data;
    }
    if (rv != FL_OK) {
        return rv;
    }
    c->x[c->n_x++] = (float)value;
    return FL_OK;
}

static int push_y(struct csv *c, double value)
{
    void *data = c->y;
    int rv = FL_OK;

    if (!(value >= 0.0 && value <= (double)FL_DATA_MAX_LABEL) || value < floor(value) ||
        value > floor(value))
    {
        return fl_err_set(c->err, FL_ERANGE,
                          "'%s', line %" PRIu64 ": expected a class number from 0 to %d in the "
                          "last column, found %.17g",
                          c->src->name, c->text.line, FL_DATA_MAX_LABEL, value);
    }
    if (c->n_y == FL_DATA_MAX_SAMPLES) {
        return fl_err_set(c->err, FL_ELIMIT, "'%s': more than %" PRIu64 " samples", c->src->name,
                          FL_DATA_MAX_SAMPLES);
    }
    if (c->n_y == c->cap_y) {
        rv = csv_grow(c, &data, &c->cap_y, sizeof(*c->y));
        c->y = data;
    }
    if (rv != FL_OK) {
        return rv;
    }
    c->y[c->n_y++] = (int32_t)value;
    return FL_OK;
}

/*
 * Plain decimals of up to 15 digits without strtod(): both the digits and the power of ten
 * are exact doubles, so one division rounds correctly (Clinger 1990). Returns false for
 * everything else.
 */
static bool parse_plain(const char *s, size_t len, double *ret)
{
    static const double tens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                  1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    size_t n = 0;
    size_t after_point = 0;
    bool point = false;
    bool minus = len > 0 && s[0] == '-';
    size_t i;

    for (i = minus ? 1 : 0; i < len; i++) {
        if (s[i] >= '0' && s[i] <= '9') {
            digits = digits * 10 + (uint64_t)(s[i] - '0');
            after_point += point ? 1 : 0;
            if (++n > 15) {
                return false;
            }
        } else if (s[i] == '.' && !point) {
            point = true;
        } else {
            return false;
        }
    }
    if (n == 0) {
        return false;
    }
    *ret = (double)digits / tens[after_point];
    *ret = minus ? -*ret : *ret;
    return true;
}

static int not_a_number(const struct csv *c, const char *text, size_t len, int code,
                        struct fl_err *err)
{
    char quoted[FIELD_MAX * 4 + 8];

    return fl_err_set(
        err, code, "'%s', line %" PRIu64 ", column %zu: expected a %snumber, found %s",
        c->src->name, c->text.line, c->text.col + 1, code == FL_ENUMERIC ? "finite " : "",
        len > 0 ? fl_log_quote(quoted, sizeof(quoted), text, len) : "nothing");
}

static bool csv_is_nan_or_inf(const char *s)
{
    s += *s == '-' || *s == '+' ? 1 : 0;
    return strcasecmp(s, "nan") == 0 || strcasecmp(s, "inf") == 0 || strcasecmp(s, "infinity") == 0;
}

static int parse_field(const struct csv *c, const char *s, size_t len, double *ret,
                       struct fl_err *err)
{
    if (len > FIELD_MAX) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s', line %" PRIu64 ", column %zu: expected a number, found more than "
                          "%d characters",
                          c->src->name, c->text.line, c->text.col + 1, FIELD_MAX);
    }
    if (parse_plain(s, len, ret)) {
        return FL_OK;
    }
    if (csv_is_nan_or_inf(s)) {
        return not_a_number(c, s, len, FL_ENUMERIC, err);
    }
    /* A NUL inside the field must not hide the rest. */
    if (strlen(s) != len || fl_str_to_double(s, ret) != FL_OK) {
        return not_a_number(c, s, len, FL_EFORMAT, err);
    }
    if (fabs(*ret) > (double)FLT_MAX) {
        return not_a_number(c, s, len, FL_ENUMERIC, err);
    }
    return FL_OK;
}

static int csv_on_field(void *ctx, char *text, size_t len)
{
    struct csv *c = ctx;
    double value = 0.0;
    int rv;

    if (c->width == NO_WIDTH) {
        struct fl_err word = {0};

        /* End a field of the first line; whether the line is a heading is known only at its end. */
        if (parse_field(c, text, len, &value, &word) != FL_OK && c->n_words++ == 0) {
            c->word = word;
        }
        if (c->text.col > FL_DATA_MAX_DIM) {
            return fl_err_set(c->err, FL_ELIMIT,
                              "'%s', line %" PRIu64 ": more than %" PRIu64 " columns", c->src->name,
                              c->text.line, FL_DATA_MAX_DIM);
        }
        c->label = value;
        return push_x(c, value);
    }
    if (c->text.col >= c->width) { /* Surplus columns are only counted. */
        return FL_OK;
    }
    rv = parse_field(c, text, len, &value, c->err);
    if (rv != FL_OK) {
        return rv;
    }
    if (c->text.col + 1 < c->width) {
        rv = push_x(c, value);
        if (rv != FL_OK) {
            return rv;
        }
    }
    c->label = value;
    return FL_OK;
}

static int csv_on_row(void *ctx)
{
    struct csv *c = ctx;

    if (c->width == NO_WIDTH) {
        if (c->n_words > 0 && c->n_words < c->text.col) {
            return fl_err_set(c->err, c->word.code, "%s", c->word.msg);
        }
        if (c->text.col < 2) {
            return fl_err_set(c->err, FL_EFORMAT,
                              "'%s', line %" PRIu64
                              ": expected at least one feature and a class number, separated by a "
                              "comma, found one column",
                              c->src->name, c->text.line);
        }
        c->width = c->text.col;
        if (c->n_words > 0) {
            c->n_x = 0;
            return FL_OK;
        }
        c->n_x--;
        return push_y(c, c->label);
    }
    if (c->text.col != c->width) {
        return fl_err_set(c->err, FL_EFORMAT,
                          "'%s', line %" PRIu64 ": expected %zu columns as in the first line, "
                          "found %zu",
                          c->src->name, c->text.line, c->width, c->text.col);
    }
    return push_y(c, c->label);
}

static int csv_read_rows(struct csv *c, char *text)
{
    size_t got = 0;
    int rv;

    do {
        rv = fl__source_read(c->src, text, READ_AHEAD, &got, c->err);
        if (rv != FL_OK) {
            return rv;
        }
        rv = fl_csv_feed(&c->text, text, got);
        if (rv != FL_OK) {
            return rv;
        }
    } while (got == READ_AHEAD);
    if (c->src->cut) {
        return fl_err_set(c->err, FL_EFORMAT, "'%s': the gzip stream is cut short", c->src->name);
    }
    rv = fl_csv_end(&c->text);
    if (rv != FL_OK) {
        return rv;
    }
    if (c->n_y == 0) {
        return fl_err_set(c->err, FL_EFORMAT, "'%s': holds no sample", c->src->name);
    }
    return FL_OK;
}

int fl__csv_read(struct fl_source *src, struct fl_dataset **ret, struct fl_err *err)
{
    struct csv c = {.text = {.field = csv_on_field, .row = csv_on_row, .ctx = &c, .line = 1},
                    .src = src,
                    .err = err,
                    .width = NO_WIDTH};
    struct fl__arrays arrays = {.type = FL_DATA_F32, .n_dims = 1};
    char *text = malloc(READ_AHEAD);
    size_t dim;
    float *x;
    int32_t *y;
    int rv;

    if (text == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory, cannot read it", src->name);
    }
    rv = csv_read_rows(&c, text);
    free(text);
    if (rv != FL_OK) {
        goto fail;
    }
    /* Release the surplus capacity; a failure is harmless. */
    x = realloc(c.x, c.n_x * sizeof(*x));
    y = realloc(c.y, c.n_y * sizeof(*y));
    c.x = x != NULL ? x : c.x;
    c.y = y != NULL ? y : c.y;
    dim = c.width - 1;
    arrays.n = c.n_y;
    arrays.dims = &dim;
    arrays.x = c.x;
    arrays.y = c.y;
    rv = fl__dataset_adopt(&arrays, ret, err);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    free(c.x);
    free(c.y);
    return rv;
}
