#ifndef FL_STRATEGY_CODEC_IMPL_H
#define FL_STRATEGY_CODEC_IMPL_H

#include "libfl/strategy/codec.h"

/*
 * Walk the unit `l` in runs of trainable entries and of buffers: `*tensor` is the
 * cursor, 0 at the start. False at the unit's end.
 */
bool fl__unit_next_run(const struct fl_layout *layout, size_t l, size_t *tensor, size_t *ret_count,
                       bool *ret_buffer);

#endif
