#ifndef FL_MODEL_ST_WRITE_H
#define FL_MODEL_ST_WRITE_H

/* Shared by the writers of safetensors files; private to libfl/model. */

#include "libfl/model/safetensors.h"

/*
 * fl_st_header(); with `checksum`: reserves the place of a checksum, filled with zeros
 * (FL_ST_CHECKSUM_HEAD).
 */
FL_MUST_CHECK int fl__st_header_make(const struct fl_layout *layout, const struct fl_st_meta *meta,
                                     size_t n_meta, bool checksum, struct fl_buf *ret);

#endif
