#include "libfl/num/rows_kern.h"

#define ROWS_WIDTH 2
#define ROWS_TILE  2
#include "libfl/num/rows_impl.h"

const struct fl__rows_kern fl__rows_plain = FL__ROWS_ROW;
