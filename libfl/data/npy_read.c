/*
 * NPY 1.0, 2.0 and 3.0: magic, version, header length, a Python dict with exactly the keys
 * descr, fortran_order and shape, then the values. The dict is read by a small strict
 * parser; nothing is ever evaluated.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/log.h"
#include "libfl/data/format.h"
#include "libfl/data/npy.h"

#define HEADER_MAX 4096
#define CHUNK      4096 /* values converted at a time */

struct header {
    char kind; /* 'u', 'i', 'f' or 'b' */
    size_t size;
    bool swap; /* big-endian in the file */
    uint64_t shape[FL_NPY_MAX_DIMS];
    size_t n_dims;
    char descr[16];
};

/* A cursor over the dict text. */
struct cursor {
    const char *at;
    const char *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) {
        c->at++;
    }
}

static bool take(struct cursor *c, const char *text)
{
    size_t len = strlen(text);

    skip_blanks(c);
    if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0) {
        return false;
    }
    c->at += len;
    return true;
}

/* 'text' or "text", without escapes. */
static bool take_string(struct cursor *c, char *out, size_t size)
{
    size_t n = 0;
    char quote;

    skip_blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) {
        return false;
    }
    quote = *c->at++;
    while (c->at < c->end && *c->at != quote && *c->at != '\\') {
        if (n + 1 >= size) {
            return false;
        }
        out[n++] = *c->at++;
    }
    out[n] = '\0';
    return take(c, (const char[]){quote, '\0'});
}

static bool take_number(struct cursor *c, uint64_t *ret)
{
    uint64_t value = 0;
    const char *start;

    skip_blanks(c);
    start = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (value > (UINT64_MAX - 9) / 10) {
            return false;
        }
        value = value * 10 + (uint64_t)(*c->at - '0');
    }
    (void)take(c, "L"); /* Python 2 wrote long numbers so. */
    *ret = value;
    return c->at > start;
}

static bool take_shape(struct cursor *c, struct header *h)
{
    if (!take(c, "(")) {
        return false;
    }
    h->n_dims = 0;
    while (!take(c, ")")) {
        if (h->n_dims == FL_NPY_MAX_DIMS || !take_number(c, &h->shape[h->n_dims])) {
            return false;
        }
        h->n_dims++;
        if (!take(c, ",")) {
            return take(c, ")");
        }
    }
    return true;
}

/* The dict; each key once. Returns what was not understood, or NULL. */
static const char *parse_dict(struct cursor *c, struct header *h, bool *ret_fortran)
{
    unsigned seen = 0;
    unsigned bit;
    char key[16];

    if (!take(c, "{")) {
        return "a dict";
    }
    while (!take(c, "}")) {
        if (!take_string(c, key, sizeof(key)) || !take(c, ":")) {
            return "a key";
        }
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            if (!take_string(c, h->descr, sizeof(h->descr))) {
                return "a plain type as descr";
            }
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            *ret_fortran = take(c, "True");
            if (!*ret_fortran && !take(c, "False")) {
                return "True or False as fortran_order";
            }
        } else if (strcmp(key, "shape") == 0) {
            bit = 4;
            if (!take_shape(c, h)) {
                return "a shape of at most 4 dimensions";
            }
        } else {
            return "one of the keys descr, fortran_order, shape";
        }
        if ((seen & bit) != 0) {
            return "each key once";
        }
        seen |= bit;
        if (!take(c, ",")) {
            if (!take(c, "}")) {
                return "a closing brace";
            }
            break;
        }
    }
    skip_blanks(c);
    return seen != 7 ? "the keys descr, fortran_order and shape"
                     : (c->at != c->end ? "nothing after the dict" : NULL);
}

/* "<f4" and its like. */
static bool parse_descr(struct header *h)
{
    const char *d = h->descr;

    if (strlen(d) != 3 || strchr("<>|=", d[0]) == NULL || strchr("uifb", d[1]) == NULL ||
        strchr("1248", d[2]) == NULL)
    {
        return false;
    }
    h->kind = d[1];
    h->size = (size_t)(d[2] - '0');
    h->swap = d[0] == '>';
    return (h->kind != 'f' || h->size >= 4) && (h->kind != 'b' || h->size == 1);
}

/* The dict text, whose length the version says how to read. */
static int read_dict(struct fl_source *src, char *text, size_t *ret_len, struct fl_err *err)
{
    uint8_t raw[12];
    size_t n = 8;
    size_t got = 0;
    size_t len;
    int rv = fl__source_read(src, raw, n, &got, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (got < 6 || memcmp(raw, "\x93NUMPY", 6) != 0) {
        char quoted[48];

        return fl_err_set(
            err, FL_EFORMAT, "'%s': wrong magic: expected an NPY file ('\\x93NUMPY'), found %s",
            src->name, fl_log_quote(quoted, sizeof(quoted), (const char *)raw, got < 6 ? got : 6));
    }
    if (got == n && (raw[6] < 1 || raw[6] > 3)) {
        return fl_err_set(err, FL_EVERSION, "'%s': expected NPY version 1, 2 or 3, found %u.%u",
                          src->name, (unsigned)raw[6], (unsigned)raw[7]);
    }
    n = got == n && raw[6] > 1 ? 4 : 2;
    if (got == 8) {
        rv = fl__source_read(src, raw + 8, n, &got, err);
        if (rv != FL_OK) {
            return rv;
        }
    }
    if (src->pos < 8 + n) {
        return fl__source_truncated(src, 8 + n, err);
    }
    len = (size_t)raw[8] | (size_t)raw[9] << 8;
    if (n == 4) {
        len |= (size_t)raw[10] << 16 | (size_t)raw[11] << 24;
    }
    if (len > HEADER_MAX) {
        return fl_err_set(err, FL_ELIMIT, "'%s': expected a header of at most %d bytes, found %zu",
                          src->name, HEADER_MAX, len);
    }
    rv = fl__source_read(src, text, len, &got, err);
    if (rv == FL_OK && got < len) {
        rv = fl__source_truncated(src, 8 + n + len, err);
    }
    *ret_len = len;
    return rv;
}

static int read_header(struct fl_source *src, struct header *h, struct fl_err *err)
{
    char text[HEADER_MAX];
    bool fortran = false;
    const char *wanted;
    struct cursor c;
    size_t len = 0;
    int rv;

    *h = (struct header){.kind = 0};
    rv = read_dict(src, text, &len, err);
    if (rv != FL_OK) {
        return rv;
    }
    c = (struct cursor){.at = text, .end = text + len};
    wanted = parse_dict(&c, h, &fortran);
    if (wanted != NULL) {
        char quoted[128];

        return fl_err_set(err, FL_EFORMAT, "'%s': NPY header: expected %s, found %s", src->name,
                          wanted, fl_log_quote(quoted, sizeof(quoted), text, len));
    }
    if (fortran && h->n_dims > 1) {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected values in C order, found Fortran order; save "
                          "numpy.ascontiguousarray(a) instead",
                          src->name);
    }
    if (!parse_descr(h)) {
        char quoted[48];

        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected a type of numbers such as '|u1', '<f4' or '<i4', found "
                          "%s",
                          src->name,
                          fl_log_quote(quoted, sizeof(quoted), h->descr, strlen(h->descr)));
    }
    return FL_OK;
}

/* One little-endian word of the value's bytes. */
static uint64_t load_word(const uint8_t *raw, const struct header *h)
{
    uint64_t word = 0;
    size_t i;

    for (i = 0; i < h->size; i++) {
        word |= (uint64_t)raw[h->swap ? h->size - 1 - i : i] << (8 * i);
    }
    return word;
}

static double load_float(const uint8_t *raw, const struct header *h)
{
    uint64_t word = load_word(raw, h);
    uint32_t half = (uint32_t)word;
    double d;
    float f;

    if (h->size == 4) {
        (void)memcpy(&f, &half, sizeof(f));
        return (double)f;
    }
    (void)memcpy(&d, &word, sizeof(d));
    return d;
}

static int64_t load_int(const uint8_t *raw, const struct header *h)
{
    uint64_t word = load_word(raw, h);
    unsigned unused = (unsigned)(64 - 8 * h->size);

    if (h->kind == 'i') { /* Spread the sign bit. */
        return (int64_t)(word << unused) >> unused;
    }
    return word > INT64_MAX ? INT64_MAX : (int64_t)word;
}

typedef int (*convert_cb)(const struct fl_source *src, const struct header *h, const uint8_t *raw,
                          size_t n, uint64_t first, void *out, struct fl_err *err);

static int to_floats(const struct fl_source *src, const struct header *h, const uint8_t *raw,
                     size_t n, uint64_t first, void *out, struct fl_err *err)
{
    float *x = out;
    size_t i;

    for (i = 0; i < n; i++) {
        x[i] = (float)load_float(raw + i * h->size, h);
        if (!isfinite(x[i])) {
            uint64_t dim = 1;
            size_t d;

            for (d = 1; d < h->n_dims; d++) {
                dim *= h->shape[d];
            }
            return fl_err_set(
                err, FL_ENUMERIC,
                "'%s': sample %" PRIu64 ", value %" PRIu64 ": expected a finite number, found %g",
                src->name, (first + i) / dim, (first + i) % dim, load_float(raw + i * h->size, h));
        }
    }
    return FL_OK;
}

static int to_labels(const struct fl_source *src, const struct header *h, const uint8_t *raw,
                     size_t n, uint64_t first, void *out, struct fl_err *err)
{
    int32_t *y = out;
    size_t i;

    for (i = 0; i < n; i++) {
        int64_t label = load_int(raw + i * h->size, h);

        if (label < 0 || label > FL_DATA_MAX_LABEL) {
            return fl_err_set(err, FL_ERANGE,
                              "'%s': sample %" PRIu64 " has label %" PRId64 ", expected 0 to %d",
                              src->name, first + i, label, FL_DATA_MAX_LABEL);
        }
        y[i] = (int32_t)label;
    }
    return FL_OK;
}

/*
 * `count` values, each turned into 4 bytes. Where the file cannot lie (its size is known and
 * was checked) the memory is taken at once, otherwise it grows with what comes.
 */
static int read_converted(struct fl_source *src, const struct header *h, uint64_t count,
                          convert_cb convert, void **ret, struct fl_err *err)
{
    uint64_t expected = src->pos + count * h->size;
    uint64_t cap = src->size == UINT64_MAX && count > 1u << 20 ? 1u << 20 : count;
    uint64_t done = 0;
    uint8_t *out = NULL;
    uint8_t raw[CHUNK * 8];
    int rv = FL_OK;

    if (!fl__source_may_have(src, count * h->size)) {
        return fl__source_truncated(src, expected, err);
    }
    do {
        uint8_t *grown = realloc(out, cap > 0 ? (size_t)cap * 4 : 1);

        if (grown == NULL) {
            rv = fl_err_set(err, FL_ENOMEM, "no memory for the values of '%s'", src->name);
            break;
        }
        out = grown;
        while (rv == FL_OK && done < cap) {
            size_t n = cap - done < CHUNK ? (size_t)(cap - done) : CHUNK;
            size_t got = 0;

            rv = fl__source_read(src, raw, n * h->size, &got, err);
            if (rv == FL_OK && got < n * h->size) {
                rv = fl__source_truncated(src, expected, err);
            }
            if (rv == FL_OK) {
                rv = convert(src, h, raw, n, done, out + done * 4, err);
            }
            done += n;
        }
        cap = cap > count / 2 ? count : cap * 2;
    } while (rv == FL_OK && done < count);
    if (rv != FL_OK) {
        free(out);
        return rv;
    }
    *ret = out;
    return FL_OK;
}

/* The shape as samples and {channels, height, width} or {features}. */
static int read_x_header(struct fl_source *src, struct header *h, size_t *dims, size_t *ret_n_dims,
                         struct fl_err *err)
{
    size_t i;
    int rv = read_header(src, h, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (!(h->kind == 'u' && h->size == 1) && h->kind != 'f') {
        return fl_err_set(err, FL_EFORMAT,
                          "'%s': expected features of type uint8, float32 or float64, found '%s'",
                          src->name, h->descr);
    }
    if (h->n_dims < 2) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s': expected shape (n, d), (n, h, w) or (n, c, h, w), found %zu "
                          "dimension(s)",
                          src->name, h->n_dims);
    }
    rv = fl__data_check_size(src->name, h->shape[0], h->shape + 1, h->n_dims - 1,
                             h->size == 1 ? 1 : 4, err);
    if (rv != FL_OK) {
        return rv;
    }
    dims[0] = dims[1] = dims[2] = 1;
    for (i = 1; i < h->n_dims; i++) {
        dims[h->n_dims == 3 ? i : i - 1] = (size_t)h->shape[i];
    }
    *ret_n_dims = h->n_dims == 2 ? 1 : 3;
    return FL_OK;
}

static int read_y(struct fl_source *src, uint64_t n, const char *x_name, int32_t **ret,
                  struct fl_err *err)
{
    struct header h;
    void *y = NULL;
    int rv = read_header(src, &h, err);

    if (rv != FL_OK) {
        return rv;
    }
    if (h.kind != 'u' && h.kind != 'i') {
        return fl_err_set(err, FL_EFORMAT, "'%s': expected labels of an integer type, found '%s'",
                          src->name, h.descr);
    }
    if (h.n_dims != 1 && !(h.n_dims == 2 && h.shape[1] == 1)) {
        return fl_err_set(err, FL_ESHAPE, "'%s': expected shape (n,), found %zu dimension(s)",
                          src->name, h.n_dims);
    }
    if (h.shape[0] != n) {
        return fl_err_set(err, FL_ESHAPE,
                          "'%s' holds %" PRIu64 " samples but '%s' holds %" PRIu64 " labels",
                          x_name, n, src->name, h.shape[0]);
    }
    rv = read_converted(src, &h, n, to_labels, &y, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__source_expect_end(src, err);
    if (rv != FL_OK) {
        free(y);
        return rv;
    }
    *ret = y;
    return FL_OK;
}

int fl__npy_read(struct fl_source *x_src, struct fl_source *y_src, struct fl_dataset **ret,
                 struct fl_err *err)
{
    size_t dims[3] = {1, 1, 1};
    size_t n_dims = 0;
    uint64_t count;
    struct header h;
    int32_t *y = NULL;
    void *x = NULL;
    int rv = read_x_header(x_src, &h, dims, &n_dims, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = read_y(y_src, h.shape[0], x_src->name, &y, err);
    if (rv != FL_OK) {
        return rv;
    }
    count = h.shape[0] * dims[0] * dims[1] * dims[2];
    if (h.size == 1) {
        rv = fl__source_read_new(x_src, count, &x, err);
    } else {
        rv = read_converted(x_src, &h, count, to_floats, &x, err);
    }
    if (rv == FL_OK) {
        rv = fl__source_expect_end(x_src, err);
    }
    if (rv == FL_OK) {
        rv = fl__dataset_adopt(h.size == 1 ? FL_DATA_U8 : FL_DATA_F32, (size_t)h.shape[0], dims,
                               n_dims, x, y, ret, err);
    }
    if (rv != FL_OK) {
        free(x);
        free(y);
    }
    return rv;
}
