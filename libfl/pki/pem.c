/*
 * Finds the blocks of a PEM text (RFC 7468), so that a message can name the line. Any thread.
 * OpenSSL decodes the contents.
 */

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>

#include "libfl/base/str.h"
#include "libfl/pki/pki_impl.h"

#define FL_PEM_BEGIN "-----BEGIN "
#define FL_PEM_END   "-----END "
#define FL_PEM_DASH  "-----"

struct line {
    const char *text;
    size_t len; /* without trailing blanks */
    size_t next;
};

static bool next_line(struct fl_pem *pem, struct line *ret)
{
    const char *begin = pem->text + pem->at;
    const char *end;

    if (pem->at >= pem->len) {
        return false;
    }
    end = memchr(begin, '\n', pem->len - pem->at);
    ret->text = begin;
    ret->len = end != NULL ? (size_t)(end - begin) : pem->len - pem->at;
    ret->next = pem->at + ret->len + (end != NULL ? 1 : 0);
    while (ret->len > 0 && (begin[ret->len - 1] == '\r' || begin[ret->len - 1] == ' ' ||
                            begin[ret->len - 1] == '\t'))
    {
        ret->len--;
    }
    pem->at = ret->next;
    pem->line++;
    return true;
}

static bool line_starts_with(const struct line *line, const char *with)
{
    return line->len >= strlen(with) && memcmp(line->text, with, strlen(with)) == 0;
}

/* The label of "-----BEGIN label-----"; false when the line is truncated or something else. */
static bool label_of(const struct line *line, const char *with, char *label, size_t size)
{
    size_t head = strlen(with);
    size_t tail = strlen(FL_PEM_DASH);
    size_t len;

    if (!line_starts_with(line, with) || line->len < head + tail ||
        memcmp(line->text + line->len - tail, FL_PEM_DASH, tail) != 0)
    {
        return false;
    }
    len = line->len - head - tail;
    if (len >= size) {
        len = size - 1;
    }
    (void)memcpy(label, line->text + head, len);
    label[len] = '\0';
    return true;
}

static int cut_line(struct fl_err *err, const char *origin, const struct fl_pem_block *block,
                    unsigned line)
{
    char label[sizeof(block->label)];

    (void)memcpy(label, block->label, sizeof(label));
    return fl_err_set(err, FL_EFORMAT,
                      "'%s': line %u: a block '%s' begins here and has no end by line %u: the file "
                      "is truncated or was pasted in part; copy the whole file again",
                      origin, block->line, fl_str_clean(label), line);
}

int fl__pem_next(struct fl_pem *pem, const char *origin, struct fl_pem_block *ret,
                 struct fl_err *err)
{
    char label[sizeof(ret->label)];
    struct line line;

    do {
        if (!next_line(pem, &line)) {
            return FL_ENOENT;
        }
        if (line_starts_with(&line, FL_PEM_END)) {
            return fl_err_set(err, FL_EFORMAT,
                              "'%s': line %u: a block ends here that has no beginning: the first "
                              "part of the file is missing; copy the whole file again",
                              origin, pem->line);
        }
    } while (!line_starts_with(&line, FL_PEM_BEGIN));
    *ret = (struct fl_pem_block){.text = line.text, .line = pem->line};
    if (!label_of(&line, FL_PEM_BEGIN, ret->label, sizeof(ret->label))) {
        (void)memcpy(ret->label, "?", 2);
        return cut_line(err, origin, ret, pem->line);
    }
    while (next_line(pem, &line)) {
        if (line_starts_with(&line, FL_PEM_BEGIN)) {
            break;
        }
        if (label_of(&line, FL_PEM_END, label, sizeof(label))) {
            if (strcmp(label, ret->label) != 0) {
                break;
            }
            ret->len = (size_t)(line.text - ret->text) + line.len;
            return FL_OK;
        }
    }
    return cut_line(err, origin, ret, pem->line);
}

int fl__pem_bytes(const struct fl_pem_block *block, const char *origin, unsigned char **ret,
                  long *ret_len, struct fl_err *err)
{
    BIO *bio = BIO_new_mem_buf(block->text, (int)block->len);
    char *name = NULL;
    char *header = NULL;
    int rv = FL_OK;

    if (bio == NULL) {
        return FL_ENOMEM;
    }
    if (PEM_read_bio(bio, &name, &header, ret, ret_len) != 1) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "'%s': line %u: this block '%s' contains invalid base64: the file is "
                        "damaged; copy the whole file again",
                        origin, block->line, block->label);
    }
    OPENSSL_free(name);
    OPENSSL_free(header);
    BIO_free(bio);
    return fl__openssl_verdict(rv, err);
}

bool fl__looks_like_der(const void *data, size_t len)
{
    const unsigned char *p = data;

    return len > 2 && p[0] == 0x30 && (p[1] & 0x80) != 0;
}

int fl__openssl_forget(int rv)
{
    ERR_clear_error();
    return rv;
}

int fl__openssl_verdict(int rv, struct fl_err *err)
{
    unsigned long noted;
    bool starved = false;

    while ((noted = ERR_get_error()) != 0) {
        starved = starved || ERR_GET_REASON(noted) == ERR_R_MALLOC_FAILURE;
    }
    return rv != FL_OK && starved
               ? fl_err_set(err, FL_ENOMEM, "out of memory while reading a certificate")
               : rv;
}
