#include "client/store/day.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "libfl/base/fs.h"

#define DAY_PATH  4096
#define DAY_BYTES 64

static int day_path(const char *state_dir, char path[DAY_PATH], struct fl_err *err)
{
    return fl_fs_join(path, DAY_PATH, state_dir, "rounds-today") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
}

int fl_day_rounds(const char *state_dir, uint64_t day, uint64_t *ret, struct fl_err *err)
{
    char path[DAY_PATH];
    char text[DAY_BYTES + 1] = "";
    char *end = text;
    struct fl_buf file;
    int rv = day_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_fs_read(path, DAY_BYTES, &file, err);
    if (rv == FL_ENOENT || rv == FL_ELIMIT) {
        *ret = 0;
        return FL_OK;
    }
    if (rv != FL_OK) {
        return rv;
    }
    (void)snprintf(text, sizeof(text), "%.*s", (int)file.len, (const char *)file.data);
    fl_buf_done(&file);
    *ret = strtoull(text, &end, 10) == day && *end == ' ' ? strtoull(end, NULL, 10) : 0;
    return FL_OK;
}

int fl_day_add(const char *state_dir, uint64_t day, struct fl_err *err)
{
    char path[DAY_PATH];
    char text[DAY_BYTES];
    uint64_t rounds = 0;
    int n;
    int rv = fl_day_rounds(state_dir, day, &rounds, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = day_path(state_dir, path, err);
    if (rv != FL_OK) {
        return rv;
    }
    n = snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64 "\n", day, rounds + 1);
    return fl_fs_replace(path, text, (size_t)n, /* sync= */ false, err);
}
