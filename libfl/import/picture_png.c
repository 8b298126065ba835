/*
 * PNG by the simplified interface of libpng 1.6, which returns errors and needs no jump. It checks
 * the checksum of every chunk.
 */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "libfl/import/picture_impl.h"

/* Are all alpha values of pixels of `size` bytes, alpha last, opaque? */
static bool png_is_opaque(const uint8_t *pixels, size_t n, size_t size)
{
    size_t i;

    for (i = 0; i < n && pixels[i * size + size - 1] == 255; i++) {
    }
    return i == n;
}

/* Removes the alpha byte of each pixel, in place. */
static void png_drop_alpha(uint8_t *pixels, size_t n, size_t size)
{
    size_t i;

    for (i = 1; i < n; i++) {
        (void)memmove(pixels + i * (size - 1), pixels + i * size, size - 1);
    }
}

static int png_decode_image(png_image *image, const char *name, struct fl__pixels *out,
                            struct fl_err *err)
{
    bool alpha = (image->format & PNG_FORMAT_FLAG_ALPHA) != 0;
    size_t size;
    size_t n;
    int rv;

    out->channels = (image->format & PNG_FORMAT_FLAG_COLOR) != 0 ? 3 : 1;
    out->width = image->width;
    out->height = image->height;
    rv = fl__picture_check(name, out->width, out->height, out->channels + 1, err);
    if (rv != FL_OK) {
        return rv;
    }
    /* 16 bits are taken as they are: without this libpng assumes that they are linear in light. */
    image->flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    image->format = (out->channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY) |
                    (alpha ? (png_uint_32)PNG_FORMAT_FLAG_ALPHA : 0);
    size = out->channels + (alpha ? 1 : 0);
    n = out->width * out->height;
    out->data = malloc(n * size);
    if (out->data == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its pixels", name);
    }
    /* A warning is an error too: the picture may lack its end. */
    if (png_image_finish_read(image, NULL, out->data, 0, NULL) == 0 ||
        PNG_IMAGE_FAILED(*image) != 0) {
        rv =
            fl_err_set(err, FL_EFORMAT, "'%s': damaged or truncated PNG: %s", name, image->message);
    } else if (alpha && !png_is_opaque(out->data, n, size)) {
        rv = fl_err_set(err, FL_EFORMAT,
                        "'%s': expected opaque pixels, found transparent ones; put the picture on "
                        "a background first",
                        name);
    } else if (alpha) {
        png_drop_alpha(out->data, n, size);
    }
    if (rv != FL_OK) {
        free(out->data);
        out->data = NULL;
    }
    return rv;
}

int fl__png_decode(const char *name, const void *data, size_t len, struct fl__pixels *ret,
                   struct fl_err *err)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    int rv;

    if (png_image_begin_read_from_memory(&image, data, len) == 0) {
        rv = fl_err_set(err, FL_EFORMAT, "'%s': damaged or truncated PNG: %s", name, image.message);
    } else {
        rv = png_decode_image(&image, name, ret, err);
    }
    png_image_free(&image);
    return rv;
}
