#ifndef FL_IMPORT_PICTURE_IMPL_H
#define FL_IMPORT_PICTURE_IMPL_H

/* The decoders of picture.h, a file for each library. */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"
#include "libfl/import/import.h"

struct fl__pixels {
    size_t width, height;
    size_t channels; /* 1 or 3 bytes a pixel, next to each other */
    uint8_t *data;   /* owned: free() */
};

/* FL_EFORMAT, FL_ELIMIT: a size that must not be decoded. */
FL_MUST_CHECK int fl__picture_check(const char *name, uint64_t width, uint64_t height,
                                    size_t channels, struct fl_err *err);
FL_MUST_CHECK int fl__png_decode(const char *name, const void *data, size_t len,
                                 struct fl__pixels *ret, struct fl_err *err);
FL_MUST_CHECK int fl__jpeg_decode(const char *name, const void *data, size_t len,
                                  struct fl__pixels *ret, struct fl_err *err);

#endif
