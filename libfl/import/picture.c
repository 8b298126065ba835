/* Chooses the decoder by the first bytes, checks sizes, and turns pixels into planes (picture.h).
 */
#include "libfl/import/picture.h"

#include <stdlib.h>
#include <string.h>

#include "libfl/import/picture_impl.h"

/* Rec. 601: 0.299, 0.587 and 0.114 in units of 2^-16, which sum to 1; rounded to the nearest. */
static uint8_t picture_grey(const uint8_t *p)
{
    return (uint8_t)((19595U * p[0] + 38470U * p[1] + 7471U * p[2] + 32768U) >> 16);
}

/* Pixels as a decoder delivers them, `have` bytes each, into planes. */
static void picture_planes(const struct fl__pixels *in, struct fl_decoded *out)
{
    size_t n = in->width * in->height;
    size_t c;
    size_t i;

    for (i = 0; i < n; i++) {
        const uint8_t *p = in->data + i * in->channels;

        if (out->channels == 1) {
            out->pixels[i] = in->channels == 3 ? picture_grey(p) : p[0];
            continue;
        }
        for (c = 0; c < 3; c++) {
            out->pixels[c * n + i] = p[in->channels == 3 ? c : 0];
        }
    }
}

int fl_picture_decode(const char *name, const void *data, size_t len, size_t channels,
                      struct fl_decoded *ret, struct fl_err *err)
{
    static const uint8_t png[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const uint8_t jpeg[3] = {0xff, 0xd8, 0xff};
    struct fl__pixels pixels = {.data = NULL};
    struct fl_decoded picture = {.channels = channels};
    int rv;

    FL_REQUIRE(channels == 0 || channels == 1 || channels == 3);
    if (len >= sizeof(png) && memcmp(data, png, sizeof(png)) == 0) {
        rv = fl__png_decode(name, data, len, &pixels, err);
    } else if (len >= sizeof(jpeg) && memcmp(data, jpeg, sizeof(jpeg)) == 0) {
        rv = fl__jpeg_decode(name, data, len, &pixels, err);
    } else {
        rv = fl_err_set(err, FL_EFORMAT, "'%s': expected a PNG or JPEG picture, found neither",
                        name);
    }
    if (rv != FL_OK) {
        return rv;
    }
    picture.channels = channels != 0 ? channels : pixels.channels;
    picture.width = pixels.width;
    picture.height = pixels.height;
    picture.pixels = malloc(picture.channels * picture.width * picture.height);
    if (picture.pixels == NULL) {
        free(pixels.data);
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its pixels", name);
    }
    picture_planes(&pixels, &picture);
    free(pixels.data);
    *ret = picture;
    return FL_OK;
}
