/*
 * NPY 1.0, 2.0 and 3.0: magic, version, header length, a Python dict with exactly the keys descr,
 * fortran_order and shape, then the values. The dict is read by a small strict parser; nothing is
 * evaluated. Runs on the caller's thread; the values are read in npy_read.c.
 */
#include "libfl/data/npy_impl.h"

#include <string.h>

#include "libfl/base/log.h"

#define HEADER_MAX 4096

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

static bool npy_take_text(struct cursor *c, const char *text)
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
static bool npy_take_string(struct cursor *c, char *out, size_t size)
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
    return npy_take_text(c, (const char[]){quote, '\0'});
}

static bool npy_take_number(struct cursor *c, uint64_t *ret)
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
    (void)npy_take_text(c, "L"); /* suffix of long integers in Python 2 */
    *ret = value;
    return c->at > start;
}

static bool npy_take_shape(struct cursor *c, struct fl__npy_header *h)
{
    if (!npy_take_text(c, "(")) {
        return false;
    }
    h->n_dims = 0;
    while (!npy_take_text(c, ")")) {
        if (h->n_dims == FL_NPY_MAX_DIMS || !npy_take_number(c, &h->shape[h->n_dims])) {
            return false;
        }
        h->n_dims++;
        if (!npy_take_text(c, ",")) {
            return npy_take_text(c, ")");
        }
    }
    return true;
}

/* Parse the dict, each key once. Returns a description of what was expected, or NULL on success. */
static const char *parse_dict(struct cursor *c, struct fl__npy_header *h, bool *ret_fortran)
{
    unsigned seen = 0;
    unsigned bit;
    char key[16];

    if (!npy_take_text(c, "{")) {
        return "a dict";
    }
    while (!npy_take_text(c, "}")) {
        if (!npy_take_string(c, key, sizeof(key)) || !npy_take_text(c, ":")) {
            return "a key";
        }
        if (strcmp(key, "descr") == 0) {
            bit = 1;
            if (!npy_take_string(c, h->descr, sizeof(h->descr))) {
                return "a plain type as descr";
            }
        } else if (strcmp(key, "fortran_order") == 0) {
            bit = 2;
            *ret_fortran = npy_take_text(c, "True");
            if (!*ret_fortran && !npy_take_text(c, "False")) {
                return "True or False as fortran_order";
            }
        } else if (strcmp(key, "shape") == 0) {
            bit = 4;
            if (!npy_take_shape(c, h)) {
                return "a shape of at most 4 dimensions";
            }
        } else {
            return "one of the keys descr, fortran_order, shape";
        }
        if ((seen & bit) != 0) {
            return "each key once";
        }
        seen |= bit;
        if (!npy_take_text(c, ",")) {
            if (!npy_take_text(c, "}")) {
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
static bool parse_descr(struct fl__npy_header *h)
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

/* Read the text of the dict; the width of its length field depends on the version. */
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
    if (rv != FL_OK) {
        goto done;
    }
    if (got < len) {
        rv = fl__source_truncated(src, 8 + n + len, err);
    }
done:
    *ret_len = len;
    return rv;
}

int fl__npy_read_header(struct fl_source *src, struct fl__npy_header *h, struct fl_err *err)
{
    char text[HEADER_MAX];
    bool fortran = false;
    const char *wanted;
    struct cursor c;
    size_t len = 0;
    int rv;

    *h = (struct fl__npy_header){.kind = 0};
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
