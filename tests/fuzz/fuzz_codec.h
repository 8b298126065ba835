#ifndef FL_TESTS_FUZZ_CODEC_H
#define FL_TESTS_FUZZ_CODEC_H

/*
 * Any bytes as a coded unit of one codec, and any numbers through it. The first byte
 * gives the size of the pieces that are read, the rest is the coded unit.
 *
 * Checked: decoding in pieces and at once agree, value for value or in their error, and
 * adding up agrees with both; values are finite; nothing outside the bytes is read; bytes taken as
 * numbers are coded within the codec's limit, or refused as non-finite, and can be decoded again.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec.h"

#define FUZZ_WEIGHT 300
#define FUZZ_MEAN   3
#define FUZZ_GAIN   20
#define FUZZ_COUNT  (FUZZ_WEIGHT + FUZZ_MEAN + FUZZ_GAIN)

static inline void fuzz_expect(bool fact)
{
    if (!fact) {
        abort();
    }
}

static inline struct fl_layout *fuzz_layout(void)
{
    size_t n[3] = {FUZZ_WEIGHT, FUZZ_MEAN, FUZZ_GAIN};
    struct fl_layout *layout = NULL;

    fuzz_expect(fl_layout_create(&layout) == FL_OK &&
                fl_layout_add(layout, "u", "u.weight", &n[0], 1, false, NULL) == FL_OK &&
                fl_layout_add(layout, "u", "u.mean", &n[1], 1, true, NULL) == FL_OK &&
                fl_layout_add(layout, "u", "u.gain", &n[2], 1, false, NULL) == FL_OK &&
                fl_layout_finish(layout, NULL) == FL_OK);
    return layout;
}

static inline int fuzz_decode(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                              const uint8_t *data, size_t size, size_t piece, float *out)
{
    uint8_t *copy = malloc(size > 0 ? size : 1); /* Of exactly that length, for the sanitizer. */
    struct fl_codec_memory memory = {.data = copy, .len = size};
    struct fl_codec_reader reader = fl_codec_memory_reader(&memory);
    struct fl_codec_decoder d;
    size_t i;
    int rv;

    fuzz_expect(copy != NULL);
    if (size > 0) {
        (void)memcpy(copy, data, size);
    }
    rv = fl_codec_open(&d, ops, layout, 0, &reader);
    for (i = 0; rv == FL_OK && i < FUZZ_COUNT; i += piece) {
        rv = ops->read(&d, out + i, FUZZ_COUNT - i < piece ? FUZZ_COUNT - i : piece);
    }
    if (rv == FL_OK) {
        rv = ops->close(&d);
    }
    free(copy);
    return rv;
}

/* Added up twice, or, where `sum` is NULL, only checked. */
static inline int fuzz_add(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                           const uint8_t *data, size_t size, size_t piece, double *sum)
{
    struct fl_codec_memory memory = {.data = data, .len = size};
    struct fl_codec_reader reader = fl_codec_memory_reader(&memory);
    float block[FUZZ_COUNT];
    int rv = FL_OK;
    int turn;

    for (turn = 0; rv == FL_OK && turn < 2; turn++) {
        double w = turn == 0 ? 0.3 : -0.7;
        struct fl_codec_decoder d;
        size_t i;

        rv = fl_codec_open(&d, ops, layout, 0, &reader);
        for (i = 0; rv == FL_OK && i < FUZZ_COUNT; i += piece) {
            size_t n = FUZZ_COUNT - i < piece ? FUZZ_COUNT - i : piece;

            rv = fl_codec_add(&d, w, sum != NULL ? sum + i : NULL, block, n);
        }
        rv = rv == FL_OK ? ops->close(&d) : rv;
    }
    return rv;
}

static inline void fuzz_added(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                              const uint8_t *data, size_t size, size_t piece, int rv,
                              const float *x)
{
    double sum[FUZZ_COUNT] = {0};
    double want[FUZZ_COUNT] = {0};

    fuzz_expect(fuzz_add(ops, layout, data, size, piece, NULL) == rv);
    fuzz_expect(fuzz_add(ops, layout, data, size, piece, sum) == rv);
    if (rv == FL_OK) {
        fl_acc_add(want, 0.3, x, FUZZ_COUNT);
        fl_acc_add(want, -0.7, x, FUZZ_COUNT);
        fuzz_expect(memcmp(sum, want, sizeof(sum)) == 0);
    }
}

static inline void fuzz_encode(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                               const uint8_t *data, size_t size)
{
    float x[FUZZ_COUNT] = {0};
    float out[FUZZ_COUNT];
    struct fl_options *o = NULL;
    struct fl_buf buf;
    int rv;

    (void)memcpy(x, data, size < sizeof(x) ? size : sizeof(x));
    fl_buf_init(&buf, 1u << 16);
    fuzz_expect(fl_options_create(ops->policy.options, &o) == FL_OK);
    rv = ops->encode(o, layout, 0, x, 0, &buf);
    fuzz_expect(rv == FL_OK || (rv == FL_ENUMERIC && buf.len == 0));
    if (rv == FL_OK) {
        fuzz_expect(buf.len <= ops->max_size(layout, 0));
        fuzz_expect(fuzz_decode(ops, layout, buf.data, buf.len, FUZZ_COUNT, out) == FL_OK);
        fuzz_expect(memcmp(out + FUZZ_WEIGHT, x + FUZZ_WEIGHT, FUZZ_MEAN * sizeof(*x)) == 0);
    }
    fl_options_free(o);
    fl_buf_done(&buf);
}

static inline void fuzz_codec(const struct fl_codec_ops *ops, const uint8_t *data, size_t size)
{
    float whole[FUZZ_COUNT];
    float pieces[FUZZ_COUNT];
    struct fl_layout *layout;
    size_t piece;
    size_t i;
    int rv;

    if (size == 0) {
        return;
    }
    layout = fuzz_layout();
    piece = (size_t)data[0] + 1;
    data++;
    size--;
    rv = fuzz_decode(ops, layout, data, size, FUZZ_COUNT, whole);
    fuzz_expect(fuzz_decode(ops, layout, data, size, piece, pieces) == rv);
    for (i = 0; rv == FL_OK && i < FUZZ_COUNT; i++) {
        fuzz_expect(isfinite(whole[i]));
    }
    fuzz_expect(rv != FL_OK || memcmp(whole, pieces, sizeof(whole)) == 0);
    fuzz_added(ops, layout, data, size, piece, rv, whole);
    fuzz_encode(ops, layout, data, size);
    fl_layout_free(layout);
}

#endif
