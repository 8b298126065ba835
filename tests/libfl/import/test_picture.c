/* Decoding of pictures: values, conversions, and files that are none, or not whole. */
#include <turbojpeg.h>

#include "libfl/import/picture.h"
#include "tests/lib/suites.h"
#include "tests/libfl/import/import_fixture.h"

static void picture_refused(const void *data, size_t len, int code, const char *text)
{
    struct fl_decoded picture = {.pixels = NULL};
    struct fl_err err = {0};
    int rv = fl_picture_decode("p", data, len, 0, &picture, &err);

    ck_assert_msg(rv == code && strstr(err.msg, text) != NULL, "%d: \"%s\" lacks \"%s\"", rv,
                  err.msg, text);
    ck_assert_ptr_null(picture.pixels);
}

TEST(a_colour_png_becomes_planes_of_its_values)
{
    struct fl_decoded picture;
    struct fl_err err = {0};
    size_t len = 0;
    uint8_t *file = fixture_png(PNG_FORMAT_RGB, 3, 2, 7, &len);
    size_t i;

    ck_assert_msg(fl_picture_decode("p", file, len, 0, &picture, &err) == FL_OK, "%s", err.msg);
    ck_assert(picture.channels == 3 && picture.height == 2 && picture.width == 3);
    for (i = 0; i < 18; i++) {
        ck_assert_uint_eq(picture.pixels[i], 7 + i % 6 * 3 + i / 6);
    }
    free(picture.pixels);
    free(file);
}

TEST(grey_and_colour_are_converted_when_a_number_of_channels_is_wanted)
{
    struct fl_decoded picture;
    size_t len = 0;
    uint8_t *file = fixture_png(PNG_FORMAT_GRAY, 2, 2, 9, &len);

    ck_assert_int_eq(fl_picture_decode("p", file, len, 3, &picture, NULL), FL_OK);
    ck_assert(picture.channels == 3);
    ck_assert_mem_eq(picture.pixels, ((uint8_t[]){9, 10, 11, 12, 9, 10, 11, 12, 9, 10, 11, 12}),
                     12);
    free(picture.pixels);
    free(file);
    file = fixture_png(PNG_FORMAT_RGB, 1, 1, 100, &len);
    ck_assert_int_eq(fl_picture_decode("p", file, len, 1, &picture, NULL), FL_OK);
    /* 0.299 * 100 + 0.587 * 101 + 0.114 * 102 = 100.815 */
    ck_assert(picture.channels == 1 && picture.pixels[0] == 101);
    free(picture.pixels);
    free(file);
}

TEST(opaque_alpha_is_dropped_and_transparency_is_refused)
{
    uint8_t pixels[2][4] = {{1, 2, 3, 255}, {4, 5, 6, 255}};
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = 2, .height = 1, .format = PNG_FORMAT_RGBA};
    struct fl_decoded picture;
    uint8_t file[1024];
    png_alloc_size_t len = sizeof(file);

    ck_assert(png_image_write_to_memory(&image, file, &len, 0, pixels, 0, NULL) != 0);
    ck_assert_int_eq(fl_picture_decode("p", file, len, 0, &picture, NULL), FL_OK);
    ck_assert_mem_eq(picture.pixels, ((uint8_t[]){1, 4, 2, 5, 3, 6}), 6);
    free(picture.pixels);
    pixels[1][3] = 254;
    len = sizeof(file);
    ck_assert(png_image_write_to_memory(&image, file, &len, 0, pixels, 0, NULL) != 0);
    picture_refused(file, len, FL_EFORMAT, "'p': expected opaque pixels, found transparent ones");
}

/* A JPEG of one colour, which the transform keeps. */
static unsigned char *jpeg(int width, int height, int subsampling, unsigned long *ret_len)
{
    tjhandle handle = tjInitCompress();
    uint8_t *pixels = malloc((size_t)width * (size_t)height * 3);
    unsigned char *file = NULL;
    size_t i;

    ck_assert(handle != NULL && pixels != NULL);
    for (i = 0; i < (size_t)width * (size_t)height * 3; i++) {
        pixels[i] = 128;
    }
    ck_assert_int_eq(tjCompress2(handle, pixels, width, 0, height, TJPF_RGB, &file, ret_len,
                                 subsampling, 100, 0),
                     0);
    free(pixels);
    (void)tjDestroy(handle);
    return file;
}

TEST(a_jpeg_has_the_channels_of_its_colours)
{
    struct fl_decoded picture;
    unsigned long len = 0;
    unsigned char *file = jpeg(9, 4, TJSAMP_420, &len);
    size_t i;

    ck_assert_int_eq(fl_picture_decode("p", file, len, 0, &picture, NULL), FL_OK);
    ck_assert(picture.channels == 3 && picture.height == 4 && picture.width == 9);
    for (i = 0; i < 3 * 36; i++) {
        ck_assert_uint_eq(picture.pixels[i], 128);
    }
    free(picture.pixels);
    tjFree(file);
    file = jpeg(5, 5, TJSAMP_GRAY, &len);
    ck_assert_int_eq(fl_picture_decode("p", file, len, 0, &picture, NULL), FL_OK);
    ck_assert(picture.channels == 1 && picture.pixels[24] == 128);
    free(picture.pixels);
    tjFree(file);
}

TEST(what_is_no_picture_is_refused)
{
    picture_refused("hello", 5, FL_EFORMAT, "'p': expected a PNG or JPEG picture, found neither");
    picture_refused("", 0, FL_EFORMAT, "expected a PNG or JPEG picture");
    picture_refused("\x89PNG\r\n\x1a\nnothing", 15, FL_EFORMAT, "damaged or truncated PNG");
    picture_refused("\xff\xd8\xff\xe0nothing", 11, FL_EFORMAT, "damaged or truncated JPEG");
}

TEST(a_truncated_picture_is_refused_at_every_length)
{
    size_t png_len = 0;
    unsigned long jpeg_len = 0;
    uint8_t *png = fixture_png(PNG_FORMAT_RGB, 4, 4, 0, &png_len);
    unsigned char *jpg = jpeg(8, 8, TJSAMP_444, &jpeg_len);
    size_t i;

    /* libpng does not need the last chunk, IEND, which has no pixels. */
    for (i = 8; i < png_len - 16; i++) {
        picture_refused(png, i, FL_EFORMAT, "damaged or truncated PNG");
    }
    /* The end marker of a JPEG is two bytes. */
    for (i = 3; i + 2 < jpeg_len; i++) {
        picture_refused(jpg, i, FL_EFORMAT, "damaged or truncated JPEG");
    }
    free(png);
    tjFree(jpg);
}

TEST(a_damaged_byte_of_a_png_is_found_by_its_checksum)
{
    size_t len = 0;
    uint8_t *png = fixture_png(PNG_FORMAT_RGB, 4, 4, 0, &len);

    png[len - 20] ^= 1; /* in the pixels */
    picture_refused(png, len, FL_EFORMAT, "damaged or truncated PNG");
    free(png);
}

TEST(a_picture_of_huge_sides_is_refused_before_memory_is_taken)
{
    uint8_t head[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0, 0, 0,    13,
                      'I',  'H', 'D', 'R', 0,    0,    0x40, 1,    0, 0, 0x40, 1,
                      8,    2,   0,   0,   0,    0,    0,    0,    0, 0, 0,    0,
                      0,    'I', 'D', 'A', 'T',  0,    0,    0,    0};
    uint32_t crc = 0xffffffff;
    size_t i;
    int bit;

    for (i = 12; i < 29; i++) { /* CRC-32 of the head */
        crc ^= head[i];
        for (bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xedb88320 : 0);
        }
    }
    for (i = 0; i < 4; i++) {
        head[29 + i] = (uint8_t)(~crc >> (24 - 8 * i));
    }
    picture_refused(head, sizeof(head), FL_ELIMIT, "expected at most 16384 pixels a side");
}
