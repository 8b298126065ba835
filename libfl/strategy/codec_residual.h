#ifndef FL_STRATEGY_CODEC_RESIDUAL_H
#define FL_STRATEGY_CODEC_RESIDUAL_H

/*
 * What a lossy codec lost is sent later (docs/codecs.md#residuals): the client keeps, per unit,
 *
 *     input  = Delta + decay * residual       what is coded
 *     residual_new = input - decoded          what the server did not get
 *
 * With decay 1 nothing is ever lost: the sum of what was decoded plus the last residual is
 * the sum of all Deltas. Rules: buffers are coded exactly and have no residual (0); a unit
 * that is not sent keeps its residual, untouched by decay, and does not grow by
 * its Delta, for carrying whole ungranted displacements hurts; the neurons that a
 * mask leaves out likewise. What divergence a client reports is ||Delta||, before any
 * of this. The new residual counts when the upload counted, as all that clients keep.
 */

#include "libfl/strategy/codec.h"

/* This codec with these options keeps a residual: option `residual` is there and on. */
bool fl_codec_keeps_residual(const struct fl_codec_ops *ops, const struct fl_options *o);

/*
 * fl_codec_ops.encode() of unit `l` with its residual; the arrays point at the unit's first
 * entry and hold the whole unit, buffers included. `residual` NULL: none yet, all 0.
 * `residual_new` is written, scratch before; it may be `residual`. An entry whose input
 * would not be finite gives up its residual; one whose Delta is not is FL_ENUMERIC.
 * On error `out` is as before and `residual_new` undefined.
 */
FL_MUST_CHECK int fl_residual_encode(const struct fl_codec_ops *ops, const struct fl_options *o,
                                     const struct fl_layout *layout, size_t l, const float *delta,
                                     const float *residual, float *residual_new,
                                     struct fl_buf *out);

#endif
