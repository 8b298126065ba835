#ifndef FL_STRATEGY_CODEC_RESIDUAL_H
#define FL_STRATEGY_CODEC_RESIDUAL_H

/*
 * Residuals of lossy codecs: coding errors are added to later updates
 * (docs/algorithms.md#residuals). The client keeps, per unit,
 *
 *     input  = Delta + decay * residual       input of the codec
 *     residual_new = input - decoded          coding error
 *
 * With decay 1 nothing is lost: the sum of all decoded updates plus the last residual is the sum of
 * all Deltas. Rules: buffers are coded exactly and have no residual (0); a unit that is not sent
 * keeps its residual, without decay and without adding its Delta, because carrying over whole
 * displacements that were not uploaded harms training; the same holds for neurons that a mask
 * leaves out. The divergence that a client reports is ||Delta||, without the residual. The new
 * residual is committed when the upload was aggregated, as all client state.
 */

#include "libfl/strategy/codec/codec.h"

/* The codec keeps a residual with these options: it has the option `residual`, and it is on. */
bool fl_codec_keeps_residual(const struct fl_codec_ops *ops, const struct fl_options *o);

/* One unit of an update to be encoded; all arrays begin at the unit's first entry. */
struct fl_unit_update {
    const float *delta;
    const uint8_t *keep;   /* [fl_neurons()], one byte per neuron; NULL: no mask */
    const float *residual; /* NULL: none yet, all 0 */
    uint64_t seed;         /* as of fl_codec_ops.encode() */
    float *residual_new;   /* as in fl_residual_encode(); NULL: the codec keeps none */
};

/*
 * fl_codec_ops.encode() of the whole unit `l`, buffers included, with its residual; a mask is
 * ignored. `residual_new` is written and also used as scratch; it may be `residual`. An entry whose
 * input would not be finite loses its residual; an entry whose Delta is not finite is FL_ENUMERIC.
 * On error `out` is unchanged and `residual_new` undefined.
 */
FL_MUST_CHECK int fl_residual_encode(const struct fl_codec_ops *ops, const struct fl_options *o,
                                     const struct fl_layout *layout, size_t l,
                                     const struct fl_unit_update *in, struct fl_buf *out);

#endif
