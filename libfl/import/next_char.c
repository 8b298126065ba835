/*
 * Next-character prediction from one text: a sample is a window of characters, as their numbers,
 * and the class is the character behind it (McMahan et al. 2017; LEAF, Caldas et al. 2018).
 * Characters are Unicode code points, as they are in the file.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/import/import_impl.h"

#define READ_STEP   ((size_t)1 << 20)
#define CODE_POINTS 0x110000
#define NO_NUMBER   UINT32_MAX

/* A text as bytes, and as the numbers of its characters. */
struct char_text {
    const char *name;
    struct fl_err *err;
    uint8_t *bytes;
    size_t len;
    uint32_t *codes; /* [n]: code points, then numbers */
    size_t n;
    uint32_t *numbers; /* [CODE_POINTS] */
};

static uint32_t char_code(const uint8_t *s, size_t len)
{
    static const uint8_t masks[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t code = s[0] & masks[len];
    size_t i;

    for (i = 1; i < len; i++) {
        code = code << 6 | (s[i] & 0x3fU);
    }
    return code;
}

/* The code points of `len` bytes into `out`, or only their number. Returns false at *ret_bad. */
static bool char_decode(const uint8_t *s, size_t len, uint32_t *out, size_t *ret_n, size_t *ret_bad)
{
    size_t at = 0;
    size_t n = 0;

    while (at < len) {
        size_t size = fl_str_utf8(s + at, len - at);

        if (size == 0 || s[at] == 0) {
            *ret_bad = at;
            return false;
        }
        if (out != NULL) {
            out[n] = char_code(s + at, size);
        }
        n++;
        at += size;
    }
    *ret_n = n;
    return true;
}

/* Line and column of the character at `at` bytes. */
static void char_position(const struct char_text *t, size_t at, size_t *ret_line, size_t *ret_col)
{
    size_t i;

    *ret_line = 1;
    *ret_col = 1;
    for (i = 0; i < at; i++) {
        if (t->bytes[i] == '\n') {
            ++*ret_line;
            *ret_col = 1;
        } else if ((t->bytes[i] & 0xc0) != 0x80) { /* not the rest of a character */
            ++*ret_col;
        }
    }
}

static int char_read_bytes(struct char_text *t, struct fl_source *src)
{
    size_t cap = 0;
    size_t got = 0;
    int rv;

    do {
        if (cap - t->len < READ_STEP) {
            uint8_t *more;

            cap = cap + cap / 2 + READ_STEP;
            more = realloc(t->bytes, cap);
            if (more == NULL) {
                return fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory, cannot read it",
                                  t->name);
            }
            t->bytes = more;
        }
        rv = fl__source_read(src, t->bytes + t->len, READ_STEP, &got, t->err);
        if (rv != FL_OK) {
            return rv;
        }
        t->len += got;
        if (t->len > FL_IMPORT_MAX_TEXT) {
            return fl_err_set(t->err, FL_ELIMIT, "'%s': expected a text of at most %zu bytes",
                              t->name, FL_IMPORT_MAX_TEXT);
        }
    } while (got == READ_STEP);
    return fl__source_expect_end(src, t->err);
}

static int char_read(struct char_text *t, struct fl_source *src)
{
    size_t bad = 0;
    size_t line;
    size_t col;
    int rv = char_read_bytes(t, src);

    if (rv != FL_OK) {
        return rv;
    }
    if (t->len >= 3 && memcmp(t->bytes, "\xef\xbb\xbf", 3) == 0) { /* byte order mark */
        t->len -= 3;
        (void)memmove(t->bytes, t->bytes + 3, t->len);
    }
    t->codes = malloc((t->len + 1) * sizeof(*t->codes));
    if (t->codes == NULL) {
        return fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory for its characters", t->name);
    }
    if (!char_decode(t->bytes, t->len, t->codes, &t->n, &bad)) {
        char_position(t, bad, &line, &col);
        return fl_err_set(t->err, FL_EFORMAT,
                          "'%s', line %zu, column %zu: expected text in UTF-8, found byte 0x%02x%s",
                          t->name, line, col, t->bytes[bad],
                          t->bytes[bad] == 0 ? ", which no text has" : "");
    }
    return FL_OK;
}

static size_t char_encode(uint32_t code, char out[5])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static int char_add_label(const struct char_text *t, struct fl_schema *schema, uint32_t code)
{
    char utf8[5];
    uint32_t number;

    if (schema->labels.n == FL_SCHEMA_MAX_WORDS) {
        return fl_err_set(t->err, FL_ELIMIT, "'%s': expected at most %d different characters",
                          t->name, FL_SCHEMA_MAX_WORDS);
    }
    return fl_words_add(&schema->labels, utf8, char_encode(code, utf8), &number) == FL_OK
               ? FL_OK
               : fl_err_set(t->err, FL_ENOMEM, "'%s': out of memory for its characters", t->name);
}

/* The characters of a new schema: those of `characters` in their order, else those of the text in
 * that of their code points, which is that of their bytes. */
static int char_derive(const struct char_text *t, const char *characters, struct fl_schema *schema)
{
    uint32_t code;
    size_t at;
    size_t i;
    int rv;

    for (at = 0; characters != NULL && characters[at] != '\0';) {
        size_t size = fl_str_utf8((const uint8_t *)characters + at, strlen(characters + at));

        if (size == 0) {
            return fl_err_set(t->err, FL_EFORMAT, "characters: expected UTF-8");
        }
        rv = char_add_label(t, schema, char_code((const uint8_t *)characters + at, size));
        if (rv != FL_OK) {
            return rv;
        }
        at += size;
    }
    if (characters != NULL) {
        return FL_OK;
    }
    for (i = 0; i < t->n; i++) {
        t->numbers[t->codes[i]] = 0;
    }
    for (code = 0; code < CODE_POINTS; code++) {
        if (t->numbers[code] != NO_NUMBER) {
            t->numbers[code] = NO_NUMBER;
            rv = char_add_label(t, schema, code);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    return FL_OK;
}

/* Bytes before the character `i`. */
static size_t char_bytes_before(const struct char_text *t, size_t i)
{
    size_t at = 0;

    for (; i > 0; i--) {
        at += fl_str_utf8(t->bytes + at, t->len - at);
    }
    return at;
}

/* Code points to numbers. */
static int char_number(const struct char_text *t, const struct fl_schema *schema)
{
    size_t line;
    size_t col;
    size_t i;

    for (i = 0; i < schema->labels.n; i++) {
        const uint8_t *s = (const uint8_t *)schema->labels.text[i];
        size_t size = fl_str_utf8(s, strlen((const char *)s) + 1);

        if (size == 0 || s[size] != '\0') {
            return fl_err_set(t->err, FL_EFORMAT,
                              "schema: expected one character as name of class %zu", i);
        }
        t->numbers[char_code(s, size)] = (uint32_t)i;
    }
    for (i = 0; i < t->n; i++) {
        uint32_t number = t->numbers[t->codes[i]];

        if (number == NO_NUMBER) {
            char_position(t, char_bytes_before(t, i), &line, &col);
            return fl_err_set(t->err, FL_ERANGE,
                              "'%s', line %zu, column %zu: expected one of the %zu known "
                              "characters, found U+%04" PRIX32,
                              t->name, line, col, schema->labels.n, t->codes[i]);
        }
        t->codes[i] = number;
    }
    return FL_OK;
}

static int char_samples(const struct char_text *t, size_t window, size_t stride,
                        struct fl_dataset **ret)
{
    struct fl_dataset *ds = NULL;
    float *x;
    size_t n;
    size_t i;
    size_t j;
    int rv;

    if (t->n <= window) {
        return fl_err_set(t->err, FL_ESHAPE,
                          "'%s': expected more than a window of %zu characters, found %zu", t->name,
                          window, t->n);
    }
    n = (t->n - window - 1) / stride + 1;
    rv = fl_dataset_create(FL_DATA_F32, n, &window, 1, &ds, t->err);
    if (rv != FL_OK) {
        return fl_err_wrap(t->err, rv, "'%s' (a larger option stride makes fewer samples)",
                           t->name);
    }
    x = ds->x;
    for (i = 0; i < n; i++) {
        const uint32_t *codes = t->codes + i * stride;

        for (j = 0; j < window; j++) {
            x[i * window + j] = (float)codes[j];
        }
        ds->y[i] = (int32_t)codes[window];
    }
    *ret = ds;
    return FL_OK;
}

int fl__next_char_read(struct fl_source *src, const struct fl_import_conf *conf, bool derive,
                       struct fl_schema *schema, struct fl_dataset **ret, struct fl_err *err)
{
    struct char_text t = {.name = src->name, .err = err};
    size_t i;
    int rv;

    t.numbers = malloc(CODE_POINTS * sizeof(*t.numbers));
    if (t.numbers == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its characters", src->name);
    }
    for (i = 0; i < CODE_POINTS; i++) {
        t.numbers[i] = NO_NUMBER;
    }
    rv = char_read(&t, src);
    if (rv != FL_OK) {
        goto done;
    }
    if (derive) {
        schema->window = conf->window;
        rv = char_derive(&t, conf->characters, schema);
        if (rv != FL_OK) {
            goto done;
        }
    }
    rv = char_number(&t, schema);
    if (rv != FL_OK) {
        goto done;
    }
    rv = char_samples(&t, schema->window, conf->stride, ret);
    if (rv != FL_OK) {
        goto done;
    }
    (*ret)->classes = schema->labels.n;
done:
    free(t.numbers);
    free(t.codes);
    free(t.bytes);
    return rv;
}
