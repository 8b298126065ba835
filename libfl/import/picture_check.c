#include <inttypes.h>

#include "libfl/import/picture_impl.h"

int fl__picture_check(const char *name, uint64_t width, uint64_t height, size_t channels,
                      struct fl_err *err)
{
    if (width == 0 || height == 0) {
        return fl_err_set(err, FL_EFORMAT, "'%s': expected pixels, found a picture without any",
                          name);
    }
    if (width > FL_IMPORT_MAX_SIDE || height > FL_IMPORT_MAX_SIDE ||
        width * height > FL_DATA_MAX_DIM / channels)
    {
        return fl_err_set(err, FL_ELIMIT,
                          "'%s': expected at most %d pixels a side and %" PRIu64
                          " values, found %" PRIu64 " x %" PRIu64 " pixels of %zu values",
                          name, FL_IMPORT_MAX_SIDE, FL_DATA_MAX_DIM, width, height, channels);
    }
    return FL_OK;
}
