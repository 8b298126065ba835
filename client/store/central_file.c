#include "client/store/central_file.h"

#include "libfl/base/fs.h"
#include "libfl/container/container.h"

#define CENTRAL_PATH 4096

static const struct fl_container_kind central_kind = {
    .name = "central", .version = 1, .max_sections = 1, .max_fields = 0};

static int central_path(const char *state_dir, char path[CENTRAL_PATH], struct fl_err *err)
{
    return fl_fs_join(path, CENTRAL_PATH, state_dir, "central.bin") == FL_OK
               ? FL_OK
               : fl_err_set(err, FL_ELIMIT, "this path is too long: '%s'", state_dir);
}

int fl_central_file_load(const char *state_dir, struct fl_buf *out, struct fl_err *err)
{
    char path[CENTRAL_PATH];
    struct fl_container file;
    size_t len;
    int rv = central_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    rv = fl_container_open(path, &central_kind, &file, err);
    if (rv != FL_OK) {
        return rv;
    }
    if (file.head.n != 1) {
        rv = fl_err_set(err, FL_EFORMAT, "'%s': expected one section, found %zu", path,
                        (size_t)file.head.n);
        goto done;
    }
    len = (size_t)file.head.sections[0].bytes;
    rv = fl_buf_reserve(out, len);
    if (rv != FL_OK) {
        rv = fl_err_set(err, rv == FL_ELIMIT ? FL_EFORMAT : rv, "'%s': %zu bytes", path, len);
        goto done;
    }
    rv = fl_container_read(&file, 0, out->data + out->len, err);
    if (rv != FL_OK) {
        goto done;
    }
    out->len += len;
done:
    fl_container_close(&file);
    return rv;
}

int fl_central_file_save(const char *state_dir, const void *data, size_t len, struct fl_err *err)
{
    const struct fl_container_part part = {"settings", data, len};
    const struct fl_container_content content = {NULL, 0, &part, 1};
    char path[CENTRAL_PATH];
    int rv = central_path(state_dir, path, err);

    if (rv != FL_OK) {
        return rv;
    }
    return fl_container_replace(path, &central_kind, &content, /* sync= */ true, err);
}
