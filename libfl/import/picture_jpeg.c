/*
 * JPEG by the TurboJPEG interface of libjpeg-turbo, which returns errors; the classic one leaves a
 * broken file by a jump.
 */
#include <stdlib.h>
#include <turbojpeg.h>

#include "libfl/import/picture_impl.h"

static int jpeg_decode_with(tjhandle handle, const char *name, const void *data, size_t len,
                            struct fl__pixels *out, struct fl_err *err)
{
    int width = 0;
    int height = 0;
    int subsampling = 0;
    int colours = 0;
    int format;
    int rv;

    if (tjDecompressHeader3(handle, data, (unsigned long)len, &width, &height, &subsampling,
                            &colours) != 0)
    {
        return fl_err_set(err, FL_EFORMAT, "'%s': damaged or truncated JPEG: %s", name,
                          tjGetErrorStr2(handle));
    }
    if (width <= 0 || height <= 0) { /* The head may hold tables alone. */
        return fl_err_set(err, FL_EFORMAT, "'%s': damaged or truncated JPEG: no picture", name);
    }
    if (colours == TJCS_CMYK || colours == TJCS_YCCK) {
        return fl_err_set(err, FL_EFORMAT, "'%s': expected grey or RGB, found CMYK", name);
    }
    out->channels = colours == TJCS_GRAY ? 1 : 3;
    format = colours == TJCS_GRAY ? TJPF_GRAY : TJPF_RGB;
    out->width = (size_t)width;
    out->height = (size_t)height;
    rv = fl__picture_check(name, out->width, out->height, out->channels, err);
    if (rv != FL_OK) {
        return rv;
    }
    out->data = malloc(out->width * out->height * out->channels);
    if (out->data == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for its pixels", name);
    }
    /* The slow and accurate transform: the same values with and without vector instructions. */
    if (tjDecompress2(handle, data, (unsigned long)len, out->data, width, 0, height, format,
                      TJFLAG_ACCURATEDCT | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
    {
        free(out->data);
        out->data = NULL;
        return fl_err_set(err, FL_EFORMAT, "'%s': damaged or truncated JPEG: %s", name,
                          tjGetErrorStr2(handle));
    }
    return FL_OK;
}

int fl__jpeg_decode(const char *name, const void *data, size_t len, struct fl__pixels *ret,
                    struct fl_err *err)
{
    tjhandle handle = tjInitDecompress();
    int rv;

    if (handle == NULL) {
        return fl_err_set(err, FL_ENOMEM, "'%s': out of memory for a decoder", name);
    }
    rv = jpeg_decode_with(handle, name, data, len, ret, err);
    (void)tjDestroy(handle);
    return rv;
}
