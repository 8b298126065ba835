#ifndef FL_STRATEGY_CODEC_IMPL_H
#define FL_STRATEGY_CODEC_IMPL_H

/*
 * Shared by the codecs. Every codec except float32 has the same frame: the coded trainable
 * entries first, then the unit's buffers (batch-norm statistics) as float32, little-endian, in
 * exported order. The buffers are the last 4 s_l bytes, so both sections are found from the size
 * alone, and buffers are never thinned or rounded.
 *
 * All arithmetic is on integers or on IEEE 754 doubles with one rounding per step: coded bytes
 * and decoded values are the same on every machine.
 */

#include "libfl/strategy/codec/codec.h"

/*
 * Iterate over the unit `l` in runs of trainable entries and of buffers: `*tensor` is the
 * cursor, 0 at the start. False at the unit's end.
 */
bool fl__unit_next_run(const struct fl_layout *layout, size_t l, size_t *tensor, size_t *ret_count,
                       bool *ret_buffer);

/* Convert little-endian floats to and from the host's byte order, in place. */
void fl__codec_swap(void *floats, size_t n);
void fl__codec_put32(uint8_t out[4], uint32_t value);
uint32_t fl__codec_get32(const uint8_t in[4]);
/* The nearest IEEE 754 binary16, as float16 is coded: at most 65504 in magnitude. */
float fl__float16_nearest(float x);
uint16_t fl__float16_of(uint32_t float_bits);
/* FL_ENUMERIC for bits that are not a finite number. */
FL_MUST_CHECK int fl__float16_value(uint16_t half, float *ret);
/* Between which norms `n` entries can have been that have the norm `norm` as binary16. */
void fl__float16_bounds(double norm, size_t n, double *ret_low, double *ret_high);
uint32_t fl__float_bits(float x);
float fl__float_of(uint32_t bits);

/* Bytes of the unit's buffers. */
uint64_t fl__codec_buffer_bytes(const struct fl_layout *layout, size_t l);
/* Append the unit's buffers as binary32; `unit` points at its first entry. FL_ENOMEM. */
FL_MUST_CHECK int fl__codec_add_buffers(const struct fl_layout *layout, size_t l, const float *unit,
                                        struct fl_buf *out);

/* --- sizes of the coded part of the unit, which a mask makes smaller --- */

/* How many of `n` entries of whole neurons are coded. */
size_t fl__coded_part(const struct fl_codec_decoder *d, size_t n);
size_t fl__coded_count(const struct fl_codec_decoder *d);
size_t fl__coded_trainable(const struct fl_codec_decoder *d);
uint64_t fl__coded_buffer_bytes(const struct fl_codec_decoder *d);
/* End of the coded trainable entries. */
uint64_t fl__codec_body_end(const struct fl_codec_decoder *d);
/* Read coded bytes; `offset` counts from the first byte after the mask. */
FL_MUST_CHECK int fl__codec_bytes(const struct fl_codec_decoder *d, uint64_t offset, void *out,
                                  size_t len);
/* Initialise a decoder at the start of a unit without a mask; nothing is read or checked. */
void fl__decoder_init(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                      const struct fl_layout *layout, size_t unit,
                      const struct fl_codec_reader *reader);

/* Encode trainable entries: append to `out`. */
typedef int (*fl__body_encode)(const struct fl_options *o, const float *x, size_t n, uint64_t seed,
                               struct fl_buf *out);
/* Encode a unit: the body by `body`, then the buffers. On error `out` is unchanged. */
FL_MUST_CHECK int fl__codec_encode(const struct fl_options *o, const struct fl_layout *layout,
                                   size_t l, const float *delta, uint64_t seed,
                                   fl__body_encode body, struct fl_buf *out);

/* Decode the next n trainable entries. */
typedef int (*fl__body_read)(struct fl_codec_decoder *d, float *out, size_t n);
/* fl_codec_ops.read(): any n entries, buffers included. */
FL_MUST_CHECK int fl__codec_read(struct fl_codec_decoder *d, float *out, size_t n,
                                 fl__body_read body);
/* fl_codec_add() by way of read(), for codecs without `add`. */
FL_MUST_CHECK int fl__codec_add_read(struct fl_codec_decoder *d, double w, double *sum,
                                     float *block, size_t n);
/* Add the next n trainable entries; fl__codec_add() is fl_codec_ops.add() for any n entries. */
typedef int (*fl__body_add)(struct fl_codec_decoder *d, double w, double *sum, size_t n);
FL_MUST_CHECK int fl__codec_add(struct fl_codec_decoder *d, double w, double *sum, float *block,
                                size_t n, fl__body_add body);
/* fl_codec_ops.close(): all entries were read, and the body ended at the buffers. */
FL_MUST_CHECK int fl__codec_close(struct fl_codec_decoder *d);

/*
 * The option rows `residual` and `decay` of a lossy codec (codec_residual.h). The default is
 * off: under FedLDF no residual was better than one, with full uploads a residual helps; these
 * measurements had no decay (docs/algorithms.md#residuals).
 */
/* clang-format off */
#define FL__CODEC_RESIDUAL_OPTIONS(S)                                                 \
    {FL_OPT_IN(S, BOOL, loss, residual), .def = "no",                                 \
     .help = "Clients keep what the codec lost and add it to their next update."},    \
    {FL_OPT_IN(S, FLOAT, loss, decay), .def = "1", .min = 0, .max = 1,                \
     .help = "Part of the residual that is added."}
/* clang-format on */
/* The option table of a codec without other options. */
extern const struct fl_opt_spec fl__codec_loss_options[];

/* The int8 coding, which ternary falls back to: 4 + n bytes from d->offset on. */
FL_MUST_CHECK int fl__int8_encode(const struct fl_options *o, const float *x, size_t n,
                                  uint64_t seed, struct fl_buf *out);
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

/* Decoding of codec ternary; the format is described in codec_ternary.c. */
#define FL__TERNARY_SPARSE 0 /* tags */
#define FL__TERNARY_INT8   1
#define FL__TERNARY_HEAD   5  /* tag and count */
#define FL__TERNARY_FULL   10 /* the same, mu and Rice parameter */
FL_MUST_CHECK int fl__ternary_open(struct fl_codec_decoder *d);
FL_MUST_CHECK int fl__ternary_read(struct fl_codec_decoder *d, float *out, size_t n);
FL_MUST_CHECK int fl__ternary_add(struct fl_codec_decoder *d, double w, double *sum, float *block,
                                  size_t n);
FL_MUST_CHECK int fl__ternary_close(struct fl_codec_decoder *d);
void fl__ternary_bounds(const struct fl_codec_decoder *d, double norm, double *ret_low,
                        double *ret_high);

#endif
