/*
 * codec: ternary, sparse (docs/algorithms.md#sparse-ternary)
 *
 * Of the unit's d_l trainable entries the largest in magnitude are kept, each as its sign; all
 * share one magnitude. The other entries are 0, which is a value, unlike a unit that was not sent.
 *
 *     c   = ceil(share d_l), at least 1; tau = c-th largest |Delta_i|
 *     kept: |Delta_i| >= tau and not 0 (ties with tau are all kept)
 *     mu  = mean |Delta_i| over the kept ones, summed in rising order in double, rounded
 *           to binary32; decoded: +mu, -mu, or 0
 *
 * Bytes; numbers little-endian, positions counted among the trainable entries:
 *
 *     1 byte        tag: 0 sparse, 1 int8
 *   tag 0:
 *     4 bytes       number of kept entries, unsigned, at most d_l; 0 ends the part here
 *     4 bytes       mu, binary32, finite and above 0
 *     1 byte        Rice parameter b, 0 to 36
 *     bits          for each kept entry in rising position: the gap in Rice code
 *                   (codec_sparse.h), then the sign, 1: negative
 *   tag 1:          as codec int8 writes them: scale and d_l levels
 *   both:
 *     4 s_l bytes   buffers as binary32, little-endian
 *
 * The encoder writes tag 1 where tag 0 is not shorter (units of a few entries). No coded unit is
 * longer than tag 1 makes it.
 *
 * Positions rise because gaps are not negative. Refused: another tag; more kept entries than d_l;
 * mu not finite, not above 0; b above 36; a position of d_l or more; a bit that is not zero after
 * the last sign; fewer or more bytes than that.
 *
 * Options: share, residual, decay. Cost: about 6.9 bits per kept entry at 5 %, 9.3 at 1 %; encoding
 * takes five passes over the unit. Runs on the caller's thread. This file encodes;
 * codec_ternary_decode.c decodes.
 */
#include "libfl/strategy/codec/bits.h"
#include "libfl/strategy/codec/codec_sparse.h"

struct options {
    struct fl_codec_loss loss;
    double share;
};

#define HEAD_INT8 5 /* tag and scale */

struct chosen {
    struct fl__sparse_kept kept;
    unsigned rice;
    uint64_t bits;
};

static void ternary_choose(const float *x, size_t n, double share, struct chosen *ret)
{
    *ret = (struct chosen){.kept = fl__sparse_keep(x, n, share)};
    if (ret->kept.count > 0) {
        ret->rice = fl__sparse_rice(&ret->kept, x, n, 1, &ret->bits);
    }
}

static void write_bits(const struct chosen *s, const float *x, size_t n, struct fl_bit_writer *w)
{
    uint64_t gap = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        if (!fl__sparse_keeps(&s->kept, x[i])) {
            gap++;
            continue;
        }
        fl_bits_put_rice(w, gap, s->rice);
        fl_bits_put(w, fl__float_bits(x[i]) >> 31, 1);
        gap = 0;
    }
    fl_bits_put_end(w);
}

static int ternary_encode_body(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                               struct fl_buf *out)
{
    const struct options *v = fl_options_values(o);
    struct chosen s;
    struct fl_bit_writer w;
    uint64_t size;
    uint8_t *head;
    size_t i;
    int rv;

    ternary_choose(x, n, v->share, &s);
    size = s.kept.count > 0 ? FL__TERNARY_FULL + (s.bits + 7) / 8 : FL__TERNARY_HEAD;
    rv = fl_buf_reserve(out, HEAD_INT8 + n);
    if (rv != FL_OK) {
        return rv;
    }
    head = out->data + out->len;
    if (s.kept.count > 0 && (size >= HEAD_INT8 + n || s.kept.count > UINT32_MAX)) {
        head[0] = FL__TERNARY_INT8;
        out->len++;
        return fl__int8_encode(o, x, n, seed, out);
    }
    for (i = 0; i < size; i++) {
        head[i] = 0;
    }
    head[0] = FL__TERNARY_SPARSE;
    fl__codec_put32(head + 1, (uint32_t)s.kept.count);
    if (s.kept.count > 0) {
        fl__codec_put32(head + FL__TERNARY_HEAD, fl__float_bits(s.kept.mu));
        head[FL__TERNARY_FULL - 1] = (uint8_t)s.rice;
        w = (struct fl_bit_writer){.at = head + FL__TERNARY_FULL};
        write_bits(&s, x, n, &w);
    }
    out->len += (size_t)size;
    return FL_OK;
}

static int ternary_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                          const float *delta, uint64_t seed, struct fl_buf *out)
{
    return fl__codec_encode(o, layout, l, delta, seed, ternary_encode_body, out);
}

static uint64_t ternary_max_size(const struct fl_layout *layout, size_t l)
{
    return HEAD_INT8 + (uint64_t)fl_layout_unit(layout, l)->n_trainable +
           fl__codec_buffer_bytes(layout, l);
}

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, share), .def = "0.05", .min = 0, .max = 1,
     .help = "Share of each unit's entries that is kept, at least one entry."},
    FL__CODEC_RESIDUAL_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_codec_ops fl_codec_ternary = {
    .policy =
        {
            .name = "ternary",
            .help = "signs of the largest entries and one magnitude per unit, the rest 0",
            .source = "sparse ternary compression; ours",
            .options = options,
        },
    .id = FL_CODEC_TERNARY,
    .sparse = true,
    .lossy = true,
    .encode = ternary_encode,
    .max_size = ternary_max_size,
    .open = fl__ternary_open,
    .read = fl__ternary_read,
    .add = fl__ternary_add,
    .close = fl__ternary_close,
    .bounds = fl__ternary_bounds,
};
