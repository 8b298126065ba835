#ifndef FL_MODEL_ST_WRITE_H
#define FL_MODEL_ST_WRITE_H

/* What the writers of safetensors files share; private to libfl/model. */

#include "libfl/model/safetensors.h"

/* As fl_st_header(); `checksum`: with zeros in the place of one, as FL_ST_CHECKSUM_HEAD says. */
FL_MUST_CHECK int fl__st_header_make(const struct fl_layout *layout, const struct fl_st_meta *meta,
                                     size_t n_meta, bool checksum, struct fl_buf *ret);

#endif
