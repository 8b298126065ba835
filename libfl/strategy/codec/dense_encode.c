/*
 * Dense coding of whole numbers (dense_code.h). Each number is a series of answers to yes-no
 * questions, each with an adaptive probability: is it not 0, is its magnitude above 1, above 2, …
 * above 20; above 20, the bit length of the rest. The sign and the lower bits of the rest have
 * probability 1/2. A question that was answered often adapts slowly, so that probabilities settle.
 *
 * The arithmetic coder is a carry-propagating range coder on 32 bits: yes is the upper part.
 * Runs on the caller's thread, allocates nothing but the output.
 */
#include "libfl/strategy/codec/dense_code.h"

#include <string.h>

#include "libfl/strategy/codec/codec_impl.h"
#include "libfl/strategy/codec/dense_code_impl.h"

struct dense_writer {
    struct fl_buf *out; /* the code alone */
    uint64_t low;       /* 32 bits and a carry */
    uint32_t range;
    int rv;
    struct fl_dense_contexts contexts;
};

/* Add the carry to the bytes written. The whole code is below 1, so that one of them takes it. */
static void writer_carry(struct dense_writer *w)
{
    size_t at = w->out->len;
    bool carry = w->low >> 32 != 0;

    while (carry) {
        at--;
        w->out->data[at] = (uint8_t)(w->out->data[at] + 1);
        carry = w->out->data[at] == 0;
    }
    w->low &= UINT32_MAX;
}

/* Write the highest byte of the start of the range; nothing after an error. */
static void writer_byte(struct dense_writer *w)
{
    if (w->rv == FL_OK && w->out->len == w->out->cap) {
        w->rv = fl_buf_reserve(w->out, 1);
    }
    if (w->rv != FL_OK) {
        return;
    }
    writer_carry(w);
    w->out->data[w->out->len++] = (uint8_t)(w->low >> 24);
    w->low = w->low << 8 & UINT32_MAX;
    w->range <<= 8;
}

static inline void writer_answer(struct dense_writer *w, uint32_t none, bool yes)
{
    uint32_t part = (uint32_t)((uint64_t)w->range * none >> 32);

    w->low += yes ? part : 0;
    w->range = yes ? w->range - part : part;
    while (w->range < FL__DENSE_TOP && w->rv == FL_OK) {
        writer_byte(w);
    }
}

static inline void writer_adaptive(struct dense_writer *w, size_t i, bool yes)
{
    writer_answer(w, w->contexts.none[i], yes);
    fl__dense_contexts_adapt(&w->contexts, i, yes);
}

/* A rest of at least 1: its bit length, then its bits below the highest. */
static void writer_rest(struct dense_writer *w, uint32_t rest)
{
    uint32_t length = 31u - (uint32_t)__builtin_clz(rest);
    uint32_t k;

    for (k = 0; k < FL_DENSE_LENGTHS && k <= length; k++) {
        writer_adaptive(w, fl__dense_context_length(k), k < length);
    }
    while (length > 0) {
        writer_answer(w, UINT32_C(1) << 31, (rest >> --length & 1) != 0);
    }
}

static void writer_value(struct dense_writer *w, int32_t value)
{
    uint32_t size = fl__dense_magnitude(value);
    uint32_t k;

    writer_adaptive(w, 0, size > 0);
    if (size == 0) {
        return;
    }
    writer_answer(w, UINT32_C(1) << 31, value < 0);
    for (k = 1; k <= FL_DENSE_UNARY && k <= size; k++) {
        writer_adaptive(w, fl__dense_context_above(k), size > k);
    }
    if (size > FL_DENSE_UNARY) {
        writer_rest(w, size - FL_DENSE_UNARY);
    }
}

/* The end: the lowest multiple of 2^24 in the range, without zeros at its end. */
static void writer_end(struct dense_writer *w)
{
    w->low = (w->low + FL__DENSE_TOP - 1) / FL__DENSE_TOP * FL__DENSE_TOP;
    writer_byte(w);
    while (w->rv == FL_OK && w->out->len > 0 && w->out->data[w->out->len - 1] == 0) {
        w->out->len--;
    }
}

static size_t length_put(uint8_t *out, uint64_t length)
{
    size_t n = 0;

    for (; length > 127; length >>= 7) {
        out[n++] = (uint8_t)(length | 128);
    }
    out[n++] = (uint8_t)length;
    return n;
}

static int dense_put_plain(const int32_t *values, size_t n, struct fl_buf *out)
{
    size_t i;
    int rv = fl_buf_reserve(out, 1 + 4 * n);

    if (rv != FL_OK) {
        return rv;
    }
    out->data[out->len++] = 0;
    for (i = 0; i < n; i++) {
        fl__codec_put32(out->data + out->len, (uint32_t)values[i]);
        out->len += 4;
    }
    return FL_OK;
}

static int dense_sum(const int32_t *values, size_t n, struct fl_dense_sums *ret)
{
    size_t i;

    if (n > UINT32_MAX || n > (SIZE_MAX - 16) / 4) {
        return FL_ELIMIT;
    }
    for (i = 0; i < n; i++) {
        if (fl__dense_magnitude(values[i]) > (uint32_t)FL_DENSE_MAX) {
            return FL_ELIMIT;
        }
        fl__dense_sums_add(ret, fl__dense_magnitude(values[i]));
    }
    return FL_OK;
}

/* The arithmetic code into an empty buffer. */
static int dense_write(const int32_t *values, size_t n, uint8_t h, struct fl_buf *code)
{
    struct dense_writer w = {.out = code, .range = UINT32_MAX};
    size_t i;

    fl__dense_contexts_init(&w.contexts, h);
    for (i = 0; i < n && w.rv == FL_OK; i++) {
        writer_value(&w, values[i]);
    }
    writer_end(&w);
    return w.rv;
}

int fl_dense_encode(const int32_t *values, size_t n, struct fl_buf *out)
{
    struct fl_dense_sums sums = {.n = 0};
    uint8_t head[1 + FL__DENSE_LENGTH] = {0};
    struct fl_buf code;
    size_t len;
    int rv = dense_sum(values, n, &sums);

    if (rv != FL_OK) {
        return rv;
    }
    /* Its own buffer: which form is shorter must not depend on the room in `out`. */
    fl_buf_init(&code, SIZE_MAX / 2);
    head[0] = fl__dense_sums_choose(&sums);
    rv = dense_write(values, n, head[0], &code);
    if (rv != FL_OK) {
        goto done;
    }
    len = 1 + length_put(head + 1, code.len);
    if (code.len > UINT32_MAX || len + code.len > fl_dense_max_size(n)) {
        rv = dense_put_plain(values, n, out);
        goto done;
    }
    rv = fl_buf_reserve(out, len + code.len);
    if (rv != FL_OK) {
        goto done;
    }
    (void)memcpy(out->data + out->len, head, len);
    if (code.len > 0) {
        (void)memcpy(out->data + out->len + len, code.data, code.len);
    }
    out->len += len + code.len;
done:
    fl_buf_done(&code);
    return rv;
}
