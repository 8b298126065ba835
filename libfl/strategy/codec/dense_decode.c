/*
 * Decoder of dense_code.h, piece by piece in a fixed amount of memory; dense_encode.c describes the
 * code. Reads no byte after the coded form, in time that is proportional to the numbers and bytes.
 * Runs on the caller's thread.
 */
#include <string.h>

#include "libfl/strategy/codec/dense_code_impl.h"

_Static_assert(sizeof(struct fl_dense_decoder) <= 400, "fits into the state of a codec");

static int dense_bad(struct fl_err *err, const char *what)
{
    return fl_err_set(err, FL_EFORMAT, "%s", what);
}

/* The next byte of the code, which is followed by zeros without end. */
static uint32_t decoder_byte(struct fl_dense_decoder *d, const struct fl_dense_source *source)
{
    if (d->at == d->filled) {
        size_t n = d->unread < sizeof(d->window) ? (size_t)d->unread : sizeof(d->window);

        if (n == 0 || d->rv != FL_OK) {
            d->past = d->past < 3 ? (uint8_t)(d->past + 1) : d->past;
            return 0;
        }
        d->rv = source->read(source->ctx, d->window, n);
        if (d->rv != FL_OK) {
            return 0;
        }
        d->unread -= n;
        d->at = 0;
        d->filled = (uint8_t)n;
    }
    return d->window[d->at++];
}

static inline bool decoder_answer(struct fl_dense_decoder *d, const struct fl_dense_source *source,
                                  uint32_t none)
{
    uint32_t part = (uint32_t)((uint64_t)d->range * none >> 32);
    bool yes = d->code >= part;

    d->code -= yes ? part : 0;
    d->range = yes ? d->range - part : part;
    while (d->range < FL__DENSE_TOP) {
        d->range <<= 8;
        d->code = d->code << 8 | decoder_byte(d, source);
    }
    return yes;
}

static inline bool decoder_adaptive(struct fl_dense_decoder *d,
                                    const struct fl_dense_source *source, size_t i)
{
    bool yes = decoder_answer(d, source, d->contexts.none[i]);

    fl__dense_contexts_adapt(&d->contexts, i, yes);
    return yes;
}

static uint32_t decoder_rest(struct fl_dense_decoder *d, const struct fl_dense_source *source)
{
    uint32_t length = 0;
    uint32_t rest = 1;

    while (length < FL_DENSE_LENGTHS &&
           decoder_adaptive(d, source, fl__dense_context_length(length))) {
        length++;
    }
    for (; length > 0; length--) {
        rest = rest << 1 | decoder_answer(d, source, UINT32_C(1) << 31);
    }
    return rest;
}

/* Below 2^26 in magnitude. */
static inline int32_t decoder_value(struct fl_dense_decoder *d,
                                    const struct fl_dense_source *source)
{
    uint32_t size = 1;
    bool negative;

    if (!decoder_adaptive(d, source, 0)) {
        return 0;
    }
    negative = decoder_answer(d, source, UINT32_C(1) << 31);
    while (size <= FL_DENSE_UNARY && decoder_adaptive(d, source, fl__dense_context_above(size))) {
        size++;
    }
    if (size > FL_DENSE_UNARY) {
        size = FL_DENSE_UNARY + decoder_rest(d, source);
    }
    return negative ? -(int32_t)size : (int32_t)size;
}

static int32_t decoder_plain(struct fl_dense_decoder *d, const struct fl_dense_source *source)
{
    uint32_t bits = 0;
    unsigned k;

    for (k = 0; k < 32; k += 8) {
        bits |= decoder_byte(d, source) << k;
    }
    return (int32_t)bits;
}

/* LEB128 of at most 32 bits. */
static int decoder_length(struct fl_dense_decoder *d, const struct fl_dense_source *source,
                          struct fl_err *err)
{
    uint64_t length = 0;
    uint8_t byte = 128;
    unsigned k;
    int rv;

    for (k = 0; byte > 127; k++) {
        if (k == FL__DENSE_LENGTH) {
            return dense_bad(err, "a length is out of range");
        }
        if (d->size == d->unread) {
            return dense_bad(err, "bytes are missing");
        }
        rv = source->read(source->ctx, &byte, 1);
        if (rv != FL_OK) {
            return fl_err_set(err, rv, "%s", fl_strerror(rv));
        }
        d->size++;
        length |= (uint64_t)(byte & 127) << 7 * k;
    }
    if ((k > 1 && byte == 0) || length > UINT32_MAX) {
        return dense_bad(err, "a length is out of range");
    }
    if (length > d->unread - d->size) {
        return dense_bad(err, "bytes are missing");
    }
    d->unread = length;
    d->size += length;
    return FL_OK;
}

int fl_dense_start(struct fl_dense_decoder *d, const struct fl_dense_source *source, uint64_t most,
                   uint64_t n, struct fl_err *err)
{
    unsigned k;
    int rv;

    *d = (struct fl_dense_decoder){.range = UINT32_MAX, .size = 1, .unread = most};
    if (n > UINT32_MAX) {
        return dense_bad(err, "too many numbers");
    }
    if (most == 0) {
        return dense_bad(err, "bytes are missing");
    }
    rv = source->read(source->ctx, &d->h, 1);
    if (rv != FL_OK) {
        return fl_err_set(err, rv, "%s", fl_strerror(rv));
    }
    if (d->h == 0) {
        if (most - 1 < 4 * n) {
            return dense_bad(err, "bytes are missing");
        }
        d->unread = 4 * n;
        d->size = fl_dense_max_size(n);
        return FL_OK;
    }
    rv = decoder_length(d, source, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (d->size > fl_dense_max_size(n)) {
        return dense_bad(err, "a code is longer than the numbers");
    }
    fl__dense_contexts_init(&d->contexts, d->h);
    for (k = 0; k < 4; k++) {
        d->code = d->code << 8 | decoder_byte(d, source);
    }
    return d->rv != FL_OK ? fl_err_set(err, d->rv, "%s", fl_strerror(d->rv)) : FL_OK;
}

int fl_dense_next(struct fl_dense_decoder *d, const struct fl_dense_source *source, int32_t *out,
                  size_t n, struct fl_err *err)
{
    size_t i;

    for (i = 0; i < n; i++) {
        out[i] = d->h == 0 ? decoder_plain(d, source) : decoder_value(d, source);
        if (fl__dense_magnitude(out[i]) > (uint32_t)FL_DENSE_MAX) {
            return dense_bad(err, "a number is out of range");
        }
        fl__dense_sums_add(&d->sums, fl__dense_magnitude(out[i]));
    }
    return d->rv != FL_OK ? fl_err_set(err, d->rv, "%s", fl_strerror(d->rv)) : FL_OK;
}

/*
 * The encoder writes the lowest multiple of 2^24 that is not below the range's start, `code` above
 * it, and no zeros at the end: the last three bytes used are zeros after the end.
 */
int fl_dense_end(const struct fl_dense_decoder *d, struct fl_err *err)
{
    if (d->h == 0) {
        return FL_OK;
    }
    /* The window has the last byte. */
    if (d->unread == 0 && d->filled > 0 && d->window[d->filled - 1] == 0) {
        return dense_bad(err, "a code ends with a zero");
    }
    if (d->past < 3 || d->code >= FL__DENSE_TOP) {
        return dense_bad(err, "a code is not what its numbers make it");
    }
    if (fl__dense_sums_choose(&d->sums) != d->h) {
        return dense_bad(err, "initial probabilities are not those of the numbers");
    }
    return FL_OK;
}

/* --- decoding from memory --- */

static int dense_copy(void *ctx, uint8_t *out, size_t len)
{
    const uint8_t **at = ctx;

    (void)memcpy(out, *at, len);
    *at += len;
    return FL_OK;
}

int fl_dense_decode(const uint8_t *data, size_t len, size_t n, int32_t *ret_values,
                    size_t *ret_used, struct fl_err *err)
{
    const uint8_t *at = data;
    struct fl_dense_source source = {.read = dense_copy, .ctx = &at};
    struct fl_dense_decoder d;
    int rv = fl_dense_start(&d, &source, len, n, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dense_next(&d, &source, ret_values, n, err);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_dense_end(&d, err);
    if (rv != FL_OK) {
        return rv;
    }
    *ret_used = (size_t)d.size;
    return FL_OK;
}
