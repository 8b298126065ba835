/*
 * Bytes as a safetensors file: whatever they are, reading gives a layout whose tensors then
 * load, but for a checksum that is wrong, or an error. A file without the skipped counters, all
 * float32, is written again and must read back as the same model.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libfl/base/fs.h"
#include "libfl/model/safetensors.h"
#include "libfl/model/st_parse.h"

/* More numbers than a corpus file needs; larger layouts are not loaded. */
#define MAX_COUNT ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory with the given contents and its path. */
static int memory_file(const void *data, size_t size, char path[64])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    if (fd < 0 || fl_fs_pwrite(fd, data, size, 0) != FL_OK) {
        abort();
    }
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void write_again(const struct fl_layout *layout, const float *params)
{
    struct fl_layout *again = NULL;
    struct fl_buf file;
    char path[64];
    float *loaded = malloc(fl_layout_count(layout) * sizeof(*loaded));
    int fd;

    if (loaded == NULL || fl_st_header(layout, NULL, 0, &file) != FL_OK) {
        abort();
    }
    fd = memory_file(file.data, file.len, path);
    if (fl_fs_pwrite(fd, params, fl_layout_count(layout) * sizeof(*params), file.len) != FL_OK ||
        fl_st_layout(path, &again, NULL) != FL_OK || !fl_layout_equal(layout, again) ||
        fl_st_load(path, layout, loaded, NULL) != FL_OK ||
        memcmp(loaded, params, fl_layout_count(layout) * sizeof(*params)) != 0)
    {
        abort();
    }
    (void)close(fd);
    fl_buf_done(&file);
    fl_layout_free(again);
    free(loaded);
}

/* The header begins with the place of a checksum. */
static bool is_sealed(const uint8_t *data, size_t size)
{
    size_t len = strlen(FL_ST_CHECKSUM_HEAD);

    return size >= 8 + len && memcmp(data + 8, FL_ST_CHECKSUM_HEAD, len) == 0;
}

/* What a layout was read from holds all its tensors: only a checksum can speak against them. */
static bool load(const char *path, const struct fl_layout *layout, float *params, bool sealed)
{
    struct fl_err err = {0};
    int rv = fl_st_load(path, layout, params, &err);

    if (rv != FL_OK && (!sealed || rv != FL_EFORMAT || strstr(err.msg, "damaged") == NULL)) {
        abort();
    }
    return rv == FL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fl_layout *layout = NULL;
    struct fl_err err = {0};
    char path[64];
    char value[64];
    float *params;
    int fd = memory_file(data, size, path);
    int rv = fl_st_layout(path, &layout, &err);

    if (rv != FL_OK) {
        if (err.msg[0] == '\0') {
            abort(); /* An error without words helps nobody. */
        }
        (void)close(fd);
        return 0;
    }
    rv = fl_st_meta(path, "round", value, sizeof(value), NULL);
    if (rv != FL_OK && rv != FL_ENOENT && rv != FL_ELIMIT) {
        abort();
    }
    if (fl_layout_count(layout) <= MAX_COUNT) {
        params = malloc(fl_layout_count(layout) * sizeof(*params));
        if (params == NULL) {
            abort();
        }
        if (load(path, layout, params, is_sealed(data, size))) {
            write_again(layout, params);
        }
        free(params);
    }
    fl_layout_free(layout);
    (void)close(fd);
    return 0;
}
