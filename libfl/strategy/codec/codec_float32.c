/*
 * codec: float32
 *
 * Every entry of the unit as IEEE 754 binary32, little-endian, tensors in order. Exact. Options:
 * none. Cost: 4 bytes per entry; decoding reads into the caller's block and checks it once for
 * values that are not finite.
 */
#include "libfl/num/vec.h"
#include "libfl/strategy/codec/codec_impl.h"

static uint64_t float32_max_size(const struct fl_layout *layout, size_t l)
{
    return (uint64_t)fl_layout_unit(layout, l)->count * sizeof(float);
}

static int float32_encode(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                          const float *delta, uint64_t seed, struct fl_buf *out)
{
    size_t count = fl_layout_unit(layout, l)->count;
    size_t at = out->len;
    int rv;

    (void)o;
    (void)seed;
    if (!fl_vec_finite(delta, count)) {
        return FL_ENUMERIC;
    }
    rv = fl_buf_add(out, delta, count * sizeof(float));
    if (rv != FL_OK) {
        return rv;
    }
    fl__codec_swap(out->data + at, count);
    return FL_OK;
}

static int float32_open_unit(struct fl_codec_decoder *d)
{
    return d->reader.size == (uint64_t)fl__coded_count(d) * sizeof(float) ? FL_OK : FL_EFORMAT;
}

static int float32_read_entries(struct fl_codec_decoder *d, float *out, size_t n)
{
    int rv;

    FL_REQUIRE(n <= fl__coded_count(d) - d->next);
    rv = fl__codec_bytes(d, d->offset, out, n * sizeof(float));
    if (rv != FL_OK) {
        return rv;
    }
    fl__codec_swap(out, n);
    d->next += n;
    d->offset += (uint64_t)n * sizeof(float);
    return fl_vec_finite(out, n) ? FL_OK : FL_ENUMERIC;
}

static int float32_close_unit(struct fl_codec_decoder *d)
{
    FL_REQUIRE(d->next == fl__coded_count(d));
    return d->offset == d->reader.size ? FL_OK : FL_EFORMAT;
}

const struct fl_codec_ops fl_codec_float32 = {
    .policy =
        {
            .name = "float32",
            .help = "exact 32-bit numbers",
            .source = "ours",
            .options = fl_opt_none,
        },
    .id = FL_CODEC_FLOAT32,
    .encode = float32_encode,
    .max_size = float32_max_size,
    .open = float32_open_unit,
    .read = float32_read_entries,
    .close = float32_close_unit,
};
