#ifndef FL_IMPORT_PICTURE_H
#define FL_IMPORT_PICTURE_H

/*
 * Decodes a picture: PNG by libpng, JPEG by libjpeg-turbo. Both through the interfaces that return
 * errors instead of leaving by a jump (png_image_…, tj…). The bytes may come from anybody.
 *
 * Threading: no state.
 */

#include <stddef.h>
#include <stdint.h>

#include "libfl/base/err.h"

struct fl_decoded {
    size_t channels; /* 1: grey, 3: red, green, blue */
    size_t height, width;
    uint8_t *pixels; /* [channels][height][width]; owned: free() */
};

/*
 * Decode the `len` bytes of the file `name`. `channels` 1 or 3 converts (grey by Rec. 601), 0 keeps
 * what the file has. 16 bits become 8. FL_EFORMAT: neither format, damaged, cut short, CMYK, or
 * with transparent pixels; FL_ELIMIT: a side above FL_IMPORT_MAX_SIDE or more than FL_DATA_MAX_DIM
 * values, before any memory is taken for them; FL_ENOMEM.
 */
FL_MUST_CHECK int fl_picture_decode(const char *name, const void *data, size_t len, size_t channels,
                                    struct fl_decoded *ret, struct fl_err *err);

#endif
