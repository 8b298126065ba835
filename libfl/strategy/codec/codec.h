#ifndef FL_STRATEGY_CODEC_H
#define FL_STRATEGY_CODEC_H

/*
 * The coded form of one unit of an update. A coded unit is decoded block by block in rising
 * order from a reader, so a decoded update of a client is never in memory as a whole.
 *
 * A decoder trusts no input: malformed input is FL_EFORMAT, values that are not finite are
 * FL_ENUMERIC, and it never reads past the coded unit.
 */

#include "libfl/base/buf.h"
#include "libfl/strategy/policy.h"

/* Numbers as in fl.v1.Codec. */
enum fl_codec_id {
    FL_CODEC_FLOAT32 = 1,
    FL_CODEC_FLOAT16 = 2,
    FL_CODEC_BFLOAT16 = 3,
    FL_CODEC_INT8 = 4,
    FL_CODEC_TERNARY = 5,
    FL_CODEC_STEPS = 6,
    FL_CODEC_TOPK = 7,
    FL_CODEC_QSGD = 8
};

/* Reads exactly `len` bytes at `offset` of the coded unit; FL_EFORMAT past its end. */
struct fl_codec_reader {
    int (*read)(void *ctx, uint64_t offset, void *out, size_t len);
    void *ctx;
    uint64_t size; /* bytes of the coded unit */
};

/* Bytes of a mask that a decoder buffers at a time. */
#define FL_CODEC_MASK_WINDOW 256

/* State of any codec's decoder: decoders need no allocation and may be dropped without close(). */
struct fl_codec_decoder {
    const struct fl_codec_ops *ops;
    const struct fl_layout *layout;
    size_t unit;
    struct fl_codec_reader reader; /* its size is that of the coded entries */
    uint64_t base;                 /* where they start: after the mask, if there is one */
    /*
     * `kept` of `rows` neurons are coded (codec_masked.h); 1 of 1 without a mask. The codec sees
     * the unit with each tensor's first dimension reduced to `kept`.
     */
    size_t rows, kept;
    size_t next; /* next coded entry */
    size_t tensor,
        /* Position of `next`: cursor of fl__unit_next_run(), and entries left of the run. */
        run;
    bool in_buffers;    /* the run holds buffers (lossy codecs) */
    uint64_t offset;    /* next byte */
    uint64_t state[64]; /* private to the codec */
    /* Masked units only: the codec of the kept entries, and the position in the whole unit. */
    const struct fl_codec_ops *inner;
    size_t whole_next, whole_tensor, in_tensor;
    uint64_t mask_from; /* byte of the mask in window[0] */
    uint8_t window[FL_CODEC_MASK_WINDOW];
};

/* First member of the options of every lossy codec (codec_residual.h). */
struct fl_codec_loss {
    bool residual;
    double decay;
};

struct fl_codec_ops {
    struct fl_policy policy;
    enum fl_codec_id id;
    /* Decoding is not exact; the options begin with struct fl_codec_loss. */
    bool lossy;
    /*
     * Most entries are left out or rounded to 0: the decoded values are not the client's whole
     * update.
     */
    bool sparse;
    /*
     * Append the coded unit `l`; `delta` points at the unit's first entry in exported order. Random
     * rounding follows from `seed`, of which a client has another one for each round and unit.
     * FL_ENUMERIC for an entry that is not finite or too large; on error `out` is unchanged.
     */
    int (*encode)(const struct fl_options *o, const struct fl_layout *layout, size_t l,
                  const float *delta, uint64_t seed, struct fl_buf *out);
    /* Largest size of a coded unit in bytes: a limit before anything is read. */
    uint64_t (*max_size)(const struct fl_layout *layout, size_t l);
    /* Read and check the header. */
    int (*open)(struct fl_codec_decoder *d);
    /*
     * Decode the next n entries of the unit into out[n]; all calls together must read exactly
     * the unit. Finite, except the entries that a mask leaves out: those are NaN.
     */
    int (*read)(struct fl_codec_decoder *d, float *out, size_t n);
    /* fl_codec_add() of a sparse codec, without a block of zeros. NULL: read() is used. */
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
extern const struct fl_codec_ops fl_codec_steps;
extern const struct fl_codec_ops fl_codec_topk;
extern const struct fl_codec_ops fl_codec_qsgd;

/* By wire number; NULL when unknown. */
const struct fl_codec_ops *fl_codec_by_id(int id);

/*
 * Set up a decoder and read the header of the coded unit. Keeps references to `ops` and `layout`
 * and copies `reader`. FL_EFORMAT when the coded unit is longer than the codec's limit, before
 * anything is read.
 */
FL_MUST_CHECK int fl_codec_open(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                                const struct fl_layout *layout, size_t unit,
                                const struct fl_codec_reader *reader);
/*
 * Decode the next n entries and add them: sum[i] += w x[i], with the bits of fl_acc_add(). `sum`
 * must have started at 0 and been changed only by this function; w is finite. `sum` NULL: the
 * entries are only checked. `block` is scratch of n floats. Errors are those of read(); entries
 * before the error may have been added.
 */
FL_MUST_CHECK int fl_codec_add(struct fl_codec_decoder *d, double w, double *sum, float *block,
                               size_t n);
/* Size of the entries sent; entries of neurons that a mask leaves out are not included. */
struct fl_codec_size {
    /*
     * Squared norm of the trainable entries, and of the others, in double, which entries of float
     * cannot overflow.
     */
    double norm_sq, buffers_sq;
    size_t n, n_buffers; /* how many of each */
    /*
     * What a client that keeps no residual can have reported as the divergence of the unit
     * (docs/algorithms.md#a-reported-divergence-and-the-upload): of the whole unit, with slack
     * for clients that compute in float32. `high` may be INFINITY.
     */
    double low, high;
};
/*
 * Decode an opened unit to its end and discard the values: the validation of an upload before it
 * is accepted.
 */
FL_MUST_CHECK int fl_codec_measure(struct fl_codec_decoder *d, struct fl_codec_size *ret);

/* A reader over bytes in memory, which must outlive it. */
struct fl_codec_memory {
    const uint8_t *data;
    size_t len;
};
/* Borrows `memory` for as long as the reader is used. */
struct fl_codec_reader fl_codec_memory_reader(struct fl_codec_memory *memory);

#endif
