#include <stdlib.h>

#include "libfl/import/picture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte selects the channels. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t channels[] = {0, 1, 3};
    struct fl_decoded picture = {.pixels = NULL};
    struct fl_err err = {0};
    int rv;

    if (size < 1) {
        return 0;
    }
    rv = fl_picture_decode("x", data + 1, size - 1, channels[data[0] % 3], &picture, &err);
    if (rv != FL_OK) {
        FL_REQUIRE(picture.pixels == NULL && err.code == rv && err.msg[0] != '\0');
        return 0;
    }
    FL_REQUIRE(picture.width > 0 && picture.height > 0 &&
               (picture.channels == 1 || picture.channels == 3));
    free(picture.pixels);
    return 0;
}
