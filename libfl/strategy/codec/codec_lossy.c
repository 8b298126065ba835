/*
 * The frame of the lossy codecs (codec_impl.h): trainable entries coded by the codec, buffers as
 * float32; and the two 16-bit codings. Pure functions on the caller's thread; which entries are
 * kept and how they are rounded is in the codec files.
 */
#include <stdlib.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec_impl.h"

/* Coded bytes read at a time, on the stack. */
#define CHUNK 4096

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HOST_IS_BIG_ENDIAN 1
#else
#define HOST_IS_BIG_ENDIAN 0
#endif

void fl__codec_swap(void *floats, size_t n)
{
    uint8_t *p = floats;
    size_t i;

    for (i = 0; HOST_IS_BIG_ENDIAN && i < n; i++, p += 4) {
        uint8_t a = p[0];
        uint8_t b = p[1];

        p[0] = p[3];
        p[1] = p[2];
        p[2] = b;
        p[3] = a;
    }
}

void fl__codec_put32(uint8_t out[4], uint32_t value)
{
    out[0] = (uint8_t)(value & 0xff);
    out[1] = (uint8_t)(value >> 8 & 0xff);
    out[2] = (uint8_t)(value >> 16 & 0xff);
    out[3] = (uint8_t)(value >> 24);
}

uint32_t fl__codec_get32(const uint8_t in[4])
{
    return (uint32_t)in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

uint32_t fl__float_bits(float x)
{
    uint32_t bits;

    (void)memcpy(&bits, &x, sizeof(bits));
    return bits;
}

float fl__float_of(uint32_t bits)
{
    float x;

    (void)memcpy(&x, &bits, sizeof(x));
    return x;
}

uint64_t fl__codec_buffer_bytes(const struct fl_layout *layout, size_t l)
{
    return (uint64_t)fl_layout_unit(layout, l)->n_buffers * sizeof(float);
}

/* --- encoding --- */

/* The unit's trainable entries as one array. */
struct trainable {
    const float *x;
    size_t n;
    float *copy; /* NULL when they are contiguous in the unit */
};

/* FL_ENUMERIC when an entry of the unit, buffers included, is not finite; FL_ENOMEM. */
static int trainable_take(struct trainable *t, const struct fl_layout *layout, size_t l,
                          const float *delta)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    size_t tensor = 0;
    size_t count;
    size_t at = 0;
    bool buffer;

    *t = (struct trainable){.n = unit->n_trainable};
    if (!fl_vec_finite(delta, unit->count)) {
        return FL_ENUMERIC;
    }
    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        if (!buffer && count == t->n) {
            t->x = delta + at; /* A single run, as in most units. */
            return FL_OK;
        }
        at += count;
    }
    t->copy = malloc((t->n + 1) * sizeof(*t->copy));
    if (t->copy == NULL) {
        return FL_ENOMEM;
    }
    t->x = t->copy;
    for (t->n = 0, tensor = 0; fl__unit_next_run(layout, l, &tensor, &count, &buffer);) {
        if (!buffer) {
            (void)memcpy(t->copy + t->n, delta, count * sizeof(*delta));
            t->n += count;
        }
        delta += count;
    }
    return FL_OK;
}

int fl__codec_add_buffers(const struct fl_layout *layout, size_t l, const float *delta,
                          struct fl_buf *out)
{
    size_t tensor = 0;
    size_t count;
    bool buffer;
    int rv;

    while (fl__unit_next_run(layout, l, &tensor, &count, &buffer)) {
        size_t at = out->len;

        if (buffer) {
            rv = fl_buf_add(out, delta, count * sizeof(*delta));
            if (rv != FL_OK) {
                return rv;
            }
            fl__codec_swap(out->data + at, count);
        }
        delta += count;
    }
    return FL_OK;
}

int fl__codec_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                     const float *delta, uint64_t seed, fl__body_encode body, struct fl_buf *out)
{
    struct trainable t;
    size_t before = out->len;
    int rv = trainable_take(&t, layout, l, delta);

    if (rv != FL_OK) {
        return rv;
    }
    rv = body(o, t.x, t.n, seed, out);
    free(t.copy);
    if (rv != FL_OK) {
        goto fail;
    }
    rv = fl__codec_add_buffers(layout, l, delta, out);
    if (rv != FL_OK) {
        goto fail;
    }
    return FL_OK;
fail:
    out->len = before;
    return rv;
}

/* --- decoding --- */

static int read_buffers(struct fl_codec_decoder *d, float *out, size_t n)
{
    const struct fl_unit *unit = fl_layout_unit(d->layout, d->unit);
    uint64_t before = 0;
    size_t at = 0;
    size_t i;
    int rv;

    /* Bytes of buffers before this entry. */
    for (i = 0; i < unit->n_tensors && at < d->next; i++) {
        const struct fl_tensor *t = fl_layout_tensor(d->layout, unit->first_tensor + i);
        size_t count = fl__coded_part(d, t->count);

        if (!fl_tensor_counts(t)) {
            before += d->next - at < count ? d->next - at : count;
        }
        at += count;
    }
    rv = fl__codec_bytes(d, fl__codec_body_end(d) + before * sizeof(float), out, n * sizeof(float));
    if (rv != FL_OK) {
        return rv;
    }
    fl__codec_swap(out, n);
    return fl_vec_finite(out, n) ? FL_OK : FL_ENUMERIC;
}

/* Length of the next run, at most n, whose entries are all trainable or all buffers. */
static size_t next_part(struct fl_codec_decoder *d, size_t n)
{
    if (d->run == 0) {
        (void)fl__unit_next_run(d->layout, d->unit, &d->tensor, &d->run, &d->in_buffers);
        d->run = fl__coded_part(d, d->run);
    }
    return n < d->run ? n : d->run;
}

int fl__codec_read(struct fl_codec_decoder *d, float *out, size_t n, fl__body_read body)
{
    FL_REQUIRE(n <= fl__coded_count(d) - d->next);
    while (n > 0) {
        size_t part = next_part(d, n);
        int rv = d->in_buffers ? read_buffers(d, out, part) : body(d, out, part);

        if (rv != FL_OK) {
            return rv;
        }
        d->next += part;
        d->run -= part;
        out += part;
        n -= part;
    }
    return FL_OK;
}

int fl__codec_add(struct fl_codec_decoder *d, double w, double *sum, float *block, size_t n,
                  fl__body_add body)
{
    FL_REQUIRE(n <= fl__coded_count(d) - d->next);
    while (n > 0) {
        size_t part = next_part(d, n);
        int rv = d->in_buffers ? read_buffers(d, block, part) : body(d, w, sum, part);

        if (rv != FL_OK) {
            return rv;
        }
        if (d->in_buffers && sum != NULL) {
            fl_acc_add(sum, w, block, part);
        }
        d->next += part;
        d->run -= part;
        sum = sum != NULL ? sum + part : NULL;
        n -= part;
    }
    return FL_OK;
}

int fl__codec_close(struct fl_codec_decoder *d)
{
    FL_REQUIRE(d->next == fl__coded_count(d));
    return d->offset == fl__codec_body_end(d) ? FL_OK : FL_EFORMAT;
}

/* --- 16 bits an entry --- */

uint64_t fl__half_max_size(const struct fl_layout *layout, size_t l)
{
    return (uint64_t)fl_layout_unit(layout, l)->n_trainable * 2 + fl__codec_buffer_bytes(layout, l);
}

int fl__half_encode(const float *x, size_t n, fl__half_of convert, struct fl_buf *out)
{
    int rv = fl_buf_reserve(out, 2 * n);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        uint16_t bits = convert(fl__float_bits(x[i]));

        out->data[out->len++] = (uint8_t)(bits & 0xff);
        out->data[out->len++] = (uint8_t)(bits >> 8);
    }
    return FL_OK;
}

int fl__half_open(struct fl_codec_decoder *d)
{
    uint64_t body = 2 * (uint64_t)fl__coded_trainable(d);

    return d->reader.size == body + fl__coded_buffer_bytes(d) ? FL_OK : FL_EFORMAT;
}

int fl__half_read(struct fl_codec_decoder *d, float *out, size_t n, fl__half_to convert)
{
    uint8_t bytes[CHUNK];
    size_t i;

    while (n > 0) {
        size_t part = n < CHUNK / 2 ? n : CHUNK / 2;
        int rv = fl__codec_bytes(d, d->offset, bytes, 2 * part);

        if (rv != FL_OK) {
            return rv;
        }
        for (i = 0; i < part; i++) {
            rv = convert((uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8), &out[i]);
            if (rv != FL_OK) {
                return rv;
            }
        }
        d->offset += 2 * part;
        out += part;
        n -= part;
    }
    return FL_OK;
}
