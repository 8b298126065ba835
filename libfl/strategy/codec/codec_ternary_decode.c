/*
 * Decoder of codec ternary (format: codec_ternary.c), entry by entry, with a few hundred bytes
 * of state inside struct fl_codec_decoder. Runs on the caller's thread. Malformed input is
 * FL_EFORMAT; it never reads past the coded unit and allocates nothing.
 */
#include <math.h>
#include <string.h>

#include "libfl/strategy/codec/codec_sparse.h"

/* Indices in the decoder's state: word 0 belongs to int8, then the tag, then struct sparse. */
#define STATE_TAG    1
#define STATE_SPARSE 2

struct sparse {
    uint64_t entries;  /* trainable entries of the unit */
    uint64_t count;    /* kept entries that are not decoded yet */
    uint64_t position; /* of the current kept entry */
    uint64_t from;     /* first possible position of the next kept entry */
    uint64_t done;     /* trainable entries returned */
    struct fl__sparse_bits in;
    unsigned rice;
    float values[2]; /* +mu and -mu, indexed by the sign bit */
    uint8_t sign;    /* of the current kept entry */
    bool pending;    /* position and sign hold a decoded entry */
};

_Static_assert(sizeof(struct sparse) <= (64 - STATE_SPARSE) * sizeof(uint64_t),
               "the state fits into a decoder");

static void ternary_load_state(const struct fl_codec_decoder *d, struct sparse *s)
{
    (void)memcpy(s, &d->state[STATE_SPARSE], sizeof(*s));
}

static void ternary_store_state(struct fl_codec_decoder *d, const struct sparse *s)
{
    (void)memcpy(&d->state[STATE_SPARSE], s, sizeof(*s));
}

static inline uint64_t big_endian(const uint8_t in[8])
{
    uint64_t word = 0;
    size_t i;

    for (i = 0; i < 8; i++) { /* Compilers turn this loop into one load. */
        word = word << 8 | in[i];
    }
    return word;
}

/* Decode the next kept entry as the current one, or clear `pending` after the last one. */
static int ternary_next_entry(struct fl_codec_decoder *d, struct sparse *s)
{
    uint64_t sign;
    int rv;

    s->pending = s->count > 0;
    if (!s->pending) {
        return FL_OK;
    }
    rv = fl__sparse_position(d, &s->in, s->rice, s->from, s->entries, &s->position);
    if (rv != FL_OK) {
        return rv;
    }
    rv = fl__sparse_take(d, &s->in, 1, &sign);
    if (rv != FL_OK) {
        return rv;
    }
    s->from = s->position + 1;
    s->sign = (uint8_t)sign;
    s->count--;
    return FL_OK;
}

static int open_sparse(struct fl_codec_decoder *d)
{
    uint64_t end = fl__codec_body_end(d);
    uint8_t head[FL__TERNARY_FULL];
    struct sparse s = {.entries = fl__coded_trainable(d)};
    int rv;

    if (end < FL__TERNARY_HEAD) {
        return FL_EFORMAT;
    }
    rv = fl__codec_bytes(d, 0, head, FL__TERNARY_HEAD);
    if (rv != FL_OK) {
        return rv;
    }
    d->offset = FL__TERNARY_HEAD;
    s.count = fl__codec_get32(head + 1);
    if (s.count == 0) {
        ternary_store_state(d, &s);
        return FL_OK;
    }
    if (s.count > s.entries || end < FL__TERNARY_FULL) {
        return FL_EFORMAT;
    }
    rv = fl__codec_bytes(d, d->offset, head + d->offset, FL__TERNARY_FULL - FL__TERNARY_HEAD);
    if (rv != FL_OK) {
        return rv;
    }
    d->offset = FL__TERNARY_FULL;
    s.values[0] = fl__float_of(fl__codec_get32(head + FL__TERNARY_HEAD));
    s.values[1] = -s.values[0];
    s.rice = head[FL__TERNARY_FULL - 1];
    if (!isfinite(s.values[0])) {
        return FL_ENUMERIC;
    }
    if (!(s.values[0] > 0) || s.rice > FL__RICE_MAX) {
        return FL_EFORMAT;
    }
    rv = ternary_next_entry(d, &s);
    ternary_store_state(d, &s);
    return rv;
}

int fl__ternary_open(struct fl_codec_decoder *d)
{
    uint8_t tag;
    int rv;

    /* With a mask the size limit is that of the kept neurons: the size of tag 1. */
    if (fl__codec_body_end(d) == 0 ||
        fl__codec_body_end(d) > FL__TERNARY_HEAD + (uint64_t)fl__coded_trainable(d))
    {
        return FL_EFORMAT;
    }
    rv = fl__codec_bytes(d, 0, &tag, 1);
    if (rv != FL_OK) {
        return rv;
    }
    d->state[STATE_TAG] = tag;
    switch (tag) {
    case FL__TERNARY_SPARSE:
        return open_sparse(d);
    case FL__TERNARY_INT8:
        d->offset = 1;
        return fl__int8_open(d);
    default:
        return FL_EFORMAT;
    }
}

/* Destination of the kept entries: values, or terms of a sum. */
struct target {
    float *out;        /* NULL: no values */
    double *sum;       /* NULL: no sum */
    double product[2]; /* the term, indexed by the sign bit */
};

/* `at` counts from the first requested entry. */
static inline void ternary_put_entry(const struct sparse *s, const struct target *t, uint64_t at,
                                     unsigned sign)
{
    if (t->out != NULL) {
        t->out[at] = s->values[sign];
    } else if (t->sum != NULL) {
        t->sum[at] += t->product[sign];
    }
}

/*
 * The fast path of ternary_take_entries(): handles entries as long as the current entry is one
 * of the next n and the following one is complete in the buffered bytes, without calls and in
 * registers. Otherwise it stops before that entry, which ternary_next_entry() decodes or
 * refuses.
 */
static void ternary_take_ahead(struct sparse *s, const struct target *t, size_t n)
{
    uint64_t bits = s->in.bits;
    unsigned n_bits = s->in.n_bits;
    uint32_t used = s->in.used;
    uint64_t at = s->position - s->done;
    uint64_t end = s->entries - s->done;
    uint64_t count = s->count;
    unsigned sign = s->sign;
    unsigned rice = s->rice;

    while (count > 0 && at < n) {
        /* Number of one-bits; 63 for 64 of them, which is refused as well. */
        uint64_t q = (uint64_t)__builtin_clzll(~bits | 1);
        uint64_t rest = bits << q; /* from the zero-bit on */
        uint64_t next = at + 1 + (q << rice) + (rest >> (63 - rice));
        unsigned len = (unsigned)q + rice + 2;

        if (len > n_bits) {
            unsigned bytes = (64 - n_bits) / 8;

            if (bytes == 0 || s->in.filled - used < 8) {
                break;
            }
            bits |= big_endian(s->in.bytes + used) >> (64 - 8 * bytes) << (64 - 8 * bytes - n_bits);
            used += bytes;
            n_bits += 8 * bytes;
            continue;
        }
        if (next >= end) {
            break;
        }
        ternary_put_entry(s, t, at, sign);
        sign = (unsigned)(rest >> (62 - rice) & 1);
        bits = rest << (rice + 2);
        n_bits -= len;
        at = next;
        count--;
    }
    s->in.bits = bits;
    s->in.n_bits = n_bits;
    s->in.used = used;
    s->position = s->done + at;
    s->from = s->position + 1;
    s->count = count;
    s->sign = (uint8_t)sign;
}

/* Decode the kept entries among the next n entries. */
static int ternary_take_entries(struct fl_codec_decoder *d, struct sparse *s,
                                const struct target *t, size_t n)
{
    bool more = true;
    int rv;

    while (s->pending && s->position - s->done < n) {
        if (more && s->in.filled - s->in.used < 8) {
            rv = fl__sparse_fetch(d, &s->in, &more);
            if (rv != FL_OK) {
                return rv;
            }
            continue;
        }
        ternary_take_ahead(s, t, n);
        if (s->position - s->done < n) {
            ternary_put_entry(s, t, s->position - s->done, s->sign);
            rv = ternary_next_entry(d, s);
            if (rv != FL_OK) {
                return rv;
            }
        }
    }
    s->done += n;
    return FL_OK;
}

static int read_sparse(struct fl_codec_decoder *d, float *out, size_t n)
{
    struct target t = {.out = out};
    struct sparse s;
    int rv;

    ternary_load_state(d, &s);
    (void)memset(out, 0, n * sizeof(*out));
    rv = ternary_take_entries(d, &s, &t, n);
    ternary_store_state(d, &s);
    return rv;
}

/*
 * Entries of 0 are skipped: a sum that started at 0 is never -0.0, which only -0.0 + -0.0 gives
 * (IEEE 754, 6.3), and adding a zero of either sign changes no other value.
 */
static int add_sparse(struct fl_codec_decoder *d, double w, double *sum, size_t n)
{
    struct target t = {.sum = sum};
    struct sparse s;
    int rv;

    ternary_load_state(d, &s);
    t.product[0] = w * (double)s.values[0];
    t.product[1] = w * (double)s.values[1];
    rv = ternary_take_entries(d, &s, &t, n);
    ternary_store_state(d, &s);
    return rv;
}

int fl__ternary_read(struct fl_codec_decoder *d, float *out, size_t n)
{
    return fl__codec_read(d, out, n,
                          d->state[STATE_TAG] == FL__TERNARY_INT8 ? fl__int8_read : read_sparse);
}

int fl__ternary_add(struct fl_codec_decoder *d, double w, double *sum, float *block, size_t n)
{
    return d->state[STATE_TAG] == FL__TERNARY_INT8 ? fl__codec_add_read(d, w, sum, block, n)
                                                   : fl__codec_add(d, w, sum, block, n, add_sparse);
}

int fl__ternary_close(struct fl_codec_decoder *d)
{
    if (d->state[STATE_TAG] == FL__TERNARY_SPARSE) {
        struct sparse s;

        /*
         * All positions are below d_l, so no entry is pending.
         */
        ternary_load_state(d, &s);
        if (!fl__sparse_ended(&s.in)) {
            return FL_EFORMAT;
        }
    }
    return fl__codec_close(d);
}

/*
 * With k of n entries kept and their mean magnitude mu the decoded norm is mu sqrt(k). The kept
 * entries themselves had no smaller one (mean of squares, square of the mean) and at most k mu,
 * when one of them was nearly all; what was left out was below the smallest of them. The sum of
 * both is convex in that smallest one, so it is largest at 0, k mu, or at mu, sqrt(n) mu.
 */
void fl__ternary_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                        double *ret_high)
{
    double n = (double)fl__coded_trainable(d);
    struct sparse s;
    double k;

    if (d->state[STATE_TAG] == FL__TERNARY_INT8) {
        fl__int8_bounds(d, norm, ret_low, ret_high);
        return;
    }
    ternary_load_state(d, &s);
    *ret_low = *ret_high = norm;
    if (norm > 0) {
        k = norm / (double)s.values[0] * (norm / (double)s.values[0]);
        *ret_high = norm * fmax(sqrt(k), sqrt(n / k));
    }
}
