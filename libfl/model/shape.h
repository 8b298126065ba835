#ifndef FL_MODEL_SHAPE_H
#define FL_MODEL_SHAPE_H

/* Shapes as text; private to libfl/model. */

#include "libfl/model/layout.h"

/* Eight 20-digit numbers with their separators. */
#define FL__SHAPE_TEXT_MAX (FL_LAYOUT_MAX_DIMS * 21 + 8)

/* "200x784", or "scalar" without dimensions. Returns `out`. */
const char *fl__shape_text(char *out, size_t size, const size_t *dims, size_t n_dims);
/* fl_layout_text(), with or without the marks of local tensors. */
FL_MUST_CHECK int fl__layout_text(const struct fl_layout *layout, bool marks, struct fl_buf *ret);

#endif
