#ifndef FL_TESTS_MASKED_FIXTURE_H
#define FL_TESTS_MASKED_FIXTURE_H

/* A model whose units are cut into neurons, and masked units of it in memory. */

#include <math.h>

#include "libfl/strategy/codec/codec_masked.h"
#include "libfl/strategy/upload/upload.h"
#include "tests/libfl/strategy/codec_fixture.h"

enum { SMALL, WIDE, FLAT, OUTPUT, MASKED_UNITS };

#define SMALL_ROWS 10
#define WIDE_ROWS  5001 /* a mask of more than two windows */
#define OUT_ROWS   4

static inline void masked_add(struct fl_layout *layout, const char *unit, const char *name,
                              size_t rows, size_t width, bool buffer)
{
    size_t dims[2] = {rows, width};

    ck_assert_int_eq(fl_layout_add(layout, unit, name, dims, width > 0 ? 2 : 1, buffer, NULL),
                     FL_OK);
}

static inline struct fl_layout *masked_layout(void)
{
    struct fl_layout *layout = NULL;

    ck_assert_int_eq(fl_layout_create(&layout), FL_OK);
    masked_add(layout, "small", "small.weight", SMALL_ROWS, 3, false);
    masked_add(layout, "small", "small.bias", SMALL_ROWS, 0, false);
    masked_add(layout, "small", "small.mean", SMALL_ROWS, 0, true);
    masked_add(layout, "small", "small.gain", SMALL_ROWS, 0, false);
    masked_add(layout, "small", "small.var", SMALL_ROWS, 0, true);
    masked_add(layout, "wide", "wide.weight", WIDE_ROWS, 2, false);
    masked_add(layout, "wide", "wide.bias", WIDE_ROWS, 0, false);
    masked_add(layout, "flat", "flat.a", 6, 2, false);
    masked_add(layout, "flat", "flat.b", 5, 0, false);
    masked_add(layout, "out", "out.weight", OUT_ROWS, 2, false);
    masked_add(layout, "out", "out.bias", OUT_ROWS, 0, false);
    ck_assert_int_eq(fl_layout_finish(layout, NULL), FL_OK);
    return layout;
}

/* Neuron of entry i of unit l. */
static inline size_t neuron_of(const struct fl_layout *layout, size_t l, size_t i)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t t = unit->first_tensor;

    while (i >= fl_layout_tensor(layout, t)->count) {
        i -= fl_layout_tensor(layout, t++)->count;
    }
    return i / (fl_layout_tensor(layout, t)->count / fl_neurons(layout, l));
}

/* Decode unit l, `piece` entries at a time, from bytes of exactly that length. */
static inline int masked_decode(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                                size_t l, const void *bytes, size_t len, size_t piece, float *out)
{
    size_t count = fl_layout_unit(layout, l)->count;
    uint8_t *copy = malloc(len > 0 ? len : 1);
    struct fl_codec_memory memory = {.data = copy, .len = len};
    struct fl_codec_reader reader = {.read = strict_read, .ctx = &memory, .size = len};
    struct fl_codec_decoder d;
    size_t i;
    int rv;
    int again;

    ck_assert_ptr_nonnull(copy);
    (void)memcpy(copy, bytes, len);
    rv = fl_masked_open(&d, ops, layout, l, &reader);
    for (i = 0; rv == FL_OK && i < count; i += piece) {
        rv = d.ops->read(&d, out + i, count - i < piece ? count - i : piece);
    }
    if (rv == FL_OK) {
        rv = d.ops->close(&d);
    }
    again = fl_masked_open(&d, ops, layout, l, &reader);
    ck_assert_int_eq(again == FL_OK ? add_all(&d, piece, 1, NULL) : again, rv);
    free(copy);
    return rv;
}

#endif
