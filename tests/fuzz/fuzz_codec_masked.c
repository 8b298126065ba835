/*
 * Any bytes as a masked unit, and any numbers through it with any mask and residual. First
 * byte: codec and unit; second: the size of the pieces that are read; the rest is the unit.
 *
 * Checked: decoding at once, in pieces and entry by entry from a reader that fetches byte
 * by byte agree, value for value or in their error; exactly the entries of the neurons that
 * the mask leaves out are NaN, the others finite; nothing outside the bytes is read; bytes
 * taken as numbers are coded within the limit, or refused as non-finite, and come back.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/codec/codec_masked.h"
#include "libfl/strategy/upload/upload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS  13
#define WIDE  2100 /* more than one window of the mask */
#define UNITS 4
#define MOST  WIDE /* entries of the largest unit */

static void expect(bool fact)
{
    if (!fact) {
        abort();
    }
}

static void add(struct fl_layout *layout, const char *unit, const char *name, size_t rows,
                size_t width, bool buffer)
{
    size_t dims[2] = {rows, width};

    expect(fl_layout_add(layout, unit, name, dims, width > 1 ? 2 : 1, buffer, NULL) == FL_OK);
}

static struct fl_layout *make_layout(void)
{
    struct fl_layout *layout = NULL;

    expect(fl_layout_create(&layout) == FL_OK);
    add(layout, "a", "a.weight", ROWS, 20, false);
    add(layout, "a", "a.mean", ROWS, 1, true);
    add(layout, "a", "a.gain", ROWS, 1, false);
    add(layout, "b", "b.weight", WIDE, 1, false);
    add(layout, "c", "c.weight", 5, 2, false);
    add(layout, "c", "c.other", 4, 1, false);
    add(layout, "d", "d.weight", 3, 2, false);
    expect(fl_layout_finish(layout, NULL) == FL_OK);
    return layout;
}

/* Byte by byte: nobody may rely on how much is fetched at a time. */
static int read_bytes(void *ctx, uint64_t offset, void *out, size_t len)
{
    const struct fl_codec_memory *m = ctx;
    uint8_t *to = out;
    size_t i;

    for (i = 0; i < len; i++) {
        if (offset + i >= m->len) {
            return FL_EFORMAT;
        }
        to[i] = m->data[offset + i];
    }
    return FL_OK;
}

static int decode(const struct fl_codec_ops *ops, const struct fl_layout *layout, size_t l,
                  const uint8_t *data, size_t size, size_t piece, float *out)
{
    size_t count = fl_layout_unit(layout, l)->count;
    uint8_t *copy = malloc(size > 0 ? size : 1); /* Of exactly that length, for the sanitizer. */
    struct fl_codec_memory memory = {.data = copy, .len = size};
    struct fl_codec_reader reader = fl_codec_memory_reader(&memory);
    struct fl_codec_decoder d;
    size_t i;
    int rv;

    expect(copy != NULL);
    if (size > 0) {
        (void)memcpy(copy, data, size);
    }
    if (piece == 1) {
        reader.read = read_bytes;
    }
    rv = fl_masked_open(&d, ops, layout, l, &reader);
    for (i = 0; rv == FL_OK && i < count; i += piece) {
        rv = d.ops->read(&d, out + i, count - i < piece ? count - i : piece);
    }
    if (rv == FL_OK) {
        rv = d.ops->close(&d);
    }
    free(copy);
    return rv;
}

/* The entries that are NaN are those of neurons whose bit is 0. */
static void check_absent(const struct fl_layout *layout, size_t l, const uint8_t *mask,
                         const float *x)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t rows = fl_neurons(layout, l);
    size_t i;
    size_t j;

    for (i = 0; i < unit->n_tensors; i++) {
        size_t count = fl_layout_tensor(layout, unit->first_tensor + i)->count;

        for (j = 0; j < count; j++, x++) {
            size_t row = j / (count / rows);

            expect((mask[row / 8] >> row % 8 & 1) != 0 ? isfinite(*x) : isnan(*x));
        }
    }
}

static void encode(const struct fl_codec_ops *ops, const struct fl_layout *layout, size_t l,
                   const uint8_t *data, size_t size)
{
    float x[MOST] = {0};
    float out[MOST];
    float residual[MOST] = {0};
    uint8_t keep[WIDE];
    struct fl_unit_update in = {.delta = x, .keep = keep, .residual = residual};
    struct fl_options *o = NULL;
    struct fl_buf buf;
    size_t i;
    int rv;

    (void)memcpy(x, data, size < sizeof(x) ? size : sizeof(x));
    (void)memcpy(residual, data + size / 2,
                 size - size / 2 < sizeof(residual) ? size - size / 2 : sizeof(residual));
    for (i = 0; i < WIDE; i++) {
        keep[i] = l + 1 == UNITS || i == 0 || (size > 0 && (data[i % size] >> i % 7 & 1) != 0);
    }
    fl_buf_init(&buf, 1u << 16);
    expect(fl_options_create(ops->policy.options, &o) == FL_OK);
    if (ops->id != FL_CODEC_FLOAT32) {
        expect(fl_options_set(o, "residual", "yes", NULL) == FL_OK);
        in.residual_new = residual;
    }
    rv = fl_unit_encode(ops, o, layout, l, &in, &buf);
    expect(rv == FL_OK || (rv == FL_ENUMERIC && buf.len == 0));
    if (rv == FL_OK) {
        expect(buf.len <= fl_masked_max_size(ops, layout, l));
        expect(decode(ops, layout, l, buf.data, buf.len, MOST, out) == FL_OK);
        check_absent(layout, l, buf.data, out);
    }
    fl_options_free(o);
    fl_buf_done(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float whole[MOST];
    static float pieces[MOST];
    const struct fl_codec_ops *ops = size > 1 ? fl_codec_by_id(data[0] & 7) : NULL;
    struct fl_layout *layout;
    size_t piece;
    size_t l;
    int rv;

    if (ops == NULL) {
        return 0;
    }
    layout = make_layout();
    l = data[0] >> 3 & (UNITS - 1);
    piece = (size_t)data[1] + 1;
    data += 2;
    size -= 2;
    rv = decode(ops, layout, l, data, size, MOST, whole);
    expect(decode(ops, layout, l, data, size, piece, pieces) == rv);
    if (rv == FL_OK) {
        size_t bytes = fl_layout_unit(layout, l)->count * sizeof(float);

        expect(memcmp(whole, pieces, bytes) == 0);
        expect(decode(ops, layout, l, data, size, 1, pieces) == FL_OK);
        expect(memcmp(whole, pieces, bytes) == 0);
        check_absent(layout, l, data, whole);
    }
    encode(ops, layout, l, data, size);
    fl_layout_free(layout);
    return 0;
}
