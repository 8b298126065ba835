#include "tests/lib/data_files.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/lib/folder.h"

void t_dir(char out[T_PATH])
{
    const char *tmp = getenv("TMPDIR");

    (void)snprintf(out, T_PATH, "%s/fl-data-XXXXXX", tmp != NULL ? tmp : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(out));
}

const char *t_path(char out[T_PATH], const char *dir, const char *name)
{
    int n = snprintf(out, T_PATH, "%s/%s", dir, name);

    ck_assert(n > 0 && n < T_PATH);
    return out;
}

void t_dir_remove(const char *dir)
{
    folder_remove(dir);
}

void t_write(const char *dir, const char *name, const void *data, size_t len)
{
    char path[T_PATH];
    size_t l = strlen(name);

    (void)t_path(path, dir, name);
    if (l > 3 && strcmp(name + l - 3, ".gz") == 0) {
        gzFile gz = gzopen(path, "wb");

        ck_assert_ptr_nonnull(gz);
        ck_assert_int_eq(gzwrite(gz, data, (unsigned)len), (int)len);
        ck_assert_int_eq(gzclose(gz), Z_OK);
    } else {
        FILE *f = fopen(path, "wb");

        ck_assert_ptr_nonnull(f);
        ck_assert_uint_eq(fwrite(data, 1, len, f), len);
        ck_assert_int_eq(fclose(f), 0);
    }
}

void t_text(const char *dir, const char *name, const char *text)
{
    t_write(dir, name, text, strlen(text));
}

void t_idx(const char *dir, const char *name, uint32_t magic, const uint32_t *numbers, size_t n,
           const void *data, size_t len)
{
    uint8_t *raw = malloc(4 + 4 * n + len);
    size_t i;
    int k;

    ck_assert_ptr_nonnull(raw);
    for (i = 0; i <= n; i++) {
        uint32_t word = i == 0 ? magic : numbers[i - 1];

        for (k = 0; k < 4; k++) {
            raw[4 * i + (size_t)k] = (uint8_t)(word >> (24 - 8 * k));
        }
    }
    if (len > 0) {
        (void)memcpy(raw + 4 + 4 * n, data, len);
    }
    t_write(dir, name, raw, 4 + 4 * n + len);
    free(raw);
}

void t_npy(const char *dir, const char *name, const char *dict, const void *data, size_t len)
{
    size_t head = strlen(dict);
    uint8_t *raw = malloc(10 + head + len);

    ck_assert_ptr_nonnull(raw);
    (void)memcpy(raw, "\x93NUMPY\x01\x00", 8);
    raw[8] = (uint8_t)(head & 0xff);
    raw[9] = (uint8_t)(head >> 8);
    (void)memcpy(raw + 10, dict, head);
    if (len > 0) {
        (void)memcpy(raw + 10 + head, data, len);
    }
    t_write(dir, name, raw, 10 + head + len);
    free(raw);
}
