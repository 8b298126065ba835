#ifndef FL_TESTS_CODEC_FIXTURE_H
#define FL_TESTS_CODEC_FIXTURE_H

/* Coded units in memory, for the tests of the codecs. */

#include <check.h>
#include <stdlib.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec.h"
#include "tests/libfl/strategy/strategy_fixture.h"

/* One unit: trainable, buffer, trainable, buffer … entries; a 0 leaves the tensor out. */
static inline struct fl_layout *unit_layout(size_t a, size_t b, size_t c, size_t d)
{
    static const char *const names[4] = {"u.weight", "u.mean", "u.gain", "u.var"};
    size_t n[4] = {a, b, c, d};
    struct fl_layout *layout = NULL;
    size_t i;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    for (i = 0; i < 4; i++) {
        ck_assert(n[i] == 0 ||
                  fl_layout_add(layout, "u", names[i], &n[i], 1, i % 2 == 1, NULL) == FL_OK);
    }
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

/* A reader that takes it as a bug when bytes past the coded unit are asked for. */
static inline int strict_read(void *ctx, uint64_t offset, void *out, size_t len)
{
    const struct fl_codec_memory *m = ctx;

    ck_assert_uint_le(offset, m->len);
    ck_assert_uint_le(len, m->len - offset);
    (void)memcpy(out, m->data + offset, len);
    return FL_OK;
}

/* All of an opened unit through fl_codec_add(). */
static inline int add_all(struct fl_codec_decoder *d, size_t piece, double w, double *sum)
{
    size_t count = fl_layout_unit(d->layout, d->unit)->count;
    float *block = malloc((piece < count ? piece : count) * sizeof(*block));
    size_t i;
    int rv = FL_OK;

    ck_assert_ptr_nonnull(block);
    for (i = 0; rv == FL_OK && i < count; i += piece) {
        rv = fl_codec_add(d, w, sum != NULL ? sum + i : NULL, block,
                          count - i < piece ? count - i : piece);
    }
    free(block);
    return rv == FL_OK ? d->ops->close(d) : rv;
}

/*
 * Whether fl_codec_add() accepts what read() does, and comes to the bits that the values come to,
 * `x` when they were read: with terms that vanish, of either sign, and with some that cancel.
 */
static inline void check_added(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                               const struct fl_codec_reader *reader, size_t piece, int want_rv,
                               const float *x)
{
    static const double weights[] = {5e-324, 0.3, -0.3, 0.7};
    size_t count = fl_layout_unit(layout, 0)->count;
    double *sum = calloc(count, sizeof(*sum));
    double *want = calloc(count, sizeof(*want));
    struct fl_codec_decoder d;
    size_t i;
    int rv = fl_codec_open(&d, ops, layout, 0, reader);

    ck_assert(sum != NULL && want != NULL);
    ck_assert_int_eq(rv == FL_OK ? add_all(&d, piece, 1, NULL) : rv, want_rv);
    for (i = 0; i < sizeof(weights) / sizeof(weights[0]); i++) {
        rv = fl_codec_open(&d, ops, layout, 0, reader);
        ck_assert_int_eq(rv == FL_OK ? add_all(&d, piece, weights[i], sum) : rv, want_rv);
        if (want_rv == FL_OK) {
            fl_acc_add(want, weights[i], x, count);
            ck_assert_mem_eq(sum, want, count * sizeof(*sum));
        }
    }
    free(sum);
    free(want);
}

/* Decode `count` entries, `piece` at a time, from bytes of exactly that length; fl_codec_add() has
 * to agree. */
static inline int decode(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                         const void *bytes, size_t len, size_t piece, float *out)
{
    size_t count = fl_layout_unit(layout, 0)->count;
    uint8_t *copy = malloc(len > 0 ? len : 1); /* The sanitizer sees a read past it. */
    struct fl_codec_memory memory = {.data = copy, .len = len};
    struct fl_codec_reader reader = {.read = strict_read, .ctx = &memory, .size = len};
    struct fl_codec_decoder d;
    size_t i;
    int rv;

    ck_assert_ptr_nonnull(copy);
    (void)memcpy(copy, bytes, len);
    rv = fl_codec_open(&d, ops, layout, 0, &reader);
    for (i = 0; rv == FL_OK && i < count; i += piece) {
        rv = ops->read(&d, out + i, count - i < piece ? count - i : piece);
    }
    if (rv == FL_OK) {
        rv = ops->close(&d);
    }
    check_added(ops, layout, &reader, piece, rv, out);
    free(copy);
    return rv;
}

/* Of exact comparisons: no warning, and -0 is not 0. */
static inline uint32_t bits_of(float x)
{
    uint32_t bits;

    (void)memcpy(&bits, &x, sizeof(bits));
    return bits;
}

/* Unit 0 of `layout`, coded with these options, which it frees. */
static inline int encode_with(const struct fl_codec_ops *codec, struct fl_options *options,
                              const struct fl_layout *layout, const float *x, uint64_t seed,
                              struct fl_buf *out)
{
    int rv = codec->encode(options, layout, 0, x, seed, out);

    fl_options_free(options);
    return rv;
}

/* The same, within the size that the codec promises, and decoded. */
static inline void code_with(const struct fl_codec_ops *codec, struct fl_options *options,
                             const struct fl_layout *layout, const float *x, uint64_t seed,
                             float *out)
{
    struct fl_buf buf;

    fl_buf_init(&buf, 1u << 22);
    ck_assert_int_eq(encode_with(codec, options, layout, x, seed, &buf), FL_OK);
    ck_assert_uint_le(buf.len, codec->max_size(layout, 0));
    ck_assert_int_eq(decode(codec, layout, buf.data, buf.len, 777, out), FL_OK);
    fl_buf_done(&buf);
}

/* An update of 20 entries, of which 10 % are 3 and -1, at 3 and 10. */
static inline void small_update(float x[20])
{
    size_t i;

    for (i = 0; i < 20; i++) {
        x[i] = i % 2 == 0 ? .5f : -.25f;
    }
    x[3] = 3;
    x[10] = -1;
}

#endif
