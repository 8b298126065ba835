#ifndef FL_STRATEGY_CODEC_MASKED_H
#define FL_STRATEGY_CODEC_MASKED_H

/*
 * Coded units with an upload mask: only some neurons are sent (FedADP), over any codec.
 *
 *     ceil(n / 8) bytes   mask: bit j, lowest first, is set when neuron j of n is sent;
 *                         bits past n are 0
 *     the rest            the entries of those neurons, buffers included, in exported
 *                         order, coded as a unit of their own: each tensor with its first
 *                         dimension cut down to the kept ones
 *
 * At least one neuron of each unit is sent, and all neurons of the model's last unit (the output
 * layer). Absent entries are decoded as NaN. Every other value is finite, so NaN marks exactly the
 * absent entries.
 *
 * Refused with FL_EFORMAT: a unit shorter than its mask, no neuron, bits past n, an incomplete last
 * unit, and what the codec refuses for this number of neurons.
 */

#include "libfl/strategy/codec/codec_residual.h"

/* Bytes of the mask of unit l. */
size_t fl_mask_bytes(const struct fl_layout *layout, size_t l);

/* Largest size of a masked unit in bytes: a limit before anything is read. */
uint64_t fl_masked_max_size(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                            size_t l);

/*
 * Append the coded unit `l`: with its mask, with its residual, both or neither. Neurons that are
 * not kept are ignored and keep their residual. FL_ENUMERIC, FL_ELIMIT and FL_ENOMEM as
 * fl_codec_ops.encode(); on error `out` is unchanged and `residual_new` undefined.
 */
FL_MUST_CHECK int fl_unit_encode(const struct fl_codec_ops *ops, const struct fl_options *o,
                                 const struct fl_layout *layout, size_t l,
                                 const struct fl_unit_update *in, struct fl_buf *out);

/*
 * fl_codec_open() for a masked unit whose entries are coded with `ops`. The decoder is used like
 * any other and owns nothing. The mask is read again in windows while entries are read, so the
 * reader must allow any order of offsets, as all readers do.
 */
FL_MUST_CHECK int fl_masked_open(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                                 const struct fl_layout *layout, size_t unit,
                                 const struct fl_codec_reader *reader);

/* The decoder returns NaN for absent entries. */
bool fl_masked_decoder(const struct fl_codec_decoder *d);

#endif
