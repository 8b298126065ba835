#ifndef FL_STRATEGY_CODEC_IMPL_H
#define FL_STRATEGY_CODEC_IMPL_H

/*
 * What codecs share. Every codec but float32 has the same frame: the coded trainable
 * entries first, then the unit's buffers (batch-norm statistics) as float32,
 * little-endian, in exported order. The last 4 s_l bytes are the buffers, so both parts
 * are found from the size alone, and a buffer is never thinned or rounded.
 *
 * All arithmetic is on integers or on IEEE 754 doubles with one rounding a step: coded
 * bytes and decoded values are the same on every machine.
 */

#include "libfl/strategy/codec.h"

/*
 * Walk the unit `l` in runs of trainable entries and of buffers: `*tensor` is the
 * cursor, 0 at the start. False at the unit's end.
 */
bool fl__unit_next_run(const struct fl_layout *layout, size_t l, size_t *tensor, size_t *ret_count,
                       bool *ret_buffer);

/* Between little-endian floats and the host's, in place. */
void fl__codec_swap(void *floats, size_t n);
void fl__codec_put32(uint8_t out[4], uint32_t value);
uint32_t fl__codec_get32(const uint8_t in[4]);
uint32_t fl__float_bits(float x);
float fl__float_of(uint32_t bits);

/* Bytes of the unit's buffers. */
uint64_t fl__codec_buffer_bytes(const struct fl_layout *layout, size_t l);

/* --- what a decoder works on: the coded part of the unit, which a mask makes smaller --- */

/* Of `n` entries of whole neurons, those that are coded. */
size_t fl__coded_part(const struct fl_codec_decoder *d, size_t n);
size_t fl__coded_count(const struct fl_codec_decoder *d);
size_t fl__coded_trainable(const struct fl_codec_decoder *d);
uint64_t fl__coded_buffer_bytes(const struct fl_codec_decoder *d);
/* Where the coded trainable entries end. */
uint64_t fl__codec_body_end(const struct fl_codec_decoder *d);
/* Coded bytes, counted from the first one behind the mask. */
FL_MUST_CHECK int fl__codec_bytes(const struct fl_codec_decoder *d, uint64_t offset, void *out,
                                  size_t len);
/* A decoder at the start of a unit without a mask; nothing is read or checked. */
void fl__decoder_init(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                      const struct fl_layout *layout, size_t unit,
                      const struct fl_codec_reader *reader);

/* The unit's trainable entries, one after another. */
struct fl__trainable {
    const float *x;
    size_t n;
    float *copy; /* NULL when they lie together anyway */
};

/* FL_ENUMERIC when an entry of the unit, buffers included, is not finite; FL_ENOMEM. */
FL_MUST_CHECK int fl__trainable_take(struct fl__trainable *t, const struct fl_layout *layout,
                                     size_t l, const float *delta);
void fl__trainable_done(struct fl__trainable *t);

/* Code trainable entries: append to `out`. */
typedef int (*fl__body_encode)(const struct fl_options *o, const float *x, size_t n,
                               struct fl_buf *out);
/* The frame around it. On error `out` is as before. */
FL_MUST_CHECK int fl__codec_encode(const struct fl_options *o, const struct fl_layout *layout,
                                   size_t l, const float *delta, fl__body_encode body,
                                   struct fl_buf *out);

/* Decode the next n trainable entries. */
typedef int (*fl__body_read)(struct fl_codec_decoder *d, float *out, size_t n);
/* fl_codec_ops.read: any n entries, buffers among them. */
FL_MUST_CHECK int fl__codec_read(struct fl_codec_decoder *d, float *out, size_t n,
                                 fl__body_read body);
/* fl_codec_add() of a codec that has nothing better. */
FL_MUST_CHECK int fl__codec_add_read(struct fl_codec_decoder *d, double w, double *sum,
                                     float *block, size_t n);
/* The same of the next n trainable entries, and of any n entries: fl_codec_ops.add. */
typedef int (*fl__body_add)(struct fl_codec_decoder *d, double w, double *sum, size_t n);
FL_MUST_CHECK int fl__codec_add(struct fl_codec_decoder *d, double w, double *sum, float *block,
                                size_t n, fl__body_add body);
/* fl_codec_ops.close: everything is read, and the body ended where it should. */
FL_MUST_CHECK int fl__codec_close(struct fl_codec_decoder *d);

/*
 * The rows `residual` and `decay` of a lossy codec's option table (codec_residual.h). Off
 * is the default: under FedLDF none did better than a residual, with full uploads it pays, and
 * what was measured there had no decay (docs/codecs.md#residuals).
 */
/* clang-format off */
#define FL__CODEC_RESIDUAL_OPTIONS(S)                                                 \
    {FL_OPT_IN(S, BOOL, loss, residual), .def = "no",                                 \
     .help = "Clients keep what the codec lost and add it to their next update."},    \
    {FL_OPT_IN(S, FLOAT, loss, decay), .def = "1", .min = 0, .max = 1,                \
     .help = "Part of the residual that is added."}
/* clang-format on */
/* The table of a codec that has no other options. */
extern const struct fl_opt_spec fl__codec_loss_options[];

/* The coding of int8, which ternary falls back to: 4 + n bytes from d->offset on. */
FL_MUST_CHECK int fl__int8_encode(const struct fl_options *o, const float *x, size_t n,
                                  struct fl_buf *out);
FL_MUST_CHECK int fl__int8_open(struct fl_codec_decoder *d);
FL_MUST_CHECK int fl__int8_read(struct fl_codec_decoder *d, float *out, size_t n);
void fl__int8_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                     double *ret_high);

/* 16-bit codecs: 2 bytes an entry. */
typedef uint16_t (*fl__half_of)(uint32_t float_bits);
/* FL_ENUMERIC for bits that are not a finite number. */
typedef int (*fl__half_to)(uint16_t bits, float *ret);
FL_MUST_CHECK int fl__half_encode(const float *x, size_t n, fl__half_of convert,
                                  struct fl_buf *out);
FL_MUST_CHECK int fl__half_open(struct fl_codec_decoder *d);
FL_MUST_CHECK int fl__half_read(struct fl_codec_decoder *d, float *out, size_t n,
                                fl__half_to convert);
uint64_t fl__half_max_size(const struct fl_layout *layout, size_t l);

/* Reading what codec_ternary.c wrote; the format stands there. */
#define FL__TERNARY_SPARSE 0 /* tags */
#define FL__TERNARY_INT8   1
#define FL__TERNARY_HEAD   5  /* tag and count */
#define FL__TERNARY_FULL   10 /* … mu and Rice parameter */
#define FL__RICE_MAX       36u
FL_MUST_CHECK int fl__ternary_open(struct fl_codec_decoder *d);
FL_MUST_CHECK int fl__ternary_read(struct fl_codec_decoder *d, float *out, size_t n);
FL_MUST_CHECK int fl__ternary_add(struct fl_codec_decoder *d, double w, double *sum, float *block,
                                  size_t n);
FL_MUST_CHECK int fl__ternary_close(struct fl_codec_decoder *d);
void fl__ternary_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                        double *ret_high);

#endif
