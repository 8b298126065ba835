#ifndef FL_BENCH_ROUND_MODEL_H
#define FL_BENCH_ROUND_MODEL_H

/* What bench/round trains and uploads: a layout of equal units, and one coded update for all. */

#include "libfl/base/buf.h"
#include "libfl/model/layout.h"
#include "libfl/strategy/codec/codec.h"

#define ROUND_UNITS 16

/* Units one behind another: unit l from at[l] to at[l + 1]. */
struct round_update {
    uint32_t codec;
    struct fl_blob *bytes; /* owned */
    uint64_t at[ROUND_UNITS + 1];
};

/* `ret_values` of so many parameters or a few less (units are equal); owned, by free(). */
FL_MUST_CHECK int round_model_make(size_t parameters, struct fl_layout **ret_layout,
                                   float **ret_values);
/* With the codec's options at their defaults. */
FL_MUST_CHECK int round_update_make(const struct fl_layout *layout, const float *values,
                                    const struct fl_codec_ops *codec, struct round_update *ret);
void round_update_done(struct round_update *update);

#endif
