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

/* Exactly `len` bytes at `offset` of the coded unit; FL_EFORMAT past its end. */
struct fl_codec_reader {
    int (*read)(void *ctx, uint64_t offset, void *out, size_t len);
    void *ctx;
    uint64_t size; /* bytes of the coded unit */
};

/* Bytes of a mask that a decoder holds at a time. */
#define FL_CODEC_MASK_WINDOW 256

/*
 * Room for any codec's decoder, so that decoders need no allocation and may be dropped
 * without close().
 */
struct fl_codec_decoder {
    const struct fl_codec_ops *ops;
    const struct fl_layout *layout;
    size_t unit;
    struct fl_codec_reader reader; /* its size is that of the coded entries */
    uint64_t base;                 /* where they start: behind the mask, if there is one */
    /*
     * Of `rows` neurons `kept` are coded (codec_masked.h); 1 of 1 without a mask. What a
     * codec sees is the unit with each tensor's first dimension cut down to `kept`.
     */
    size_t rows, kept;
    size_t next;        /* entry of what is coded that comes next */
    size_t tensor, run; /* where `next` is: cursor of fl__unit_next_run(), entries left of the */
    bool in_buffers;    /* run, and what the run holds (lossy codecs) */
    uint64_t offset;    /* byte that comes next */
    uint64_t state[64]; /* the codec's own */
    /* Masked units only: the codec of the kept entries, and where the whole unit stands. */
    const struct fl_codec_ops *inner;
    size_t whole_next, whole_tensor, in_tensor;
    uint64_t mask_from; /* byte of the mask that window[0] holds */
    uint8_t window[FL_CODEC_MASK_WINDOW];
};

/* What the options of every lossy codec begin with (codec_residual.h). */
struct fl_codec_loss {
    bool residual;
    double decay;
};

struct fl_codec_ops {
    struct fl_policy policy;
    enum fl_codec_id id;
    /* What is decoded is not what was coded; the options begin with struct fl_codec_loss. */
    bool lossy;
    /* Most entries are left out: what is decoded is not a client's whole update. */
    bool sparse;
    /*
     * Append the coded unit `l`; `delta` points at the unit's first entry in exported order.
     * FL_ENUMERIC for an entry that is not finite; on error `out` is as before.
     */
    int (*encode)(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                  const float *delta, struct fl_buf *out);
    /* Bytes that a coded unit may have at most: a limit before anything is read. */
    uint64_t (*max_size)(const struct fl_layout *layout, size_t l);
    /* Read and check the head. */
    int (*open)(struct fl_codec_decoder *d);
    /* The next n entries of the unit into out[n]; n counts to exactly the unit's end. Finite,
       but for the entries that a mask leaves out: those are NaN. */
    int (*read)(struct fl_codec_decoder *d, float *out, size_t n);
    /* Sparse codecs: fl_codec_add(), without a block of zeros. NULL: by way of read(). */
    int (*add)(struct fl_codec_decoder *d, double w, double *sum, float *block, size_t n);
    /* After the last entry: FL_EFORMAT when coded bytes are left over. */
    int (*close)(struct fl_codec_decoder *d);
    /*
     * Lossy codecs: between which norms the trainable entries can have been before they were coded,
     * of a decoder that was read to its end and whose decoded entries have the norm `norm`. In
     * exact arithmetic: no slack for rounding.
     */
    void (*bounds)(const struct fl_codec_decoder *d, double norm, double *ret_low,
                   double *ret_high);
};

extern const struct fl_codec_ops fl_codec_float32;
extern const struct fl_codec_ops fl_codec_float16;
extern const struct fl_codec_ops fl_codec_bfloat16;
extern const struct fl_codec_ops fl_codec_int8;
extern const struct fl_codec_ops fl_codec_ternary;

/* By wire number; NULL when unknown. */
const struct fl_codec_ops *fl_codec_by_id(int id);

/*
 * Set up a decoder and read the head of the coded unit. Keeps references to `ops` and
 * `layout` and copies `reader`. FL_EFORMAT when the coded unit is longer than this codec
 * can make it, before anything is read.
 */
FL_MUST_CHECK int fl_codec_open(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                                const struct fl_layout *layout, size_t unit,
                                const struct fl_codec_reader *reader);
/*
 * The next n entries, not as such but added up: sum[i] += w x[i], with the bits of fl_acc_add().
 * `sum` begun at 0 and has had only this done to it since; w is finite. NULL for `sum`: the
 * entries are only checked. `block` is room for n floats; what stands in it afterwards means
 * nothing. Fails as read() does, with what was added until then.
 */
FL_MUST_CHECK int fl_codec_add(struct fl_codec_decoder *d, double w, double *sum, float *block,
                               size_t n);
/*
 * Decode an opened unit to its end and throw the values away: the validation that an
 * upload passes before it is accepted. `*ret_norm_sq` is the squared norm over the
 * trainable entries that are there, in double: entries of float cannot overflow it.
 */
FL_MUST_CHECK int fl_codec_validate(struct fl_codec_decoder *d, double *ret_norm_sq);
/* Of what a unit holds: what neurons that a mask leaves out would have is not counted. */
struct fl_codec_size {
    double norm_sq, buffers_sq; /* squared norm of the trainable entries, and of the others */
    size_t n, n_buffers;        /* how many of each */
    /*
     * What a client that keeps no residual can have reported as the divergence of the unit
     * (docs/formulas.md#a-reported-divergence-and-the-upload): of the whole unit, with slack
     * for clients that compute in float32. `high` may be INFINITY.
     */
    double low, high;
};
/* The same, with more figures. */
FL_MUST_CHECK int fl_codec_measure(struct fl_codec_decoder *d, struct fl_codec_size *ret);

/* A reader over bytes in memory, which must outlive it. */
struct fl_codec_memory {
    const uint8_t *data;
    size_t len;
};
/* Borrows `memory` for as long as the reader is used. */
struct fl_codec_reader fl_codec_memory_reader(struct fl_codec_memory *memory);

#endif
