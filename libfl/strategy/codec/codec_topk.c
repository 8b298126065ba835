/*
 * codec: topk, the largest entries with their values (docs/algorithms.md#largest-entries)
 *
 * Of the unit's d_l trainable entries the largest in magnitude are kept, each with its value. The
 * other entries are 0, which is a value, unlike a unit that was not sent.
 *
 *     c = ceil(share d_l), at least 1; tau = c-th largest |Delta_i|
 *     kept: |Delta_i| >= tau and not 0 (ties with tau are all kept)
 *
 * Bytes; numbers little-endian, positions counted among the trainable entries:
 *
 *     1 byte        tag: 0 some entries, 1 all of them; 2 and 3: the same with values as binary16
 *   tags 0 and 2:
 *     4 bytes       number k of kept entries, at most d_l; 0 ends the part here
 *     1 byte        Rice parameter b, 0 to 36
 *     bits          for each kept entry in rising position: the gap in Rice code
 *                   (codec_sparse.h), then the 32 or 16 bits of the value, highest first
 *   tags 1 and 3:
 *     4 or 2 d_l    all values
 *   all:
 *     4 s_l bytes   buffers as binary32, little-endian
 *
 * The encoder writes all entries where the kept ones are not shorter. No coded unit is longer than
 * tag 1 makes it. binary16 is as in codec float16: rounded to nearest, at most 65504.
 *
 * Refused: another tag; more kept entries than d_l; b above 36; a position of d_l or more; a value
 * that is not finite; a bit that is not zero after the last value; fewer or more bytes than that.
 *
 * Options: share, values, residual, decay. Cost: about 38 bits per kept entry at 5 % and 40 at 1 %,
 * 16 fewer with binary16. Runs on the caller's thread.
 */
#include <math.h>
#include <string.h>

#include "libfl/num/vec.h"
#include "libfl/strategy/codec/bits.h"
#include "libfl/strategy/codec/codec_sparse.h"

enum topk_values { TOPK_FLOAT32, TOPK_FLOAT16 };

struct options {
    struct fl_codec_loss loss;
    double share;
    enum topk_values values;
};

#define TOPK_ALL   1u /* bits of the tag */
#define TOPK_HALF  2u
#define TOPK_HEAD  5 /* tag and count */
#define TOPK_FULL  6 /* the same and the Rice parameter */
#define TOPK_CHUNK 1024

static unsigned topk_value_bits(unsigned tag)
{
    return (tag & TOPK_HALF) != 0 ? 16 : 32;
}

static void topk_write_bits(const struct fl__sparse_kept *kept, const float *x, size_t n,
                            unsigned tag, unsigned rice, struct fl_bit_writer *w)
{
    uint64_t gap = 0;
    size_t i;

    for (i = 0; i < n; i++) {
        uint32_t bits = fl__float_bits(x[i]);

        if (!fl__sparse_keeps(kept, x[i])) {
            gap++;
            continue;
        }
        fl_bits_put_rice(w, gap, rice);
        fl_bits_put(w, (tag & TOPK_HALF) != 0 ? fl__float16_of(bits) : bits, topk_value_bits(tag));
        gap = 0;
    }
    fl_bits_put_end(w);
}

static int topk_encode_all(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                           unsigned tag, struct fl_buf *out)
{
    uint8_t head = (uint8_t)(tag | TOPK_ALL);
    int rv = fl_buf_add(out, &head, 1);
    size_t at = out->len;

    (void)o;
    (void)seed;
    if (rv != FL_OK) {
        return rv;
    }
    if ((tag & TOPK_HALF) != 0) {
        return fl__half_encode(x, n, fl__float16_of, out);
    }
    rv = fl_buf_add(out, x, n * sizeof(*x));
    if (rv != FL_OK) {
        return rv;
    }
    fl__codec_swap(out->data + at, n);
    return FL_OK;
}

static int topk_encode_body(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                            struct fl_buf *out)
{
    const struct options *v = fl_options_values(o);
    unsigned tag = v->values == TOPK_FLOAT16 ? TOPK_HALF : 0;
    struct fl__sparse_kept kept = fl__sparse_keep(x, n, v->share);
    uint64_t size = TOPK_HEAD;
    uint64_t bits = 0;
    struct fl_bit_writer w;
    unsigned rice = 0;
    uint8_t *head;
    int rv;

    if (kept.count > 0) {
        rice = fl__sparse_rice(&kept, x, n, topk_value_bits(tag), &bits);
        size = TOPK_FULL + (bits + 7) / 8;
    }
    if (kept.count > 0 &&
        (size >= 1 + (uint64_t)n * topk_value_bits(tag) / 8 || kept.count > UINT32_MAX))
    {
        return topk_encode_all(o, x, n, seed, tag, out);
    }
    rv = fl_buf_reserve(out, (size_t)size);
    if (rv != FL_OK) {
        return rv;
    }
    head = out->data + out->len;
    head[0] = (uint8_t)tag;
    fl__codec_put32(head + 1, (uint32_t)kept.count);
    if (kept.count > 0) {
        head[TOPK_HEAD] = (uint8_t)rice;
        w = (struct fl_bit_writer){.at = head + TOPK_FULL};
        topk_write_bits(&kept, x, n, tag, rice, &w);
    }
    out->len += (size_t)size;
    return FL_OK;
}

static int topk_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                       const float *delta, uint64_t seed, struct fl_buf *out)
{
    return fl__codec_encode(o, layout, l, delta, seed, topk_encode_body, out);
}

/* A unit of buffers alone has a count of 0. */
static uint64_t topk_max_body(uint64_t n)
{
    return n > 0 ? 1 + 4 * n : TOPK_HEAD;
}

static uint64_t topk_max_size(const struct fl_layout *layout, size_t l)
{
    return topk_max_body(fl_layout_unit(layout, l)->n_trainable) +
           fl__codec_buffer_bytes(layout, l);
}

/* --- decoding --- */

/* In the state of the decoder. */
struct topk_state {
    uint64_t entries;  /* trainable entries of the unit */
    uint64_t count;    /* kept entries, and those of them that are not decoded yet */
    uint64_t left;     /* of `count` */
    uint64_t position; /* of the current kept entry */
    uint64_t from;     /* first possible position of the next kept entry */
    uint64_t done;     /* trainable entries returned */
    struct fl__sparse_bits in;
    unsigned tag, rice;
    float value;  /* of the current kept entry */
    float least;  /* smallest magnitude decoded */
    bool pending; /* position and value hold a decoded entry */
};

_Static_assert(sizeof(struct topk_state) <= sizeof(((struct fl_codec_decoder *)0)->state),
               "the state fits into a decoder");

static void topk_load(const struct fl_codec_decoder *d, struct topk_state *s)
{
    (void)memcpy(s, d->state, sizeof(*s));
}

static void topk_store(struct fl_codec_decoder *d, const struct topk_state *s)
{
    (void)memcpy(d->state, s, sizeof(*s));
}

static int topk_value(unsigned tag, uint64_t bits, float *ret)
{
    if ((tag & TOPK_HALF) != 0) {
        return fl__float16_value((uint16_t)bits, ret);
    }
    *ret = fl__float_of((uint32_t)bits);
    return isfinite(*ret) ? FL_OK : FL_ENUMERIC;
}

/* Decode the next kept entry as the current one, or clear `pending` after the last one. */
static int topk_next_entry(struct fl_codec_decoder *d, struct topk_state *s)
{
    uint64_t bits;
    int rv;

    s->pending = s->left > 0;
    if (!s->pending) {
        return FL_OK;
    }
    rv = fl__sparse_position(d, &s->in, s->rice, s->from, s->entries, &s->position);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__sparse_take(d, &s->in, topk_value_bits(s->tag), &bits);
    if (rv != FL_OK) {
        return rv;
    }
    rv = topk_value(s->tag, bits, &s->value);
    if (rv != FL_OK) {
        return rv;
    }
    s->least = fminf(s->least, fabsf(s->value));
    s->from = s->position + 1;
    s->left--;
    return FL_OK;
}

static int topk_open_some(struct fl_codec_decoder *d, struct topk_state *s)
{
    uint64_t end = fl__codec_body_end(d);
    uint8_t head[TOPK_FULL];
    int rv;

    if (end < TOPK_HEAD) {
        return FL_EFORMAT;
    }
    rv = fl__codec_bytes(d, 0, head, TOPK_HEAD);
    if (rv != FL_OK) {
        return rv;
    }
    d->offset = TOPK_HEAD;
    s->count = s->left = fl__codec_get32(head + 1);
    if (s->count == 0) {
        return FL_OK;
    }
    if (s->count > s->entries || end < TOPK_FULL) {
        return FL_EFORMAT;
    }
    rv = fl__codec_bytes(d, TOPK_HEAD, head + TOPK_HEAD, TOPK_FULL - TOPK_HEAD);
    if (rv != FL_OK) {
        return rv;
    }
    d->offset = TOPK_FULL;
    s->rice = head[TOPK_HEAD];
    return s->rice <= FL__RICE_MAX ? topk_next_entry(d, s) : FL_EFORMAT;
}

static int topk_open(struct fl_codec_decoder *d)
{
    struct topk_state s = {.entries = fl__coded_trainable(d), .least = INFINITY};
    uint64_t end = fl__codec_body_end(d);
    uint8_t tag;
    int rv;

    /* With a mask the size limit is that of the kept neurons. */
    if (end == 0 || end > topk_max_body(s.entries)) {
        return FL_EFORMAT;
    }
    rv = fl__codec_bytes(d, 0, &tag, 1);
    if (rv != FL_OK) {
        return rv;
    }
    s.tag = tag;
    d->offset = 1;
    if (tag > (TOPK_ALL | TOPK_HALF)) {
        return FL_EFORMAT;
    }
    if ((tag & TOPK_ALL) == 0) {
        rv = topk_open_some(d, &s);
    } else if (end != 1 + s.entries * topk_value_bits(tag) / 8) {
        rv = FL_EFORMAT;
    }
    topk_store(d, &s);
    return rv;
}

/* Kept entries among the next n: values in `out`, or added to `sum`; both may be NULL. */
static int topk_take(struct fl_codec_decoder *d, struct topk_state *s, float *out, double w,
                     double *sum, size_t n)
{
    while (s->pending && s->position - s->done < n) {
        uint64_t at = s->position - s->done;
        int rv;

        if (out != NULL) {
            out[at] = s->value;
        } else if (sum != NULL) {
            sum[at] += w * (double)s->value;
        }
        rv = topk_next_entry(d, s);
        if (rv != FL_OK) {
            return rv;
        }
    }
    s->done += n;
    return FL_OK;
}

static int topk_read_all(struct fl_codec_decoder *d, unsigned tag, float *out, size_t n)
{
    int rv;

    if ((tag & TOPK_HALF) != 0) {
        return fl__half_read(d, out, n, fl__float16_value);
    }
    rv = fl__codec_bytes(d, d->offset, out, n * sizeof(*out));
    if (rv != FL_OK) {
        return rv;
    }
    fl__codec_swap(out, n);
    d->offset += (uint64_t)n * sizeof(*out);
    return fl_vec_finite(out, n) ? FL_OK : FL_ENUMERIC;
}

static int topk_read_body(struct fl_codec_decoder *d, float *out, size_t n)
{
    struct topk_state s;
    int rv;

    topk_load(d, &s);
    if ((s.tag & TOPK_ALL) != 0) {
        return topk_read_all(d, s.tag, out, n);
    }
    (void)memset(out, 0, n * sizeof(*out));
    rv = topk_take(d, &s, out, 0, NULL, n);
    topk_store(d, &s);
    return rv;
}

static int topk_read(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__codec_read(d, out, n, topk_read_body);
}

/* Entries of 0 are skipped, as in codec ternary: they change no bit of a sum that began at 0. */
static int topk_add_body(struct fl_codec_decoder *d, double w, double *sum, size_t n)
{
    struct topk_state s;
    int rv;

    topk_load(d, &s);
    rv = topk_take(d, &s, NULL, w, sum, n);
    topk_store(d, &s);
    return rv;
}

static int topk_add(struct fl_codec_decoder *d, double w, double *sum, float *block, size_t n)
{
    struct topk_state s;

    topk_load(d, &s);
    return (s.tag & TOPK_ALL) != 0 ? fl__codec_add_read(d, w, sum, block, n)
                                   : fl__codec_add(d, w, sum, block, n, topk_add_body);
}

static int topk_close(struct fl_codec_decoder *d)
{
    struct topk_state s;

    topk_load(d, &s);
    if ((s.tag & TOPK_ALL) == 0 && !fl__sparse_ended(&s.in)) {
        return FL_EFORMAT;
    }
    return fl__codec_close(d);
}

/* No entry that is absent was larger than the smallest one that is there. */
static void topk_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                        double *ret_high)
{
    struct topk_state s;
    double least;
    double absent;

    topk_load(d, &s);
    *ret_low = *ret_high = norm;
    if ((s.tag & TOPK_HALF) != 0) {
        fl__float16_bounds(norm, (s.tag & TOPK_ALL) != 0 ? s.entries : s.count, ret_low, ret_high);
    }
    if ((s.tag & TOPK_ALL) != 0 || s.count == 0) {
        return;
    }
    least = (double)s.least;
    if ((s.tag & TOPK_HALF) != 0) {
        fl__float16_bounds((double)s.least, 1, &absent, &least);
    }
    absent = least * sqrt((double)(s.entries - s.count));
    *ret_high = hypot(*ret_high, absent);
}

static const char *const topk_value_names[] = {"float32", "float16", NULL};

static const struct fl_opt_spec options[] = {
    {FL_OPT(struct options, FLOAT, share), .def = "0.05", .min = 0, .max = 1,
     .help = "Share of each unit's entries that is kept, at least one entry."},
    {FL_OPT(struct options, ENUM, values), .def = "float32", .choices = topk_value_names,
     .help = "How the kept values are sent; 16 bits as by codec 'float16'."},
    FL__CODEC_RESIDUAL_OPTIONS(struct options),
    FL_OPT_END_OF(struct options),
};

const struct fl_codec_ops fl_codec_topk = {
    .policy =
        {
            .name = "topk",
            .help = "the largest entries with their values, the rest 0",
            .source = "Aji and Heafield 2017; Stich et al. 2018",
            .options = options,
        },
    .id = FL_CODEC_TOPK,
    .sparse = true,
    .lossy = true,
    .encode = topk_encode,
    .max_size = topk_max_size,
    .open = topk_open,
    .read = topk_read,
    .add = topk_add,
    .close = topk_close,
    .bounds = topk_bounds,
};
