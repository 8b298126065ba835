#ifndef FL_STRATEGY_CODEC_H
#define FL_STRATEGY_CODEC_H

/*
 * How one unit of an update is written as bytes. A coded unit is decoded block by
 * block in rising order from a reader, so nobody ever holds a decoded update of a
 * client as a whole.
 *
 * A decoder trusts nothing: every malformed input is FL_EFORMAT, non-finite values
 * are FL_ENUMERIC, and neither reads past the coded unit.
 */

#include "libfl/base/buf.h"
#include "libfl/strategy/policy.h"

/* Numbers as in fl.v1.Codec. */
enum fl_codec_id {
    FL_CODEC_FLOAT32 = 1,
    FL_CODEC_FLOAT16 = 2,
    FL_CODEC_BFLOAT16 = 3,
    FL_CODEC_INT8 = 4,
    FL_CODEC_TERNARY = 5
};

/* Up to `len` bytes at `offset` of the coded unit, exactly; FL_EFORMAT past its end. */
struct fl_codec_reader {
    int (*read)(void *ctx, uint64_t offset, void *out, size_t len);
    void *ctx;
    uint64_t size; /* bytes of the coded unit */
};

/* Room for any codec's decoder, so that decoders need no allocation. */
struct fl_codec_decoder {
    const struct fl_codec_ops *ops;
    const struct fl_layout *layout;
    size_t unit;
    struct fl_codec_reader reader;
    size_t next;        /* entry of the unit that comes next */
    uint64_t offset;    /* byte that comes next */
    uint64_t state[64]; /* the codec's own */
};

struct fl_codec_ops {
    struct fl_policy policy;
    enum fl_codec_id id;
    /* Append the coded unit `l`; `delta` points at the unit's first entry in exported order. */
    int (*encode)(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                  const float *delta, struct fl_buf *out);
    /* Bytes that a coded unit may have at most: a limit before anything is read. */
    uint64_t (*max_size)(const struct fl_layout *layout, size_t l);
    /* Read and check the head. */
    int (*open)(struct fl_codec_decoder *d);
    /* The next n entries of the unit into out[n]; n counts to exactly the unit's end. */
    int (*read)(struct fl_codec_decoder *d, float *out, size_t n);
    /* After the last entry: FL_EFORMAT when coded bytes are left over. */
    int (*close)(struct fl_codec_decoder *d);
};

extern const struct fl_codec_ops fl_codec_float32;

/* By wire number; NULL when unknown. */
const struct fl_codec_ops *fl_codec_by_id(int id);

#endif
