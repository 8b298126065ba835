#ifndef FL_IMPORT_IMPORT_FIXTURE_H
#define FL_IMPORT_IMPORT_FIXTURE_H

/* A folder with data, read as a whole; expected messages. */

#include <check.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libfl/base/fs.h"
#include "libfl/import/import.h"
#include "tests/lib/data_files.h"

struct import_fixture {
    char dir[T_PATH];
    struct fl_import_conf conf;
    struct fl_import got;
    struct fl_err err;
};

static inline void fixture_up(struct import_fixture *f)
{
    *f = (struct import_fixture){.dir = ""};
    t_dir(f->dir);
    fl_import_conf_init(&f->conf);
}

static inline void fixture_down(struct import_fixture *f)
{
    fl_import_done(&f->got);
    ck_assert_int_eq(fl_fs_remove_tree(f->dir, NULL), FL_OK);
}

static inline void fixture_read(struct import_fixture *f)
{
    fl_import_done(&f->got);
    f->err = (struct fl_err){.code = FL_OK};
    ck_assert_msg(fl_import_open(f->dir, &f->conf, &f->got, &f->err) == FL_OK, "%s", f->err.msg);
}

/* Reading fails with `code`, and the message has "'DIR/FILE'" followed by `rest`. */
static inline void fixture_refused(struct import_fixture *f, int code, const char *file,
                                   const char *rest)
{
    char want[T_PATH + 512];
    int rv;

    fl_import_done(&f->got);
    f->err = (struct fl_err){.code = FL_OK};
    rv = fl_import_open(f->dir, &f->conf, &f->got, &f->err);
    (void)snprintf(want, sizeof(want), "'%s/%s'%s", f->dir, file, rest);
    ck_assert_msg(rv == code, "code %d (%s), expected %d", rv, f->err.msg, code);
    ck_assert_msg(strstr(f->err.msg, want) != NULL, "message \"%s\" lacks \"%s\"", f->err.msg,
                  want);
}

/* A PNG of `format` with bytes 0, 1, 2, … from `first`; returned owned. */
static inline uint8_t *fixture_png(uint32_t format, uint32_t width, uint32_t height, uint8_t first,
                                   size_t *ret_len)
{
    png_image image = {
        .version = PNG_IMAGE_VERSION, .width = width, .height = height, .format = format};
    size_t n = PNG_IMAGE_SIZE(image);
    uint8_t *pixels = malloc(n);
    png_alloc_size_t len = 0;
    uint8_t *file;
    size_t i;

    ck_assert_ptr_nonnull(pixels);
    for (i = 0; i < n; i++) {
        pixels[i] = (uint8_t)(first + i);
    }
    ck_assert(png_image_write_to_memory(&image, NULL, &len, 0, pixels, 0, NULL) != 0);
    file = malloc(len);
    ck_assert_ptr_nonnull(file);
    ck_assert(png_image_write_to_memory(&image, file, &len, 0, pixels, 0, NULL) != 0);
    free(pixels);
    *ret_len = len;
    return file;
}

/* Write DIR/NAME, whose folders are created. */
static inline void fixture_picture(const struct import_fixture *f, const char *name,
                                   uint32_t format, uint32_t width, uint32_t height)
{
    char path[T_PATH];
    size_t len = 0;
    uint8_t *file = fixture_png(format, width, height, 10, &len);
    char *slash;

    (void)t_path(path, f->dir, name);
    slash = strrchr(path, '/');
    *slash = '\0';
    ck_assert_int_eq(fl_fs_mkdirs(path, NULL), FL_OK);
    t_write(f->dir, name, file, len);
    free(file);
}

#endif
