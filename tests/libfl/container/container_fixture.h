#ifndef FL_CONTAINER_FIXTURE_H
#define FL_CONTAINER_FIXTURE_H

/* One file with fields and four sections, in a folder of the test, for the tests of
 * libfl/container. */

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/container/block_sums.h"
#include "libfl/container/container.h"
#include "tests/lib/container_file.h"
#include "tests/lib/folder.h"

enum { EMPTY, FIRST, SMALL, LONG_NAME, N_SECTIONS };

#define FIRST_BYTES (FL_SUM_BLOCK + 5) /* two blocks */
#define N_BLOCKS    4
#define HEAD_BYTES  ((uint64_t)FL_CONTAINER_PAGE)
#define FIELDS      "fields!"
#define FIELDS_LEN  7

/* Offsets in its head. */
#define AT_KIND     8
#define AT_VERSION  16
#define AT_N        20
#define AT_FLAGS    24
#define AT_F        28
#define AT_SECTIONS 32
#define AT_FIELDS   (AT_SECTIONS + 16 * N_SECTIONS)
#define AT_HASH     (AT_FIELDS + FIELDS_LEN)
#define AT_COUNT    (AT_HASH + 8)
#define AT_ZEROS    (AT_COUNT + 8)

static const struct fl_container_kind sample_kind = {
    .name = "sample", .version = 3, .max_sections = N_SECTIONS, .max_fields = FIELDS_LEN};

static uint8_t sample_first[FIRST_BYTES];
static const struct fl_container_part sample_parts[N_SECTIONS] = {
    [FIRST] = {.name = "first", .data = sample_first, .bytes = FIRST_BYTES},
    [EMPTY] = {.name = "empty"},
    [SMALL] = {.name = "small", .data = "small", .bytes = 5},
    [LONG_NAME] = {.name = "8letters", .data = "0123456789", .bytes = 10}};
static const struct fl_container_content sample_content = {
    .fields = FIELDS, .fields_len = FIELDS_LEN, .parts = sample_parts, .n = N_SECTIONS};

static char sample_dir[FOLDER_PATH];
static char sample_path[FOLDER_PATH + 16];
static struct fl_err err;

static inline void sample_setup(void)
{
    size_t i;

    for (i = 0; i < sizeof(sample_first); i++) {
        sample_first[i] = (uint8_t)(i * 7 + i / 256);
    }
    err = (struct fl_err){0};
    ck_assert(folder_make("container", sample_dir));
    (void)snprintf(sample_path, sizeof(sample_path), "%s/file", sample_dir);
}

static inline void sample_teardown(void)
{
    folder_remove(sample_dir);
}

static inline void sample_write(void)
{
    ck_assert_msg(fl_container_replace(sample_path, &sample_kind, &sample_content, false, &err) ==
                      FL_OK,
                  "%s", err.msg);
}

/* The bytes of the file, owned. */
static inline struct fl_buf sample_bytes(void)
{
    struct fl_buf file;

    ck_assert_int_eq(fl_fs_read(sample_path, 1 << 24, &file, NULL), FL_OK);
    return file;
}

static inline void sample_put(const struct fl_buf *file)
{
    ck_assert_int_eq(fl_fs_replace(sample_path, file->data, file->len, false, NULL), FL_OK);
}

/* Open the file and read all of it; the first error, with its message in `err`. Without checks that
   allocate memory (failmalloc.h). */
static inline int sample_check(const struct fl_container_kind *kind)
{
    uint8_t data[FIRST_BYTES];
    struct fl_container c;
    size_t i;
    int rv;

    err = (struct fl_err){0};
    rv = fl_container_open(sample_path, kind, &c, &err);
    for (i = 0; rv == FL_OK && i < c.head.n; i++) {
        size_t len = (size_t)c.head.sections[i].bytes;

        if (len > sizeof(data)) {
            ck_abort_msg("section %zu has %zu bytes", i, len);
        }
        rv = fl_container_read(&c, i, data, &err);
        if (rv == FL_OK && len > 0 && memcmp(data, sample_parts[i].data, len) != 0) {
            ck_abort_msg("section %zu has other bytes", i);
        }
    }
    fl_container_close(&c);
    return rv;
}

static inline void sample_says(const char *text)
{
    ck_assert_msg(strstr(err.msg, text) != NULL, "\"%s\" is not in \"%s\"", text, err.msg);
}

static inline void sample_refused(int code, const char *text)
{
    ck_assert_int_eq(sample_check(&sample_kind), code);
    sample_says(text);
    sample_says(sample_path);
}

#endif
