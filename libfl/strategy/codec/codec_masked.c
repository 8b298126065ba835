/*
 * Masked units (codec_masked.h). The encoder gathers the kept entries and passes them to the
 * codec as the only unit of a temporary layout. The decoder needs no such layout: a mask reduces
 * every tensor of the unit by the same factor, so fl__coded_part() is all that codecs need, and
 * nothing is allocated. Runs on the caller's thread; which neurons are kept is decided by the
 * upload policy (upload_fedadp.c).
 */
#include "libfl/strategy/codec/codec_masked.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/strategy/codec/codec_impl.h"
#include "libfl/strategy/upload/upload.h"

size_t fl_mask_bytes(const struct fl_layout *layout, size_t l)
{
    return (fl_neurons(layout, l) + 7) / 8;
}

uint64_t fl_masked_max_size(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                            size_t l)
{
    return fl_mask_bytes(layout, l) + ops->max_size(layout, l);
}

/* --- encoding --- */

/* The kept neurons of a unit, as the only unit of a temporary layout. */
struct kept {
    size_t rows, n; /* neurons, and the number kept */
    struct fl_layout *layout;
    float *delta;
    float *residual; /* NULL: none */
};

/* A kept row of a unit: its first entry and its length; the next row to look at, 0 at first. */
struct row_cursor {
    size_t from;
    size_t len;
    size_t next; /* over all tensors */
};

/* Find the next kept row of the unit. */
static bool next_kept(const struct fl_layout *layout, size_t l, const uint8_t *keep, size_t rows,
                      struct row_cursor *row)
{
    const struct fl_unit *unit = fl_layout_unit(layout, l);

    while (row->next < rows * unit->n_tensors) {
        const struct fl_tensor *t = fl_layout_tensor(layout, unit->first_tensor + row->next / rows);

        row->from += row->len;
        row->len = t->count / rows;
        if (keep[row->next++ % rows] != 0) {
            return true;
        }
    }
    return false;
}

static float *masked_gather(const struct kept *k, const struct fl_layout *layout, size_t l,
                            const uint8_t *keep, const float *whole)
{
    float *part = malloc(fl_layout_count(k->layout) * sizeof(*part));
    struct row_cursor row = {0};
    size_t to = 0;

    while (part != NULL && next_kept(layout, l, keep, k->rows, &row)) {
        (void)memcpy(part + to, whole + row.from, row.len * sizeof(*part));
        to += row.len;
    }
    return part;
}

static int encode_whole(const struct fl_codec_ops *ops, const struct fl_options *o,
                        const struct fl_layout *layout, size_t l, const struct fl_unit_update *in,
                        struct fl_buf *out)
{
    return in->residual_new != NULL ? fl_residual_encode(ops, o, layout, l, in, out)
                                    : ops->encode(o, layout, l, in->delta, in->seed, out);
}

static int encode_kept(const struct fl_codec_ops *ops, const struct fl_options *o,
                       const struct fl_layout *layout, size_t l, const struct fl_unit_update *in,
                       struct kept *k, struct fl_buf *out)
{
    size_t bytes = fl_layout_unit(layout, l)->count * sizeof(float);
    struct fl_unit_update part = {.seed = in->seed};
    const struct fl_unit *unit = fl_layout_unit(layout, l);
    int rv = fl_layout_create(&k->layout);
    size_t i;

    if (rv != FL_OK) {
        return rv;
    }
    for (i = 0; i < unit->n_tensors; i++) {
        const struct fl_tensor *t = fl_layout_tensor(layout, unit->first_tensor + i);
        struct fl_tensor cut = *t;

        cut.dims[0] = k->n;
        rv = fl_layout_add_like(k->layout, unit->name, &cut, NULL);
        if (rv != FL_OK) {
            return rv;
        }
    }
    rv = fl_layout_finish(k->layout, NULL);
    if (rv != FL_OK) {
        return rv;
    }
    part.delta = k->delta = masked_gather(k, layout, l, in->keep, in->delta);
    if (in->residual_new != NULL && in->residual != NULL) {
        k->residual = masked_gather(k, layout, l, in->keep, in->residual);
        part.residual = k->residual;
    } else if (in->residual_new != NULL) {
        k->residual = calloc(fl_layout_count(k->layout), sizeof(*k->residual));
    }
    part.residual_new = k->residual;
    if (k->delta == NULL || (in->residual_new != NULL && k->residual == NULL)) {
        return FL_ENOMEM;
    }
    rv = encode_whole(ops, o, k->layout, 0, &part, out);
    if (rv != FL_OK) {
        return rv;
    }
    if (in->residual_new != NULL) {
        const float *kept = k->residual;
        struct row_cursor row = {0};

        if (in->residual == NULL) {
            (void)memset(in->residual_new, 0, bytes);
        } else if (in->residual != in->residual_new) {
            (void)memcpy(in->residual_new, in->residual, bytes);
        }
        while (next_kept(layout, l, in->keep, k->rows, &row)) {
            (void)memcpy(in->residual_new + row.from, kept, row.len * sizeof(*kept));
            kept += row.len;
        }
    }
    return FL_OK;
}

int fl_unit_encode(const struct fl_codec_ops *ops, const struct fl_options *o,
                   const struct fl_layout *layout, size_t l, const struct fl_unit_update *in,
                   struct fl_buf *out)
{
    struct kept k = {.rows = fl_neurons(layout, l)};
    size_t before = out->len;
    size_t j;
    size_t len;
    int rv;

    if (in->keep == NULL) {
        return encode_whole(ops, o, layout, l, in, out);
    }
    for (j = 0; j < k.rows; j++) {
        k.n += in->keep[j] != 0;
    }
    /* The decoder refuses other masks. */
    FL_REQUIRE(k.n > 0 && (k.n == k.rows || l + 1 < fl_layout_units(layout)));
    len = (k.rows + 7) / 8;
    rv = fl_buf_reserve(out, len);
    if (rv != FL_OK) {
        goto done;
    }
    (void)memset(out->data + out->len, 0, len);
    for (j = 0; j < k.rows; j++) {
        uint8_t *byte = &out->data[out->len + j / 8];

        *byte = (uint8_t)(*byte | (in->keep[j] != 0 ? 1u << j % 8 : 0u));
    }
    out->len += len;
    rv = k.n == k.rows ? encode_whole(ops, o, layout, l, in, out)
                       : encode_kept(ops, o, layout, l, in, &k, out);
done:
    if (rv != FL_OK) {
        out->len = before;
    }
    fl_layout_free(k.layout);
    free(k.delta);
    free(k.residual);
    return rv;
}

/* --- decoding --- */

/* Load the window of the mask that contains byte `at`; `len` bytes is the whole mask. */
static int masked_load_window(struct fl_codec_decoder *d, uint64_t at, uint64_t len)
{
    uint64_t from = at / FL_CODEC_MASK_WINDOW * FL_CODEC_MASK_WINDOW;
    uint64_t n = len - from < FL_CODEC_MASK_WINDOW ? len - from : FL_CODEC_MASK_WINDOW;

    d->mask_from = from;
    return d->reader.read(d->reader.ctx, from, d->window, (size_t)n);
}

static int masked_is_kept(struct fl_codec_decoder *d, size_t row, bool *ret)
{
    uint64_t at = row / 8;
    int rv = FL_OK;

    if (at < d->mask_from || at - d->mask_from >= FL_CODEC_MASK_WINDOW) {
        rv = masked_load_window(d, at, d->base);
    }
    *ret = (d->window[at % FL_CODEC_MASK_WINDOW] >> row % 8 & 1) != 0;
    return rv;
}

/* Count the kept neurons; FL_EFORMAT for bits after the last neuron. */
static int masked_count_kept(struct fl_codec_decoder *d, size_t rows, uint64_t len, size_t *ret)
{
    size_t kept = 0;
    uint64_t at;

    for (at = 0; at < len; at++) {
        unsigned bits;

        if (at % FL_CODEC_MASK_WINDOW == 0) {
            int rv = masked_load_window(d, at, len);

            if (rv != FL_OK) {
                return rv;
            }
        }
        bits = d->window[at % FL_CODEC_MASK_WINDOW];
        kept += (size_t)__builtin_popcount(bits);
        if (at + 1 == len && rows % 8 != 0 && bits >> rows % 8 != 0) {
            return FL_EFORMAT;
        }
    }
    *ret = kept;
    return FL_OK;
}

/*
 * Length of the next stretch of entries that are all kept or all absent: within one row, or over
 * consecutive rows of the same tensor; at most `n`.
 */
static int masked_next_stretch(struct fl_codec_decoder *d, size_t n, bool *ret_kept,
                               size_t *ret_len)
{
    const struct fl_unit *unit = fl_layout_unit(d->layout, d->unit);
    const struct fl_tensor *t = fl_layout_tensor(d->layout, unit->first_tensor + d->whole_tensor);
    size_t width = t->count / d->rows;
    size_t row = d->in_tensor / width;
    size_t len = width - d->in_tensor % width;
    bool kept;
    int rv = masked_is_kept(d, row, ret_kept);

    if (rv != FL_OK) {
        return rv;
    }
    while (len < n && row + 1 < d->rows) {
        rv = masked_is_kept(d, ++row, &kept);
        if (rv != FL_OK) {
            return rv;
        }
        if (kept != *ret_kept) {
            break;
        }
        len += width;
    }
    *ret_len = len < n ? len : n;
    d->in_tensor += *ret_len;
    if (d->in_tensor == t->count) {
        d->in_tensor = 0;
        d->whole_tensor++;
    }
    return FL_OK;
}

static int masked_read_entries(struct fl_codec_decoder *d, float *out, size_t n)
{
    FL_REQUIRE(n <= fl_layout_unit(d->layout, d->unit)->count - d->whole_next);
    d->whole_next += n;
    if (d->kept == d->rows) {
        return d->inner->read(d, out, n);
    }
    while (n > 0) {
        bool kept;
        size_t len;
        size_t i;
        int rv = masked_next_stretch(d, n, &kept, &len);

        if (rv != FL_OK) {
            return rv;
        }
        if (kept) {
            rv = d->inner->read(d, out, len);
            if (rv != FL_OK) {
                return rv;
            }
        }
        for (i = 0; !kept && i < len; i++) {
            out[i] = NAN;
        }
        out += len;
        n -= len;
    }
    return FL_OK;
}

static int masked_close_unit(struct fl_codec_decoder *d)
{
    FL_REQUIRE(d->whole_next == fl_layout_unit(d->layout, d->unit)->count);
    return d->inner->close(d);
}

/* Not a policy: wraps the codec of a strategy whose upload policy masks neurons. */
static const struct fl_codec_ops masked = {
    .policy = {.name = "masked"},
    .read = masked_read_entries,
    .close = masked_close_unit,
};

int fl_masked_open(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                   const struct fl_layout *layout, size_t unit,
                   const struct fl_codec_reader *reader)
{
    size_t rows = fl_neurons(layout, unit);
    uint64_t mask = fl_mask_bytes(layout, unit);
    size_t kept;
    int rv;

    fl__decoder_init(d, &masked, layout, unit, reader);
    d->inner = ops;
    d->whole_next = 0;
    d->whole_tensor = 0;
    d->in_tensor = 0;
    if (reader->size < mask || reader->size > fl_masked_max_size(ops, layout, unit)) {
        return FL_EFORMAT;
    }
    rv = masked_count_kept(d, rows, mask, &kept);
    if (rv != FL_OK) {
        return rv;
    }
    if (kept == 0 || (kept < rows && unit + 1 == fl_layout_units(layout))) {
        return FL_EFORMAT;
    }
    d->base = mask;
    d->reader.size -= mask;
    d->rows = rows;
    d->kept = kept;
    return ops->open(d);
}

bool fl_masked_decoder(const struct fl_codec_decoder *d)
{
    return d->kept < d->rows;
}
