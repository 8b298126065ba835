#ifndef FL_STRATEGY_CODEC_MASKED_H
#define FL_STRATEGY_CODEC_MASKED_H

/*
 * Units of which only some neurons are sent (FedADP), over any codec.
 *
 *     ceil(n / 8) bytes   mask: bit j, lowest first, is set when neuron j of n is there;
 *                         bits past n are 0
 *     the rest            the entries of those neurons, buffers included, in exported
 *                         order, coded as a unit of their own: each tensor with its first
 *                         dimension cut down to the kept ones
 *
 * At least one neuron is there, and of the model's last unit (the output layer) all of them.
 * Decoding gives NaN for the entries that are not there. Nothing else that is not
 * finite comes through, so NaN tells what is absent.
 *
 * Refused with FL_EFORMAT: shorter than its mask, no neuron, bits past n, a last unit that
 * is not whole, and what the codec refuses of so many neurons.
 */

#include "libfl/strategy/codec_residual.h"

/* Bytes of the mask of unit l. */
size_t fl_mask_bytes(const struct fl_layout *layout, size_t l);

/* Bytes that a masked unit may have at most: a limit before anything is read. */
uint64_t fl_masked_max_size(const struct fl_codec_ops *ops, const struct fl_layout *layout,
                            size_t l);

/* One unit of an update on its way out; all arrays begin at the unit's first entry. */
struct fl_unit_update {
    const float *delta;
    const uint8_t *keep;   /* [fl_neurons()], one byte a neuron; NULL: whole, without a mask */
    const float *residual; /* NULL: none yet */
    float *residual_new;   /* as in fl_residual_encode(); NULL: the codec keeps none */
};

/*
 * Append unit `l`: with its mask, with its residual, both or neither. Neurons that are not
 * kept are not looked at, and keep their residual. FL_ENUMERIC, FL_ELIMIT and FL_ENOMEM as
 * fl_codec_ops.encode(); on error `out` is as before and `residual_new` undefined.
 */
FL_MUST_CHECK int fl_unit_encode(const struct fl_codec_ops *ops, const struct fl_options *o,
                                 const struct fl_layout *layout, size_t l,
                                 const struct fl_unit_update *in, struct fl_buf *out);

/*
 * fl_codec_open() for a masked unit whose entries are coded with `ops`. Used, validated and
 * dropped like any other decoder: it owns nothing. The mask is read again in pieces while
 * entries are read, so the reader must allow any order of offsets, as all do.
 */
FL_MUST_CHECK int fl_masked_open(struct fl_codec_decoder *d, const struct fl_codec_ops *ops,
                                 const struct fl_layout *layout, size_t unit,
                                 const struct fl_codec_reader *reader);

/* Entries may be absent from what this decoder gives. */
bool fl_masked_decoder(const struct fl_codec_decoder *d);

#endif
