/*
 * codec: int8, one scale per unit
 *
 *     4 bytes       scale m = max |Delta_i| over the trainable entries, binary32,
 *                   little-endian, finite and not negative
 *     d_l bytes     levels q_i in -127..127, two's complement
 *     4 s_l bytes   buffers as binary32, little-endian
 *
 *     q_i = round(127 Delta_i / m), ties to even; 0 when m = 0
 *     decoded: float(q_i m / 127)
 *
 * The products are exact in double (24 + 7 bits), the quotient is rounded once to double and once
 * to float. The largest entry is decoded exactly, and nothing can overflow. Refused: m not finite;
 * m negative (-0 too), a level of -128, a level that is not 0 under m = 0, any other length.
 * Options: residual, decay. Cost: 1 byte per entry.
 */
#include <math.h>

#include "libfl/strategy/codec/codec_impl.h"

#define LEVELS 127.0
#define CHUNK  4096

/* Index in the decoder's state of the bits of m. */
#define STATE_SCALE 0

/* Round to the nearest integer, ties to even; |x| is at most 127. */
static int int8_round(double x)
{
    double down = floor(x);
    double rest = x - down; /* exact */
    int low = (int)down;

    if (rest > 0.5 || (!(rest < 0.5) && low % 2 != 0)) {
        low++;
    }
    return low;
}

int fl__int8_encode(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                    struct fl_buf *out)
{
    float m = 0;
    size_t i;
    int rv = fl_buf_reserve(out, n + 4);

    (void)o;
    (void)seed;
    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < n; i++) {
        float magnitude = fabsf(x[i]);

        m = magnitude > m ? magnitude : m;
    }
    fl__codec_put32(out->data + out->len, fl__float_bits(m));
    out->len += 4;
    for (i = 0; i < n; i++) {
        int level = m > 0 ? int8_round((double)x[i] * LEVELS / (double)m) : 0;

        out->data[out->len++] = (uint8_t)(level & 0xff);
    }
    return FL_OK;
}

int fl__int8_open(struct fl_codec_decoder *d)
{
    uint8_t head[4];
    int rv;

    if (fl__codec_body_end(d) != d->offset + 4 + fl__coded_trainable(d)) {
        return FL_EFORMAT;
    }
    rv = fl__codec_bytes(d, d->offset, head, sizeof(head));
    if (rv != FL_OK) {
        return rv;
    }
    d->offset += sizeof(head);
    d->state[STATE_SCALE] = fl__codec_get32(head);
    if (!isfinite(fl__float_of(fl__codec_get32(head)))) {
        return FL_ENUMERIC;
    }
    return (d->state[STATE_SCALE] & 0x80000000u) == 0 ? FL_OK : FL_EFORMAT;
}

int fl__int8_read(struct fl_codec_decoder *d, float *out, size_t n)
{
    double m = (double)fl__float_of((uint32_t)d->state[STATE_SCALE]);
    uint8_t bytes[CHUNK];
    size_t i;

    while (n > 0) {
        size_t part = n < CHUNK ? n : CHUNK;
        bool bad = false;
        int rv = fl__codec_bytes(d, d->offset, bytes, part);

        if (rv != FL_OK) {
            return rv;
        }
        for (i = 0; i < part; i++) {
            int level = bytes[i] < 128 ? bytes[i] : bytes[i] - 256;

            bad |= level == -128 || (level != 0 && !(m > 0));
            out[i] = (float)(level * m / LEVELS);
        }
        if (bad) {
            return FL_EFORMAT;
        }
        d->offset += part;
        out += part;
        n -= part;
    }
    return FL_OK;
}

/* The error of an entry is at most half a level, m / 254. */
void fl__int8_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                     double *ret_high)
{
    double m = (double)fl__float_of((uint32_t)d->state[STATE_SCALE]);
    double off = m / (2 * LEVELS) * sqrt((double)fl__coded_trainable(d));

    *ret_low = norm - off;
    *ret_high = norm + off;
}

static int int8_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                       const float *delta, uint64_t seed, struct fl_buf *out)
{
    return fl__codec_encode(o, layout, l, delta, seed, fl__int8_encode, out);
}

static uint64_t int8_max_size(const struct fl_layout *layout, size_t l)
{
    return 4 + (uint64_t)fl_layout_unit(layout, l)->n_trainable + fl__codec_buffer_bytes(layout, l);
}

static int int8_read_entries(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__codec_read(d, out, n, fl__int8_read);
}

const struct fl_codec_ops fl_codec_int8 = {
    .policy =
        {
            .name = "int8",
            .help = "8 bits an entry, one scale a unit",
            .source = "ours",
            .options = fl__codec_loss_options,
        },
    .id = FL_CODEC_INT8,
    .lossy = true,
    .encode = int8_encode,
    .max_size = int8_max_size,
    .open = fl__int8_open,
    .read = int8_read_entries,
    .close = fl__codec_close,
    .bounds = fl__int8_bounds,
};
